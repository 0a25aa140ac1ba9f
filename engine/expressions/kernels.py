"""Compiled loops over byte strings held as `offsets` and `data`, one string per row. They release the GIL.

`valid` is a boolean per row, or an empty array for "all valid": Numba compiles one signature for both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.kernels.compiling import kernel

Offsets = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
ALL_VALID: Mask = np.empty(0, dtype=np.bool_)


def _cut_against(
    cut: Bytes,
    cut_start: int,
    cut_end: int,
    data: Bytes,
    start: int,
    end: int,
    open_ended: bool,
) -> int:  # pragma: no cover - compiled
    """-1, 0, 1: the cut stands below, at or above the row's string; an open-ended string is above its extensions."""
    shared = min(cut_end - cut_start, end - start)
    for i in range(shared):
        a, b = cut[cut_start + i], data[start + i]
        if a != b:
            return -1 if a < b else 1
    if cut_end - cut_start < end - start or open_ended:
        return -1
    return 0 if cut_end - cut_start == end - start else 1


@kernel(helpers=(_cut_against,))
def byte_segments(
    offsets: Offsets, data: Bytes, valid: Mask, open_ended: Mask, cut_offsets: Offsets, cut_data: Bytes
) -> NDArray[np.int64]:  # pragma: no cover - compiled
    """For each row, twice the number of cuts below its string, plus one if a cut equals it. Invalid rows get 0."""
    rows = offsets.shape[0] - 1
    cuts = cut_offsets.shape[0] - 1
    found = np.zeros(rows, dtype=np.int64)
    for row in range(rows):
        if valid.shape[0] and not valid[row]:
            continue
        endless = open_ended.shape[0] > 0 and open_ended[row]
        low, high = 0, cuts  # cuts below `low` are below the string, from `high` on they are not
        while low < high:
            middle = (low + high) // 2
            at = _cut_against(
                cut_data, cut_offsets[middle], cut_offsets[middle + 1], data, offsets[row], offsets[row + 1], endless
            )
            if at < 0:
                low = middle + 1
            else:
                high = middle
        found[row] = 2 * low
        if low < cuts and (
            _cut_against(
                cut_data, cut_offsets[low], cut_offsets[low + 1], data, offsets[row], offsets[row + 1], endless
            )
            == 0
        ):
            found[row] += 1
    return found


@kernel()
def little_endian(
    offsets: Offsets, data: Bytes, valid: Mask
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # pragma: no cover - compiled
    """Each row's 1, 4 or 8 bytes as a whole number, sign-extended, and its length; 0 and -1 where it is invalid."""
    rows = offsets.shape[0] - 1
    values = np.zeros(rows, dtype=np.int64)
    lengths = np.full(rows, -1, dtype=np.int64)
    for row in range(rows):
        if valid.shape[0] and not valid[row]:
            continue
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        if length not in (1, 4, 8):
            continue
        number = np.int64(0)
        for i in range(length):
            number |= np.int64(data[start + i]) << np.int64(8 * i)
        if length == 4 and data[start + 3] & 0x80:
            number |= np.int64(-1) << np.int64(32)
        values[row] = number
        lengths[row] = length
    return values, lengths


@kernel()
def big_endian(
    offsets: Offsets, data: Bytes, valid: Mask, width: int
) -> tuple[Bytes, Mask]:  # pragma: no cover - compiled
    """Each row's two's complement number as `width` big-endian bytes with the sign bit flipped, which compare unsigned
    as the numbers do; False where a row is invalid, empty, or does not fit."""
    rows = offsets.shape[0] - 1
    keys = np.zeros(rows * width, dtype=np.uint8)
    fits = np.zeros(rows, dtype=np.bool_)
    for row in range(rows):
        start, end = offsets[row], offsets[row + 1]
        if start == end or (valid.shape[0] and not valid[row]):
            continue
        sign = np.uint8(0xFF if data[start] & 0x80 else 0)
        while end - start > width and data[start] == sign and (data[start + 1] & 0x80) == (sign & 0x80):
            start += 1
        if end - start > width:
            continue
        first = row * width
        padding = width - (end - start)
        for i in range(padding):
            keys[first + i] = sign
        for i in range(end - start):
            keys[first + padding + i] = data[start + i]
        keys[first] ^= 0x80
        fits[row] = True
    return keys, fits


@kernel()
def utf16_length_at_least(
    offsets: Offsets, data: Bytes, valid: Mask, width: int
) -> Mask:  # pragma: no cover - compiled
    """Whether each row's UTF-8 text has at least `width` UTF-16 units, which is never less than its characters."""
    rows = offsets.shape[0] - 1
    found = np.zeros(rows, dtype=np.bool_)
    for row in range(rows):
        if valid.shape[0] and not valid[row]:
            continue
        units = 0
        for i in range(offsets[row], offsets[row + 1]):
            lead = data[i]
            if lead & 0xC0 != 0x80:
                units += 2 if lead >= 0xF0 else 1
        found[row] = units >= width
    return found


@kernel()
def add_big_endian(keys: Bytes, width: int, addend: int) -> Bytes:  # pragma: no cover - compiled
    """Big-endian numbers of `width` bytes, each plus a non-negative 63-bit number; the sign bit flipped or not."""
    found = keys.copy()
    for row in range(keys.shape[0] // width):
        carry = np.int64(addend)
        for i in range(width - 1, -1, -1):
            if carry == 0:
                break
            carry += np.int64(found[row * width + i])
            found[row * width + i] = np.uint8(carry & 0xFF)
            carry >>= 8
    return found
