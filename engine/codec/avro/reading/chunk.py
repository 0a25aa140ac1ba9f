"""Runs `chunk_kernels` over a chunk of a file: allocates their buffers and returns the decoded columns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icebench.engine.codec.array_views import ByteArray
from icebench.engine.codec.avro.compiled import chunk_kernels as kernels
from icebench.engine.codec.avro.compiled.kernels import FAILED_BLOCK, FAILED_ENTRY, MESSAGES, NO_ROOM
from icebench.engine.codec.avro.compiled.libdeflate import INSUFFICIENT_SPACE, decompressor
from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.codec.avro.file import AvroBlock
from icebench.engine.codec.avro.reading.arena import SLOT_BYTES, TOO_LARGE, BytesPart, Failure, Layout, Part, control_of
from icebench.engine.codec.block_codecs import Buffer, deflate_limit

_FIRST_ROOM = 4
_MORE_ROOM = 8
_LEAST_ROWS = 64
_SCRATCH_BYTES = 1 << 18
_SCRATCH_RATIO = 8
_SLACK = 1 << 10
_USUAL_BYTES = 160
_LACKING = (NO_ROOM, kernels.NO_ROWS, kernels.NO_STRINGS)
_BOUND_BYTES = 4
_REASONS = {
    kernels.NOT_INFLATED: "not valid deflate",
    kernels.TOO_LARGE: TOO_LARGE,
    kernels.TOO_MANY: "claims more objects than it has bytes for",
}
_KINDS = {"int": kernels.NUMBER, "null": kernels.NUMBER, "list": kernels.LIST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits in bytes: inflated size of a block, inflated size of all blocks, and size of the decoded columns."""

    block: int
    inflated: int
    kept: int


def run_chunk(
    layout: Layout, source: Buffer, blocks: Sequence[AvroBlock], *, is_deflated: bool, limits: Limits
) -> Part | Failure:
    """Decode the columns of these blocks.

    Buffers are sized by a guess; the run is repeated with larger ones if they overflow.

    Args:
        layout: What to decode.
        source: The bytes that the blocks are in.
        blocks: Their ranges in `source`.
        is_deflated: Whether they are compressed by deflate, rather than uncompressed.
        limits: Limits on inflated and decoded bytes.
    """
    data = np.frombuffer(source, np.uint8)
    table = np.array([(b.start, b.end, b.count) for b in blocks], np.int64).reshape(-1, 3)
    size = int((table[:, 1] - table[:, 0]).sum())
    largest = int((table[:, 1] - table[:, 0]).max(initial=0))
    most_inflated = deflate_limit(largest, limits.block)
    total, most = sum(b.count for b in blocks), max((b.count for b in blocks), default=0)  # exact: they may be wrong
    room = _Room(
        layout,
        limits,
        rows=min(total, size + _SLACK),
        block_rows=min(most, largest + _SLACK),
        scratch=min(max(_SCRATCH_BYTES, _SCRATCH_RATIO * largest), most_inflated) if is_deflated else 0,
        strings=max(size, _USUAL_BYTES * min(total, size)) + _SLACK,
    )
    with decompressor() if is_deflated else nullcontext((0, 0)) as inflater:
        while True:
            attempt = _Attempt(layout, room, limits)
            code = attempt.decode(data, table, inflater)
            if code == 0:
                return attempt.part()
            if code == kernels.NOT_INFLATED and attempt.lacked_scratch:
                has_grown = room.scratch < most_inflated
                room.scratch = min(4 * room.scratch, most_inflated)
            elif code in _LACKING:
                has_grown = room.grow(code, total, most)
            else:
                return attempt.failure(code)
            if not has_grown:
                # What a smaller limit of deflate's own allows is not too much: the bytes are wrong.
                is_broken = code == kernels.NOT_INFLATED and most_inflated < limits.block
                return attempt.failure(code if is_broken else kernels.TOO_LARGE)


class _Room:
    """Buffer sizes: rows in all and per block, elements of lists, inflated bytes, and string bytes."""

    def __init__(
        self, layout: Layout, limits: Limits, *, rows: int, block_rows: int, scratch: int, strings: int
    ) -> None:
        self._layout = layout
        self._limits = limits
        self._rows = rows
        self._block_rows = block_rows
        self._strings = strings
        self._elements = _FIRST_ROOM
        self.scratch = scratch
        self._bound_bytes = _BOUND_BYTES

    @property
    def strings(self) -> int:
        """Bytes for the strings of a column."""
        return min(self._strings, self._limits.kept + self._limits.block)

    @property
    def bounds(self) -> int:
        """Bytes for the bounds of a metrics column, which are short; there may be many such columns."""
        return min(self.strings, self._bound_bytes * self._elements * self._rows + _SLACK)

    @property
    def rows(self) -> list[int]:
        """Rows of each table."""
        return self._cap(self._rows, [self._limits.kept // size for size in self._layout.row_bytes])

    @property
    def block_rows(self) -> list[int]:
        """Rows of each table while a block is decoded."""
        most = self._limits.block // 2
        return self._cap(self._block_rows, [most // (SLOT_BYTES * max(len(own), 1)) for own in self._layout.tables])

    def _cap(self, rows: int, most: Sequence[int]) -> list[int]:
        wanted = [rows, *([self._elements * max(rows, _LEAST_ROWS)] * (len(most) - 1))]
        return [min(pair) for pair in zip(wanted, most, strict=True)]

    def grow(self, code: int, rows: int, block_rows: int) -> bool:
        """Enlarge the buffer that overflowed, within the limits, for `rows` objects in all and `block_rows` in a block.
        Returns False if it is at its limit."""
        before = self.strings, self.bounds, self.rows, self.block_rows
        if code == kernels.NO_STRINGS:
            self._strings *= _MORE_ROOM
            self._bound_bytes *= _MORE_ROOM
        else:
            if code == NO_ROOM or (self._rows, self._block_rows) == (rows, block_rows):
                self._elements *= _MORE_ROOM
            self._rows = min(_MORE_ROOM * self._rows, rows)
            self._block_rows = min(_MORE_ROOM * self._block_rows, block_rows)
        return (self.strings, self.bounds, self.rows, self.block_rows) != before


class _Attempt:
    def __init__(self, layout: Layout, room: _Room, limits: Limits) -> None:
        self._layout = layout
        block_room = room.block_rows
        self._rows = room.rows
        base, slots = layout.bases(block_room)
        self._memory = np.zeros(2 * slots, np.int64)
        self._control = np.array(control_of(layout, block_room, base), np.int64)
        self._tables = np.array([(0, *pair) for pair in zip(self._rows, layout.row_bytes, strict=True)], np.int64)
        self._columns = np.zeros((len(layout.kinds), kernels.WIDTH), np.int64)
        numbers = marks = ends = strings = 0
        for table, own in enumerate(layout.tables):
            rows = self._rows[table]
            for column in own:
                code = _KINDS.get(layout.kinds[column], kernels.BYTES)
                is_bound = column >= len(layout.program.columns)
                kept = 0 if code != kernels.BYTES else room.bounds if is_bound else room.strings
                at = numbers if code == kernels.NUMBER else ends
                self._columns[column] = code, table, base[column], at, marks, strings, kept, 0
                marks += rows
                strings += kept
                if code == kernels.NUMBER:
                    numbers += rows
                else:
                    ends += rows + 1
        self._numbers = np.empty(numbers, np.int64)
        self._valid = np.empty(marks, np.bool_)
        self._offsets = np.zeros(ends, np.int64)
        self._strings = np.empty(strings, np.uint8)
        self._scratch = np.empty(room.scratch, np.uint8)
        self._call = np.zeros(kernels.CALL, np.int64)
        self._call[[kernels.KEEPABLE, kernels.INFLATABLE]] = limits.kept, limits.inflated

    def decode(self, source: ByteArray, blocks: NDArray[np.int64], inflater: tuple[int, int]) -> int:
        """Run the kernels; returns 0 or an error code."""
        call = self._call
        call[kernels.FUNCTION], call[kernels.DECOMPRESSOR] = inflater
        call[kernels.SOURCE], call[kernels.SCRATCH] = source.ctypes.data, self._scratch.ctypes.data
        call[kernels.MADE_AT] = call.ctypes.data + kernels.MADE * call.itemsize
        call[kernels.SMALLEST] = max(self._layout.program.smallest, 1)
        return DECODE_CHUNK(
            source,
            blocks,
            self._scratch,
            call,
            self._control,
            self._memory,
            self._columns,
            self._tables,
            self._numbers,
            self._valid.view(np.uint8),
            self._offsets,
            self._strings,
        )

    @property
    def lacked_scratch(self) -> bool:
        """Whether a block inflates to more than the scratch buffer holds."""
        return bool(self._call[kernels.STATUS] == INSUFFICIENT_SPACE)

    def failure(self, code: int) -> Failure:
        """The error of an error code."""
        reason = _REASONS.get(code) or MESSAGES[code]
        return Failure(reason, int(self._control[FAILED_BLOCK]), int(self._control[FAILED_ENTRY]))

    def part(self) -> Part:
        """The decoded columns."""
        layout = self._layout
        part = Part([], [], [], {}, {})
        numbers = marks = 0
        for table, columns in enumerate(layout.tables):
            room, rows = self._rows[table], int(self._tables[table, kernels.DONE])
            of_numbers, of_all = layout.numbers[table] * room, len(columns) * room
            part.rows.append(rows)
            part.numbers.append(
                self._numbers[numbers : numbers + of_numbers].reshape(layout.numbers[table], room)[:, :rows]
            )
            part.valid.append(self._valid[marks : marks + of_all].reshape(len(columns), room)[:, :rows])
            numbers, marks = numbers + of_numbers, marks + of_all
            for column in columns[layout.numbers[table] :]:
                at, first, used = self._columns[column, [kernels.VALUES_AT, kernels.STRINGS_AT, kernels.USED]].tolist()
                offsets = self._offsets[at : at + rows + 1]
                if layout.kinds[column] == "list":
                    part.lists[column] = offsets
                else:
                    part.strings[column] = BytesPart(offsets, self._strings[first : first + used])
        return part
