"""Columns and the instructions that write them as Avro objects (see `write_kernels`).

Columns are read in place: those of Arrow tables in Arrow's own memory, whatever the width of their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import (
    BoolArray,
    ByteArray,
    Int64Array,
    Integers,
    data_of,
    offsets_of,
    valid_of,
    values_of,
)
from icebench.engine.codec.avro.compiled import write_kernels as kernels
from icebench.engine.codec.avro.compiled.machine_kernels import WRITE_ROWS

_LONGEST_NUMBER = 10


class RowProgram:
    """Collects columns in the order of an Avro record's fields, then encodes the rows.

    Args:
        rows: The number of values in each column.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._code: list[int] = []
        self._sources: list[NDArray[Any]] = []
        self._literal = bytearray()
        self._bound = 0
        self._numbers = 0

    def add_literal(self, data: bytes) -> None:
        """Write the same bytes in each row."""
        self._literal += data
        self._bound += self._rows * len(data)

    def add(self, array: pa.Array, *, required: bool, is_fixed: bool = False) -> None:
        """Write numbers, byte strings or text, lists of numbers, or maps from ints to numbers or byte strings; a map is
        not null."""
        type_, valid = array.type, valid_of(array)
        if pa.types.is_map(type_):
            offsets, items = offsets_of(array), array.items
            is_number = pa.types.is_integer(items.type)
            values = values_of(items) if is_number else (offsets_of(items), data_of(items))
            self.add_maps(offsets, offsets, values_of(array.keys), values)
        elif pa.types.is_nested(type_):
            self.add_lists(offsets_of(array), values_of(array.values), valid, required=required)
        elif pa.types.is_primitive(type_):
            self.add_numbers(values_of(array), valid, required=required)
        else:
            self.add_bytes(offsets_of(array), data_of(array), valid, required=required, is_fixed=is_fixed)

    def add_numbers(self, values: Integers, valid: BoolArray | None, *, required: bool) -> None:
        """Write ints or longs."""
        self._instruct(kernels.WRITE_NUMBER, [values], valid=valid, required=required)

    def add_bytes(
        self, offsets: Integers, data: ByteArray, valid: BoolArray | None, *, required: bool, is_fixed: bool = False
    ) -> None:
        """Write byte strings or text: value i is ``data[offsets[i]:offsets[i + 1]]``.

        Args:
            offsets: One more than rows.
            data: What they point into.
            valid: Which values are not null; None if all are.
            required: Whether the schema has no null.
            is_fixed: Whether the schema fixes their length, so that none is written.
        """
        what = kernels.WRITE_FIXED if is_fixed else kernels.WRITE_BYTES
        self._instruct(what, [offsets, data], valid=valid, required=required, data_bytes=_span(offsets))

    def add_lists(self, offsets: Integers, elements: Integers, valid: BoolArray | None, *, required: bool) -> None:
        """Write lists of ints or longs; `offsets` point into `elements`."""
        what = kernels.WRITE_LIST
        self._instruct(what, [offsets, elements], valid=valid, required=required, elements=_span(offsets))

    def add_maps(
        self, offsets: Integers, first_keys: Integers, keys: Integers, values: Integers | tuple[Integers, ByteArray]
    ) -> None:
        """Write maps from ints; map i has the values ``offsets[i]`` to ``offsets[i + 1]``.

        An empty map is written as null, as by writers without metrics.

        Args:
            offsets: One more than rows.
            first_keys: Where the keys of each map begin in `keys`.
            keys: What they point into.
            values: Numbers, or byte strings as their offsets and data.
        """
        elements = _span(offsets)
        if elements == 0:
            self.add_literal(b"\x00")
        elif isinstance(values, tuple):
            begin, end = values[0][offsets[0]], values[0][offsets[-1]]
            arrays = [offsets, first_keys, keys, *values]
            self._instruct(kernels.WRITE_BYTES_MAP, arrays, elements=2 * elements, data_bytes=int(end - begin))
        else:
            arrays = [offsets, first_keys, keys, values]
            self._instruct(kernels.WRITE_NUMBER_MAP, arrays, elements=2 * elements)

    def encode(self) -> tuple[memoryview, Int64Array]:
        """Encode all rows; returns their bytes and where each row ends."""
        self._end_literal()
        if not WRITE_ROWS.should_use(self._numbers * 8):
            ends = [0] * self._rows
            made = bytearray(self._bound)
            sources = [part for source in self._sources for part in (source.data, source.itemsize)]
            size = kernels.write_rows(self._code, sources, made, ends)
            return memoryview(made)[:size], np.array(ends, np.int64)
        out = np.empty(self._bound, np.uint8)
        row_ends = np.zeros(self._rows, np.int64)
        places = [part for source in self._sources for part in (_address(source), source.itemsize)]
        size = WRITE_ROWS(np.array(self._code, np.int64), np.array(places, np.int64), out, row_ends)
        return out[:size].data, row_ends

    def _instruct(
        self,
        what: int,
        arrays: Sequence[NDArray[Any]],
        *,
        valid: BoolArray | None = None,
        required: bool = False,
        elements: int = 0,
        data_bytes: int = 0,
    ) -> None:
        self._end_literal()
        marks = -1 if valid is None else self._source(valid)
        sources = [self._source(array) for array in arrays]
        self._code += [what, int(not required), marks, *sources, *[0] * (kernels.CODE_WIDTH - 3 - len(sources))]
        # Per value: the branch of an option, a number or length, and the count, size and end of a map or list.
        self._bound += self._rows * (2 * _LONGEST_NUMBER + 2) + elements * _LONGEST_NUMBER + data_bytes
        self._numbers += self._rows + elements

    def _end_literal(self) -> None:
        if self._literal:
            data = np.frombuffer(bytes(self._literal), np.uint8)
            self._code += [kernels.WRITE_LITERAL, 0, -1, self._source(data), len(data), 0, 0, 0]
            self._literal.clear()

    def _source(self, array: NDArray[Any]) -> int:
        if array.dtype.kind not in "ibu" or array.itemsize not in (1, 4, 8):
            raise TypeError(f"no column is of {array.dtype}")
        self._sources.append(np.ascontiguousarray(array))
        return len(self._sources) - 1


def _span(offsets: Integers) -> int:
    return int(offsets[-1]) - int(offsets[0])


def _address(array: NDArray[Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found
