"""Columns laid out in memory with the instructions that write them as Avro objects (see `avro_write_kernels`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec import avro_write_kernels as kernels
from engine.codec.columns import BoolArray, BytesColumn, FixedColumn, Int64Array, ListColumn
from engine.codec.kernel_choice import compiled, interprets

_LONGEST_NUMBER = 10


class RowProgram:
    """Takes the columns of so many rows one after the other, in the order of the Avro record, then writes the rows.

    Args:
        rows: How many values each column has.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._code: list[int] = []
        self._columns: list[int] = []
        self._memory: list[NDArray[Any]] = []
        self._memory_size = 0
        self._blob: list[bytes | memoryview] = []
        self._blob_size = 0
        self._elements = 0

    def add_numbers(self, column: FixedColumn, *, required: bool) -> None:
        """Ints or longs."""
        pairs = self._pairs()
        pairs[:, 0] = column.values
        pairs[:, 1] = 1 if column.valid is None else column.valid
        self._instruct(kernels.WRITE_NUMBER, pairs, required=required)

    def add_bytes(self, column: BytesColumn, *, required: bool, is_fixed: bool = False) -> None:
        """Byte strings or text; `is_fixed` for those whose length the schema says."""
        pairs = self._pairs()
        pairs[:, 0] = column.offsets[:-1] + self._add_blob(column)
        pairs[:, 1] = np.diff(column.offsets) + 1
        if column.valid is not None:
            pairs[~column.valid] = 0
        self._instruct(kernels.WRITE_FIXED if is_fixed else kernels.WRITE_BYTES, pairs, required=required)

    def add_lists(self, column: ListColumn, *, required: bool) -> None:
        """Lists of ints or longs."""
        pairs = self._pairs()
        first, last = int(column.offsets[0]), int(column.offsets[-1])
        pairs[:, 0] = self.append(column.values[first:last]) + column.offsets[:-1] - first
        pairs[:, 1] = np.diff(column.offsets) + 1
        if column.valid is not None:
            pairs[~column.valid] = 0
        self._elements += last - first
        self._instruct(kernels.WRITE_LIST, pairs, required=required)

    def add_maps(self, offsets: Int64Array, keys: Int64Array, values: Int64Array | BytesColumn) -> None:
        """Maps from ints; map i has the pairs ``offsets[i]`` to ``offsets[i + 1]``, which begin at 0.

        An empty map is written as null, as writers do that have no metrics.

        Args:
            offsets: One more than rows.
            keys: Where the keys of each map are, as `append` placed them.
            values: One for each pair.
        """
        sizes = np.diff(offsets)
        total = int(offsets[-1])
        pairs, places = self._pairs(), self._pairs()
        if total == 0:
            self._instruct(kernels.WRITE_NUMBER_MAP, pairs, required=False)
            return
        self._elements += 2 * total
        of_bytes = isinstance(values, BytesColumn)
        elements = values.offsets + self._add_blob(values) if isinstance(values, BytesColumn) else values
        pairs[:, 0] = self.append(elements) + offsets[:-1]
        pairs[:, 1] = sizes + (sizes > 0)
        places[:, 0] = keys
        what = kernels.WRITE_BYTES_MAP if of_bytes else kernels.WRITE_NUMBER_MAP
        self._instruct(what, pairs, required=False, argument=self._column(places))

    def append(self, numbers: NDArray[Any]) -> int:
        """Put numbers into memory; where they begin."""
        begin = self._memory_size
        self._memory.append(numbers)
        self._memory_size += len(numbers)
        return begin

    def encode(self) -> tuple[memoryview, Int64Array]:
        """The bytes of all rows, and where each one ends."""
        memory = np.concatenate([numbers.astype(np.int64, copy=False) for numbers in self._memory])
        blob = b"".join(self._blob)
        instructions = len(self._code) // 4
        # Of each value its number or length, an option's branch, and a map's count, size and end.
        bound = self._rows * instructions * 4 * _LONGEST_NUMBER + self._elements * _LONGEST_NUMBER + len(blob)
        if interprets(self._memory_size * 4):
            ends = [0] * self._rows
            made = bytearray(bound)
            size = kernels.write_rows(self._code, self._columns, memory.tolist(), blob, made, ends)
            return memoryview(made)[:size], np.array(ends, np.int64)
        out = np.empty(bound, np.uint8)
        row_ends = np.zeros(self._rows, np.int64)
        code, columns = np.array(self._code, np.int64), np.array(self._columns, np.int64)
        size = compiled().write_rows(code, columns, memory, np.frombuffer(blob, np.uint8), out, row_ends)
        return out[:size].data, row_ends

    def _pairs(self) -> Int64Array:
        return np.zeros((self._rows, 2), np.int64)

    def _column(self, pairs: Int64Array) -> int:
        self._columns.append(self.append(pairs.reshape(-1)))
        return len(self._columns) - 1

    def _instruct(self, what: int, pairs: Int64Array, *, required: bool, argument: int = 0) -> None:
        self._code += [what, self._column(pairs), int(not required), argument]

    def _add_blob(self, column: BytesColumn) -> int:
        """What to add to the column's offsets."""
        first, last = int(column.offsets[0]), int(column.offsets[-1])
        before = self._blob_size - first
        self._blob.append(np.ascontiguousarray(column.data[first:last]).data)
        self._blob_size += last - first
        return before


def joined(values: Sequence[bytes | None]) -> BytesColumn:
    """Byte strings as a column."""
    sizes = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    data = np.frombuffer(b"".join(value for value in values if value is not None), np.uint8)
    if None not in values:
        return BytesColumn(offsets, data)
    return BytesColumn(offsets, data, np.array([value is not None for value in values], np.bool_))


def valid_mask(values: Sequence[Any]) -> BoolArray | None:
    """Which values are there; None where all are."""
    return np.array([value is not None for value in values], np.bool_) if None in values else None
