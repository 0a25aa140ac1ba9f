"""Some of a column's values, in any order, as a column of their own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import (
    BoolArray,
    ByteArray,
    Int64Array,
    bytes_array,
    data_of,
    has_values,
    list_array,
    number_array,
    offsets_of,
    valid_of,
    values_of,
)
from icebench.engine.codec.avro.compiled.machine_kernels import GATHER

_LARGE_BINARY, _LARGE_LIST = pa.large_binary().id, pa.large_list(pa.null()).id


def take(array: pa.Array, rows: Int64Array) -> pa.Array:
    """The numbers, byte strings or lists of numbers at these rows, null for a row below zero."""
    if not has_values(array):
        return pa.nulls(len(rows), array.type)
    type_, valid = array.type, valid_of(array)
    if rows.min(initial=0) < 0:
        is_row = rows >= 0
        rows = np.where(is_row, rows, 0)
        valid = is_row if valid is None else is_row & valid[rows]
    elif valid is not None:
        valid = valid[rows]
    if type_.id == _LARGE_BINARY:
        starts, offsets = stretches(offsets_of(array), rows, valid)
        return bytes_array(offsets, gather(data_of(array), starts, offsets), valid)
    if type_.id == _LARGE_LIST:
        starts, offsets = stretches(offsets_of(array), rows, valid)
        places = np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])
        return list_array(offsets, number_array(values_of(array.values)[places]), valid)
    return number_array(values_of(array)[rows], valid, type_)


def gather(data: ByteArray, starts: Int64Array, offsets: Int64Array) -> ByteArray:
    """Byte strings one after the other: value i begins at ``starts[i]`` and goes to ``offsets[i]:offsets[i + 1]``."""
    size = int(offsets[-1])
    if not GATHER.should_use(size):
        view, sizes = data.data, np.diff(offsets).tolist()
        pieces = [view[a : a + n] for a, n in zip(starts.tolist(), sizes, strict=True)]
        return np.frombuffer(b"".join(pieces), np.uint8)
    out = np.empty(size, np.uint8)
    if size:
        GATHER(np.ascontiguousarray(data), np.ascontiguousarray(starts), np.ascontiguousarray(offsets), out)
    return out


def stretches(ends: Int64Array, rows: Int64Array, valid: BoolArray | None = None) -> tuple[Int64Array, Int64Array]:
    """Where the values at these rows begin, and their offsets when they stand one after the other."""
    starts = ends[rows]
    sizes = ends[rows + 1] - starts
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(sizes if valid is None else np.where(valid, sizes, 0), out=offsets[1:])
    return starts, offsets
