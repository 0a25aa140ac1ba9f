"""Runs a `program` over one chunk in plain Python, and holds the output of the kernels.

`chunk` is the same for compiled kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from icebench.engine.codec.array_views import ByteArray, Int64Array
from icebench.engine.codec.avro.compiled import kernels
from icebench.engine.codec.avro.reading.program import COLUMN_OPS, Program
from icebench.engine.codec.taking import gather
from icebench.engine.spec.types import MAX_DEPTH

Bool2: TypeAlias = NDArray[np.bool_]

_FIRST_ROOM = 4
_MORE_ROOM = 8
SLOT_BYTES = 16
TOO_LARGE = "more memory than is left for the file"


@dataclass(frozen=True, slots=True)
class BytesPart:
    """The byte strings of a column in one chunk."""

    offsets: Int64Array
    data: ByteArray


@dataclass(frozen=True, slots=True)
class Part:
    """The decoded columns of one chunk.

    Per table: values of the number columns, and validity of all columns, one row per column (see `Layout`). Per
    column: byte strings, and for lists the range of their elements in the chunk.
    """

    rows: list[int]
    numbers: list[Int64Array]
    valid: list[Bool2]
    strings: dict[int, BytesPart]
    lists: dict[int, Int64Array]

    @property
    def nbytes(self) -> int:
        """Size of the columns in bytes."""
        strings = sum(part.offsets.nbytes + part.data.nbytes for part in self.strings.values())
        arrays = [*self.numbers, *self.valid, *self.lists.values()]
        return strings + sum(array.nbytes for array in arrays)


class Layout:
    """Order of a program's columns: table by table, number columns first in each.

    Columns are those of the program, then those of the slot maps, key by key.
    """

    def __init__(self, program: Program, keys: Sequence[int]) -> None:
        self.program = program
        self.keys = tuple(keys)
        kinds = [layout.kind for layout in program.columns]
        tables = [layout.table for layout in program.columns]
        for slot in program.slots:
            kinds += [slot.kind] * len(keys)
            tables += [0] * len(keys)
        self.kinds = kinds
        self.tables: list[list[int]] = []
        self.numbers: list[int] = []
        for table in range(len(program.table_smallest)):
            own = [c for c, t in enumerate(tables) if t == table]
            numbers = [c for c in own if kinds[c] in ("int", "null")]
            self.tables.append(numbers + [c for c in own if kinds[c] not in ("int", "null")])
            self.numbers.append(len(numbers))
        self.row_bytes = [max(9 * len(own), 1) for own in self.tables]  # a number and a mark for each column
        self.hashed_keys = _hash_table(keys)
        self.place = {c: (t, i) for t, columns in enumerate(self.tables) for i, c in enumerate(columns)}

    def bases(self, room: Sequence[int]) -> tuple[list[int], int]:
        """The first slot of each column for tables of `rows` rows, and the total number of slots."""
        starts = list(accumulate((len(own) * rows for own, rows in zip(self.tables, room, strict=True)), initial=0))
        base = [starts[table] + index * room[table] for table, index in (self.place[c] for c in range(len(self.kinds)))]
        return base, starts[-1]


def run(layout: Layout, buffer: bytes, ends: list[int], counts: list[int], keepable: int) -> Part | Failure:
    """Interpret the kernels over the blocks in `buffer`, which follow one another.

    Element buffers are sized by a guess; the run is repeated with larger ones if they overflow, up to `keepable` bytes.
    """
    objects = sum(counts)
    most = [objects, *(len(buffer) // smallest for smallest in layout.program.table_smallest[1:])]
    room = [objects, *(min(bound, _FIRST_ROOM * objects) for bound in most[1:])]
    while True:
        if SLOT_BYTES * layout.bases(room)[1] > keepable:
            return Failure(TOO_LARGE, 0, 0)
        attempt = _Attempt(layout, room)
        code = attempt.decode(buffer, ends, counts)
        if code == 0:
            return attempt.part(buffer)
        if code != kernels.NO_ROOM:
            return attempt.failure(code)
        if room == most:
            return attempt.failure(kernels.BAD_COUNT)
        room = [objects, *(min(bound, _MORE_ROOM * rows) for bound, rows in zip(most[1:], room[1:], strict=True))]


@dataclass(frozen=True, slots=True)
class Failure:
    """Location and reason of invalid bytes: index of the block in the chunk, and of the entry in the block. The reason
    `TOO_LARGE` is about memory, not about the bytes."""

    reason: str
    block: int
    entry: int


class _Attempt:
    def __init__(self, layout: Layout, room: Sequence[int]) -> None:
        self._layout = layout
        self._room = room
        base, slots = layout.bases(room)
        self._memory = np.zeros((slots, 2), np.int64)
        self._control = control_of(layout, room, base)

    def decode(self, buffer: bytes, ends: list[int], counts: list[int]) -> int:
        """Run the kernels; returns 0 or an error code."""
        return kernels.decode_blocks(buffer, ends, counts, self._control, self._memory.reshape(-1))

    def failure(self, code: int) -> Failure:
        """The error of an error code."""
        block, entry = self._control[kernels.FAILED_BLOCK], self._control[kernels.FAILED_ENTRY]
        return Failure(kernels.MESSAGES[code], int(block), int(entry))

    def part(self, buffer: bytes) -> Part:
        """The decoded columns, after a successful run. Shares memory with this object, not with `buffer`."""
        layout = self._layout
        part = Part([], [], [], {}, {})
        start = 0
        for table, columns in enumerate(layout.tables):
            room = self._room[table]
            rows = int(self._control[kernels.ROWS_AT + table])
            end = start + len(columns) * room
            slots = self._memory[start:end].reshape(len(columns), room, 2)
            values, marks = slots[:, :rows, 0], slots[:, :rows, 1]
            start = end
            part.rows.append(rows)
            part.numbers.append(values[: layout.numbers[table]])
            part.valid.append(marks > 0)
            for index in range(layout.numbers[table], len(columns)):
                offsets = np.zeros(rows + 1, np.int64)
                np.cumsum(marks[index] - part.valid[table][index], out=offsets[1:])
                column = columns[index]
                if layout.kinds[column] == "list":
                    part.lists[column] = offsets
                else:
                    part.strings[column] = BytesPart(
                        offsets, gather(np.frombuffer(buffer, np.uint8), values[index], offsets)
                    )
        return part


def control_of(layout: Layout, room: Sequence[int], base: Sequence[int]) -> list[int]:
    """The control array of a run (see `kernels`), with room for `rows` rows of each table."""
    mask, keys = layout.hashed_keys
    first = len(layout.program.columns)
    code: list[int] = []
    for op, a, b, c in layout.program.code:
        code += (op, base[a] if op in COLUMN_OPS else a, b, c)
    regions: dict[int, Sequence[int]] = {
        kernels.ROOM_AT: room,
        kernels.BASE_AT: base,
        kernels.STACK_AT: [0] * (2 * MAX_DEPTH + 2),
        kernels.KEYS_AT: keys,
        kernels.SLOTS_AT: [first + m * len(layout.keys) for m in range(len(layout.program.slots))],
        kernels.CODE_AT: code,
    }
    control = [0] * (kernels.ROWS_AT + len(room))
    control[kernels.KEYS_MASK] = mask
    control[kernels.KEYS_WANTED] = len(layout.keys)
    for place, numbers in regions.items():
        control[place] = len(control)
        control += numbers
    return control


def _hash_table(keys: Sequence[int]) -> tuple[int, list[int]]:
    """Mask and slots (key, index) of an open-addressing hash table that is at most a quarter full; index -1 is free."""
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
