"""64-bit hashes of values in their binary single-value serialization (spec, appendix D), as theta sketches hash them.

The hash is the first half of Murmur3's 128 bits (x64).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.decimals import is_narrow, widen
from icebench.engine.columnar.hashing import byte_spans
from icebench.engine.columnar.schemas import storage_of
from icebench.engine.kernels.compiling import kernel

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_ADD_1 = np.uint64(0x52DCE729)
_ADD_2 = np.uint64(0x38495AB5)
_FINAL_1 = np.uint64(0xFF51AFD7ED558CCD)
_FINAL_2 = np.uint64(0xC4CEB9FE1A85EC53)


def single_value_hashes(array: pa.Array, seed: int) -> npt.NDArray[np.uint64]:
    """The hash of each value of an array of a primitive type; nulls and values of no bytes have none."""
    stored = storage_of(array).drop_null()
    if len(stored) == 0:
        return np.zeros(0, np.uint64)
    if pat.is_decimal(stored.type):
        starts, ends, data = _decimal_spans(stored)
    elif pat.is_boolean(stored.type):
        starts, ends, data = _number_spans(stored.cast(pa.uint8()), 1)
    elif pat.is_string(stored.type) or pat.is_binary(stored.type) or pat.is_fixed_size_binary(stored.type):
        offsets, data = byte_spans(stored)
        longer = np.diff(offsets) > 0
        starts, ends = offsets[:-1][longer], offsets[1:][longer]
    else:
        starts, ends, data = _number_spans(stored, stored.type.bit_width // 8)
    return _hash_spans_128(data, starts, ends, np.uint64(seed))


def _number_spans(array: pa.Array, width: int) -> tuple[Any, Any, Any]:
    """Numbers are little-endian in Arrow and in the serialization, of the same width."""
    data = np.frombuffer(array.buffers()[1], np.uint8, len(array) * width, array.offset * width)
    starts = np.arange(len(array), dtype=np.int64) * width
    return starts, starts + width, data


def _decimal_spans(array: pa.Array) -> tuple[Any, Any, Any]:
    """The unscaled values, big-endian in two's complement, without the bytes that repeat the sign."""
    if is_narrow(array.type):
        array = widen(array, pa.decimal128(38, array.type.scale))
    big = np.frombuffer(array.buffers()[1], np.uint8, len(array) * 16, array.offset * 16).reshape(-1, 16)[:, ::-1]
    sign = big >> 7
    repeats = (big[:, :-1] == sign[:, :1] * 0xFF) & (sign[:, 1:] == sign[:, :1])
    ends = np.arange(1, len(array) + 1, dtype=np.int64) * 16
    return ends - 16 + np.cumprod(repeats, axis=1).sum(axis=1), ends, np.ascontiguousarray(big).reshape(-1)


def _rotated(word: Any, bits: Any) -> Any:  # noqa: ANN401 - compiled for what it gets
    return np.uint64((word << np.uint64(bits)) | (word >> np.uint64(64 - bits)))


def _word(data: Any, start: Any, end: Any) -> Any:  # noqa: ANN401
    word = np.uint64(0)
    for i in range(end - 1, start - 1, -1):
        word = np.uint64((word << np.uint64(8)) | np.uint64(data[i]))
    return word


def _finished(h: Any) -> Any:  # noqa: ANN401
    h = np.uint64((h ^ (h >> np.uint64(33))) * _FINAL_1)
    h = np.uint64((h ^ (h >> np.uint64(33))) * _FINAL_2)
    return np.uint64(h ^ (h >> np.uint64(33)))


@kernel(helpers=(_rotated, _word, _finished), work=None)
def _hash_spans_128(data: Any, starts: Any, ends: Any, seed: Any) -> Any:  # noqa: ANN401
    out = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        h1 = h2 = seed
        at, end = starts[i], ends[i]
        while at < end:
            middle, last = min(at + 8, end), min(at + 16, end)
            # Words of the rest are padded by zeros, which change nothing.
            h1 ^= np.uint64(_rotated(np.uint64(_word(data, at, middle) * _C1), 31) * _C2)
            h2_mixed = np.uint64(h2 ^ np.uint64(_rotated(np.uint64(_word(data, middle, last) * _C2), 33) * _C1))
            if last - at == 16:
                h1 = np.uint64(np.uint64(_rotated(h1, 27) + h2) * np.uint64(5) + _ADD_1)
                h2 = np.uint64(np.uint64(_rotated(h2_mixed, 31) + h1) * np.uint64(5) + _ADD_2)
            else:
                h2 = h2_mixed
            at = last
        length = np.uint64(ends[i] - starts[i])
        h1 ^= length
        h2 ^= length
        h1 = np.uint64(h1 + h2)
        h2 = np.uint64(h2 + h1)
        out[i] = np.uint64(_finished(h1) + _finished(h2))
    return out
