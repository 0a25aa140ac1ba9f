"""Some of a column's values, in any order, as a column of their own."""

from __future__ import annotations

import numpy as np

from engine.codec.avro.machine_kernels import GATHER
from engine.codec.columns import BoolArray, ByteArray, BytesColumn, FixedColumn, Int64Array, ListColumn


def take_numbers(column: FixedColumn, rows: Int64Array) -> FixedColumn:
    """The values at these rows; no value for a row below zero."""
    if not len(column):
        return FixedColumn(np.zeros(len(rows), column.values.dtype), rows >= 0)
    return FixedColumn(column.values[rows], _valid(column, rows))


def take_bytes(column: BytesColumn, rows: Int64Array) -> BytesColumn:
    """The values at these rows; no value for a row below zero."""
    starts, offsets = _stretches(column.offsets, rows)
    return BytesColumn(offsets, gather(column.data, starts, offsets), _valid(column, rows))


def take_lists(column: ListColumn, rows: Int64Array) -> ListColumn:
    """The lists at these rows; none for a row below zero."""
    starts, offsets = _stretches(column.offsets, rows)
    places = np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])
    return ListColumn(offsets, column.values[places], _valid(column, rows))


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


def _stretches(ends: Int64Array, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Where the values at these rows begin, and their offsets when they stand one after the other."""
    present = rows >= 0
    starts, sizes = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    starts[present] = ends[rows[present]]
    sizes[present] = ends[rows[present] + 1] - starts[present]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return starts, offsets


def _valid(column: FixedColumn | BytesColumn | ListColumn, rows: Int64Array) -> BoolArray | None:
    present = rows >= 0
    if column.valid is not None:
        present = present & column.valid[rows]
    return None if present.all() else present
