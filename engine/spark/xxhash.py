"""XXH64 as Spark's `xxhash64` computes it for one text, so that a key of a join can be known without a Spark job.

The algorithm is that of https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md. Python's own integers serve:
there is one text a data file.
"""

from __future__ import annotations

import struct

SPARK_SEED = 42

_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_STRIPE = struct.Struct("<4Q")


def spark_xxhash64(text: str) -> int:
    """What ``xxhash64(text)`` is on Spark: a signed number of 64 bits."""
    found = xxh64(text.encode(), SPARK_SEED)
    return found - (1 << 64) if found >> 63 else found


def xxh64(data: bytes, seed: int) -> int:
    """XXH64, unsigned."""
    place, length = 0, len(data)
    if length >= _STRIPE.size:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed & _MASK, (seed - _P1) & _MASK]
        while place + _STRIPE.size <= length:
            lanes = [_round(lane, own) for lane, own in zip(lanes, _STRIPE.unpack_from(data, place), strict=True)]
            place += _STRIPE.size
        found = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = (seed + _P5) & _MASK
    return _avalanche(_tail((found + length) & _MASK, data[place:]))


def _tail(found: int, rest: bytes) -> int:
    while len(rest) >= 8:
        found = (_rotated(found ^ _round(0, int.from_bytes(rest[:8], "little")), 27) * _P1 + _P4) & _MASK
        rest = rest[8:]
    if len(rest) >= 4:
        found ^= (int.from_bytes(rest[:4], "little") * _P1) & _MASK
        found = (_rotated(found, 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        found = (_rotated(found ^ ((byte * _P5) & _MASK), 11) * _P1) & _MASK
    return found


def _avalanche(found: int) -> int:
    found = ((found ^ (found >> 33)) * _P2) & _MASK
    found = ((found ^ (found >> 29)) * _P3) & _MASK
    return found ^ (found >> 32)


def _round(lane: int, own: int) -> int:
    return (_rotated((lane + own * _P2) & _MASK, 31) * _P1) & _MASK


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK
