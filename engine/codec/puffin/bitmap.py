"""Deletion vectors (Puffin spec: blob type ``deletion-vector-v1``).

A blob is the length of magic and bitmap (4 bytes, big-endian), the magic, a 64-bit Roaring bitmap in the portable
format, and the CRC-32 of magic and bitmap (4 bytes, big-endian).
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap64

from icebench.engine.codec.budget import budget_of, too_large
from icebench.engine.errors import CorruptTable, Invalid

MAGIC = b"\xd1\xd3\x39\x64"

_FRAME_BYTES = 12
_POSITION_BYTES = 8
_MAX_POSITION = (1 << 63) - 1
_NO_RUNS = 12346
_RUNS = 12347
_NO_OFFSET_THRESHOLD = 4
_ARRAY_LIMIT = 4096
_BITSET_BYTES = 8192
_BYTE_BITS = np.array([byte.bit_count() for byte in range(256)], np.int64)


def encode_vector(positions: BitMap64) -> bytes:
    """Encode the blob of a deletion vector.

    Raises:
        Invalid: A position is above 2**63 - 1.
    """
    if positions and positions.max() > _MAX_POSITION:
        raise Invalid(f"position {positions.max()} does not fit a deletion vector")
    compact = positions.copy()
    compact.run_optimize()
    body = MAGIC + compact.serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def decode_vector(
    blob: bytes, *, location: str | None = None, cardinality: int | None = None, rows: int | None = None
) -> BitMap64:
    """The positions in a deletion vector's blob. A kilobyte of runs may encode billions of positions, so callers state
    how many there may be.

    Args:
        blob: The `content_size_in_bytes` bytes at `content_offset` of the manifest entry.
        location: For messages.
        cardinality: The expected number of positions: the entry's `record_count`.
        rows: The number of rows of the data file.

    Raises:
        CorruptTable: Length, magic, checksum, bitmap or cardinality are wrong, or a position is behind the last row.
        TooLarge: More positions than `icebench.engine.codec.budget` allows.
    """
    try:
        positions = _decode(blob)
        limit = budget_of(len(blob))
        if len(positions) > limit // _POSITION_BYTES:
            raise too_large(f"the deletion vector of {len(positions)} positions", limit, location=location)
        if rows is not None and positions and positions.max() >= rows:
            raise ValueError(f"has position {positions.max()}, and its data file has {rows} rows")
        if cardinality is not None and len(positions) != cardinality:
            raise ValueError(f"has {len(positions)} positions instead of {cardinality}")
    except (ValueError, struct.error) as error:
        raise CorruptTable(f"the deletion vector {error}", location=location) from error
    return positions


def _decode(blob: bytes) -> BitMap64:
    if len(blob) < _FRAME_BYTES:
        raise ValueError(f"has {len(blob)} bytes only")
    (length,) = struct.unpack_from(">I", blob)
    if length != len(blob) - 8:
        raise ValueError(f"says that it has {length} bytes and has {len(blob) - 8}")
    body = blob[4:-4]
    if not body.startswith(MAGIC):
        raise ValueError(f"begins with {body[:4].hex()} instead of {MAGIC.hex()}")
    (checksum,) = struct.unpack_from(">I", blob, len(blob) - 4)
    if checksum != zlib.crc32(body):
        raise ValueError("has the wrong checksum")
    bitmap = body[4:]
    _check_bitmap(bitmap)
    return BitMap64.deserialize(bitmap)


def _check_bitmap(data: bytes) -> None:
    """Raises ValueError or struct.error unless the bytes are one well-formed 64-bit bitmap.

    The library only checks that it does not read past the end: a container with more bits than its stated cardinality
    would make it write past the end of an array.
    """
    (count,) = struct.unpack_from("<Q", data)
    position, previous = 8, -1
    for _ in range(count):
        (key,) = struct.unpack_from("<I", data, position)
        if key <= previous or key > _MAX_POSITION >> 32:
            raise ValueError(f"has key {key} after {previous}")
        position, previous = _check_bitmap32(data, position + 4), key
    if position != len(data):
        raise ValueError(f"has {len(data) - position} bytes after its bitmap")


def _check_bitmap32(data: bytes, position: int) -> int:
    """Check the 32-bit bitmap at `position`; returns the position after it."""
    begin = position
    (cookie,) = struct.unpack_from("<I", data, position)
    position += 4
    run_flags = b""
    if cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        run_flags = data[position : position + (count + 7) // 8]
        position += (count + 7) // 8
    elif cookie == _NO_RUNS:
        (count,) = struct.unpack_from("<I", data, position)
        position += 4
    else:
        raise ValueError(f"has a bitmap that begins with {cookie}")
    if count > 1 << 16 or position + 4 * count > len(data):
        raise ValueError(f"has a bitmap of {count} containers, which is cut off")
    descriptions = np.frombuffer(data, "<u2", 2 * count, position).reshape(-1, 2).astype(np.int64)
    position += 4 * count
    _check_rising(descriptions[:, 0], "container keys")
    if not run_flags or count >= _NO_OFFSET_THRESHOLD:
        offsets = struct.unpack_from(f"<{count}I", data, position)
        position += 4 * count
    else:
        offsets = None
    for index, cardinality in enumerate((descriptions[:, 1] + 1).tolist()):
        if offsets is not None and offsets[index] != position - begin:
            raise ValueError("has a container offset that is wrong")
        is_run = bool(run_flags) and bool(run_flags[index // 8] >> (index % 8) & 1)
        position = _check_container(data, position, cardinality, is_run=is_run)
    return position


def _check_container(data: bytes, position: int, cardinality: int, *, is_run: bool) -> int:
    if is_run:
        (runs,) = struct.unpack_from("<H", data, position)
        pairs = _numbers(data, position + 2, 2 * runs).reshape(-1, 2)
        ends = pairs[:, 0] + pairs[:, 1]
        if (ends >= 1 << 16).any() or (pairs[1:, 0] <= ends[:-1]).any() or int((pairs[:, 1] + 1).sum()) != cardinality:
            raise ValueError("has runs that overlap or do not add up")
        return position + 2 + 4 * runs
    if cardinality <= _ARRAY_LIMIT:
        _check_rising(_numbers(data, position, cardinality), "positions")
        return position + 2 * cardinality
    words = data[position : position + _BITSET_BYTES]
    if len(words) < _BITSET_BYTES or int(_BYTE_BITS[np.frombuffer(words, np.uint8)].sum()) != cardinality:
        raise ValueError("has a bit set that is cut off or has another cardinality")
    return position + _BITSET_BYTES


def _numbers(data: bytes, position: int, count: int) -> NDArray[np.int64]:
    return np.frombuffer(data, "<u2", count, position).astype(np.int64)


def _check_rising(numbers: NDArray[np.int64], what: str) -> None:
    if (np.diff(numbers) <= 0).any():
        raise ValueError(f"has {what} that are not rising")
