"""One run of an `avro_program` over a chunk: the arrays that the kernels fill, and the columns made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from engine.codec import avro_kernels as kernels
from engine.codec.avro_program import MAX_DEPTH, ColumnLayout, Program
from engine.codec.columns import ByteArray, BytesColumn, FixedColumn, Int64Array, ListColumn
from engine.codec.kernel_choice import compiled

Column: TypeAlias = FixedColumn | BytesColumn | ListColumn

_DTYPES: dict[str, Any] = {"boolean": np.uint8, "float": np.dtype("<f4"), "double": np.dtype("<f8")}


@dataclass(frozen=True, slots=True)
class Part:
    """The columns of one chunk, in the order of the program; `slots` by map, then by key."""

    count: int
    columns: list[Column]
    slots: list[list[Column]]


class Run:
    """The arrays of one chunk.

    Args:
        program: What to decode.
        keys: The wanted keys of slot maps.
        rows: Room in each table: the objects of the chunk, and an upper bound of the elements of each list.
        interpreted: Run the kernels as plain Python instead of compiled.
    """

    def __init__(self, program: Program, keys: Sequence[int], rows: Sequence[int], *, interpreted: bool) -> None:
        self._program = program
        self._keys = keys
        self._interpreted = interpreted
        widths = [rows[layout.table] for layout in program.columns] + [rows[0]] * (len(program.slots) * len(keys))
        *self._base, total = accumulate(widths, initial=0)
        # Zeros of this size cost nothing until they are touched, and most of the element tables never is.
        self._memory = np.zeros((total, 2), np.int64)
        self._control = self._make_control(len(rows))

    def _make_control(self, tables: int) -> Any:  # noqa: ANN401 - a list or an array, see avro_kernels
        mask, keys = _hash_table(self._keys)
        first = len(self._program.columns)
        regions = {
            kernels.ROWS_AT: [0] * tables,
            kernels.BASE_AT: self._base,
            kernels.STACK_AT: [0] * (2 * MAX_DEPTH + 2),
            kernels.KEYS_AT: keys,
            kernels.SLOTS_AT: [first + m * len(self._keys) for m in range(len(self._program.slots))],
            kernels.CODE_AT: [number for instruction in self._program.code for number in instruction],
        }
        control = [0] * kernels.CONTROL_SIZE
        control[kernels.KEYS_MASK] = mask
        control[kernels.KEYS_WANTED] = len(self._keys)
        for place, numbers in regions.items():
            control[place] = len(control)
            control += numbers
        return self._integers(control)

    def _integers(self, values: list[int]) -> Any:  # noqa: ANN401 - a list or an array, see avro_kernels
        return values if self._interpreted else np.array(values, np.int64)

    def decode(self, buffer: bytes, ends: list[int], counts: list[int]) -> int:
        """Runs the kernels; 0, or the error code about the block and entry in `failed`."""
        arguments = (self._integers(ends), self._integers(counts), self._control, self._memory.reshape(-1))
        if self._interpreted:
            return kernels.decode_blocks(buffer, *arguments)
        return int(compiled().decode_blocks(np.frombuffer(buffer, np.uint8), *arguments))

    @property
    def failed(self) -> tuple[int, int]:
        """Index of the block and of the entry that were being decoded last."""
        return int(self._control[kernels.FAILED_BLOCK]), int(self._control[kernels.FAILED_ENTRY])

    def _rows(self, table: int) -> int:
        return int(self._control[self._control[kernels.ROWS_AT] + table])

    def part(self, buffer: bytes) -> Part:
        """The columns, once the kernels have run. They may share memory with this object, not with `buffer`."""
        columns = [self._column(buffer, i, layout) for i, layout in enumerate(self._program.columns)]
        slots: list[list[Column]] = []
        index = len(columns)
        for layout in self._program.slots:
            made = [self._leaf(buffer, index + k, 0, layout.kind, 0) for k in range(len(self._keys))]
            index += len(self._keys)
            slots.append(made)
        return Part(self._rows(0), columns, slots)

    def _column(self, buffer: bytes, index: int, layout: ColumnLayout) -> Column:
        return self._leaf(buffer, index, layout.table, layout.kind, layout.width)

    def _leaf(self, buffer: bytes, index: int, table: int, kind: str, width: int) -> Column:
        begin, count = self._base[index], self._rows(table)
        values, marks = self._memory[begin : begin + count].T
        valid = marks > 0
        if kind in ("int", "null"):
            return FixedColumn(values, valid)
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(marks - valid, out=offsets[1:])
        if kind == "list":
            return ListColumn(offsets, _NO_VALUES, valid)
        data = self._gather(buffer, values, offsets)
        if kind == "bytes":
            return BytesColumn(offsets, data, valid)
        numbers = np.zeros(count, _DTYPES[kind])
        numbers[valid] = data.view(_DTYPES[kind])
        assert data.nbytes == width * int(np.count_nonzero(valid))
        return FixedColumn(numbers, valid)

    def _gather(self, buffer: bytes, starts: Int64Array, offsets: Int64Array) -> ByteArray:
        if self._interpreted:
            sizes = np.diff(offsets).tolist()
            pieces = [buffer[a : a + n] for a, n in zip(starts.tolist(), sizes, strict=True)]
            return np.frombuffer(b"".join(pieces), np.uint8)
        out = np.empty(int(offsets[-1]), np.uint8)
        compiled().gather(np.frombuffer(buffer, np.uint8), starts, offsets, out)
        return out


_NO_VALUES: Int64Array = np.zeros(0, np.int64)


def _hash_table(keys: Sequence[int]) -> tuple[int, list[int]]:
    """The mask of an open-addressing table at most a quarter full, and its places: key and index; -1 is free."""
    size = 4
    while size < 4 * len(keys):
        size *= 2
    table = [-1, 0] * size
    for index, key in enumerate(keys):
        place = key & (size - 1)
        while table[2 * place] >= 0:
            place = (place + 1) & (size - 1)
        table[2 * place], table[2 * place + 1] = key, index
    return size - 1, table


def concatenate(parts: Sequence[Column]) -> Column:
    """One column of the same column of several chunks, in memory of its own."""
    masks = [part.valid for part in parts]
    valid = np.concatenate(cast("list[NDArray[np.bool_]]", masks))
    mask = None if valid.all() else valid
    first = parts[0]
    if isinstance(first, FixedColumn):
        return FixedColumn(np.concatenate([part.values for part in parts if isinstance(part, FixedColumn)]), mask)
    offsets = _joined_offsets([part.offsets for part in parts if not isinstance(part, FixedColumn)])
    if isinstance(first, ListColumn):
        return ListColumn(offsets, _NO_VALUES, mask)
    return BytesColumn(offsets, np.concatenate([part.data for part in parts if isinstance(part, BytesColumn)]), mask)


def _joined_offsets(parts: Sequence[Int64Array]) -> Int64Array:
    shift = 0
    made = [parts[0][:1]]
    for offsets in parts:
        made.append(offsets[1:] + shift)
        shift += int(offsets[-1])
    return np.concatenate(made)
