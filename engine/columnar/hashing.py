"""Murmur3 hashes of whole arrays (spec appendix B: "32-bit Hash Requirements").

`icebench.engine.spec.transforms.murmur3` is the scalar form and the oracle. Numbers hash as eight little-endian bytes
and go through numpy; byte strings go through one Numba kernel that reads Arrow's own buffers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.kernels.compiling import kernel

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_MIX = np.uint32(0xE6546B64)
_FINAL_1 = np.uint32(0x85EBCA6B)
_FINAL_2 = np.uint32(0xC2B2AE35)


def murmur3_of_longs(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """The hash of each value as an eight-byte little-endian integer."""
    words = np.ascontiguousarray(values, dtype="<i8").view(np.uint32).reshape(-1, 2)
    h = np.zeros(len(words), dtype=np.uint32)
    for column in (0, 1):
        k = words[:, column] * _C1
        k = (k << np.uint32(15)) | (k >> np.uint32(17))
        h ^= k * _C2
        h = (h << np.uint32(13)) | (h >> np.uint32(19))
        h = h * np.uint32(5) + _MIX
    h ^= np.uint32(8)
    h ^= h >> np.uint32(16)
    h *= _FINAL_1
    h ^= h >> np.uint32(13)
    h *= _FINAL_2
    h ^= h >> np.uint32(16)
    return h.view(np.int32)


def murmur3_of_bytes(array: pa.Array) -> npt.NDArray[np.int32]:
    """The hash of each byte string of a string, binary or fixed-size binary array; arbitrary where null."""
    offsets, data = byte_spans(array)
    return _hash_spans(offsets, data)


def byte_spans(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets (one more than values) and bytes of a string, binary or fixed-size binary array; no bytes are copied."""
    buffers = array.buffers()
    data = np.frombuffer(buffers[-1], np.uint8) if buffers[-1] is not None else np.empty(0, np.uint8)
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        start = array.offset * width
        return np.arange(len(array) + 1, dtype=np.int64) * width + start, data
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    kind = np.dtype(np.int64 if wide else np.int32)
    if buffers[1] is None or len(array) == 0:
        return np.zeros(len(array) + 1, np.int64), data
    offsets = np.frombuffer(buffers[1], kind, count=len(array) + 1, offset=array.offset * kind.itemsize)
    return offsets.astype(np.int64), data


def murmur3_of_decimals(array: pa.Array) -> npt.NDArray[np.int32]:
    """The hash of each decimal128 value: its unscaled value as the shortest big-endian two's complement."""
    buffer = array.buffers()[1]
    raw = np.frombuffer(buffer, np.uint8, count=len(array) * 16, offset=array.offset * 16).reshape(-1, 16)
    return _hash_decimals(raw)


def _hash_one(data: Any, start: Any, end: Any) -> Any:  # noqa: ANN401 - compiled for what it gets
    h = np.uint32(0)
    length = end - start
    whole = start + length // 4 * 4
    for i in range(start, whole, 4):
        k = (
            np.uint32(data[i])
            | (np.uint32(data[i + 1]) << np.uint32(8))
            | (np.uint32(data[i + 2]) << np.uint32(16))
            | (np.uint32(data[i + 3]) << np.uint32(24))
        )
        k = np.uint32(k * _C1)
        k = np.uint32((k << np.uint32(15)) | (k >> np.uint32(17)))
        h = np.uint32(h ^ np.uint32(k * _C2))
        h = np.uint32((h << np.uint32(13)) | (h >> np.uint32(19)))
        h = np.uint32(np.uint32(h * np.uint32(5)) + _MIX)
    if whole < end:
        k = np.uint32(0)
        for i in range(end - 1, whole - 1, -1):
            k = np.uint32((k << np.uint32(8)) | np.uint32(data[i]))
        k = np.uint32(k * _C1)
        k = np.uint32((k << np.uint32(15)) | (k >> np.uint32(17)))
        h = np.uint32(h ^ np.uint32(k * _C2))
    h = np.uint32(h ^ np.uint32(length))
    h = np.uint32(h ^ (h >> np.uint32(16)))
    h = np.uint32(h * _FINAL_1)
    h = np.uint32(h ^ (h >> np.uint32(13)))
    h = np.uint32(h * _FINAL_2)
    return np.uint32(h ^ (h >> np.uint32(16)))


@kernel(helpers=(_hash_one,), work=None)
def _hash_spans(offsets: Any, data: Any) -> Any:  # noqa: ANN401
    out = np.empty(len(offsets) - 1, np.int32)
    for i in range(len(out)):
        out[i] = np.int32(_hash_one(data, offsets[i], offsets[i + 1]))
    return out


@kernel(helpers=(_hash_one,), work=None)
def _hash_decimals(raw: Any) -> Any:  # noqa: ANN401
    out = np.empty(len(raw), np.int32)
    big = np.empty(16, np.uint8)
    for i in range(len(raw)):
        for j in range(16):
            big[j] = raw[i, 15 - j]
        fill = np.uint8(0xFF) if big[0] & 0x80 else np.uint8(0)
        start = 0
        while start < 15 and big[start] == fill and (big[start + 1] & 0x80) == (fill & 0x80):
            start += 1
        out[i] = np.int32(_hash_one(big, start, 16))
    return out
