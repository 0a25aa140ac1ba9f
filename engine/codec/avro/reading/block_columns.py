"""Decodes the blocks of an Avro file into columns by field id.

A file is decoded in chunks of neighbouring blocks: inflate, run the program, copy the byte strings, drop the inflated
bytes. Memory is bounded by one chunk and the result. Chunks are independent and may run on several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import Int64Array, bytes_array, has_values, list_array, number_array
from icebench.engine.codec.avro.compiled.libdeflate import is_callable
from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.codec.avro.file import AvroBlock, AvroHeader, read_blocks
from icebench.engine.codec.avro.reading.arena import TOO_LARGE, Failure, Layout, Part, run
from icebench.engine.codec.avro.reading.chunk import Limits, run_chunk
from icebench.engine.codec.avro.reading.program import ColumnLayout, Path, Selection, compile_schema
from icebench.engine.codec.block_codecs import BadBlockError, Buffer, Inflater
from icebench.engine.codec.budget import Allowance, Budget, budget_of, piece_limit, too_large
from icebench.engine.errors import CorruptTable

_CHUNK_BYTES = 1 << 20
"""Compressed bytes of a chunk: large enough for the cost of calling compiled code not to matter."""

_USUAL_RATIO = 2
"""Usual compression ratio of manifests."""
_MOST_RATIO = 8
_SMALL_BYTES = 1 << 16
_MOST_INFLATED = 2
"""How many budgets a file may inflate to in total: most bytes of a manifest are skipped."""
_DTYPES: dict[str, Any] = {"boolean": np.uint8, "float": np.dtype("<f4"), "double": np.dtype("<f8")}


class MapFunction(Protocol):
    """Runs independent calls, in order, like the built-in `map`; a thread pool's `map` runs several at once."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]: ...


@dataclass(frozen=True, slots=True)
class DecodedObjects:
    """The decoded columns (see `icebench.engine.codec.array_views`). Those of lists have elements of Arrow's type null:
    these are columns of their own, whose paths extend the list's; their rows are all elements of all lists, in order.
    `slots` has a column for each wanted key that occurs, map by map."""

    count: int
    columns: Mapping[Path, pa.Array]
    slots: Mapping[Path, Mapping[int, pa.Array]]
    layouts: Mapping[Path, ColumnLayout]


def decode_objects(
    data: bytes,
    header: AvroHeader,
    selection: Selection,
    *,
    keys: Sequence[int] = (),
    map_chunks: MapFunction = map,
    fraction: int = 1,
    blocks: Sequence[AvroBlock] | None = None,
) -> DecodedObjects:
    """Decode the selected columns of all objects in a file.

    Args:
        data: The whole file.
        header: Its header.
        selection: What to decode.
        keys: The wanted keys of the maps in `selection.slots`, distinct and not negative.
        map_chunks: Maps a function over the chunks, in order.
        fraction: The columns may take this fraction (1 / `fraction`) of the file's budget.
        blocks: The blocks of `data`, where it is several files of the same schema and codec; by default they are read.

    Raises:
        TooLarge: See `icebench.engine.codec.budget`.
        CorruptTable: The bytes contradict the Avro specification or the writer schema; `path` says which block and
            entry.
        Unsupported: A codec or a schema that Iceberg does not use.
    """
    try:
        layout = _layout_of(header.schema_json, selection, tuple(keys))
    except CorruptTable as error:
        raise type(error)(error.reason, location=header.location, path=error.path) from error
    program = layout.program
    blocks = read_blocks(data, header) if blocks is None else blocks
    # If the kernel inflates block by block, chunks only serve threads.
    chunks = [blocks] if map_chunks is map and _inflates_in_kernel(header) else _chunks(blocks)
    task = _ChunkTask(data, header, layout, Budget(budget_of(len(data)) // fraction, len(chunks)))
    joined = _Joined(layout, [part for parts in map_chunks(task, chunks) for part in parts])
    columns = {column.path: joined.column(index) for index, column in enumerate(program.columns)}
    slots: dict[Path, dict[int, pa.Array]] = {}
    index = len(columns)
    for slot in program.slots:
        found = {key: joined.column(index + k) for k, key in enumerate(layout.keys)}
        slots[slot.path] = {key: column for key, column in found.items() if has_values(column)}
        index += len(layout.keys)
    return DecodedObjects(joined.count, columns, slots, {column.path: column for column in program.columns})


@lru_cache(maxsize=64)
def _layout_of(schema_json: bytes, selection: Selection, keys: tuple[int, ...]) -> Layout:
    """Cached, because the manifests of a table have few distinct writer schemas."""
    return Layout(compile_schema(schema_json, selection), keys)


def _chunks(blocks: Sequence[AvroBlock]) -> list[Sequence[AvroBlock]]:
    chunks: list[Sequence[AvroBlock]] = []
    begin = size = 0
    for index, block in enumerate(blocks):
        size += block.end - block.start
        if size >= _CHUNK_BYTES:
            chunks.append(blocks[begin : index + 1])
            begin, size = index + 1, 0
    if begin < len(blocks) or not blocks:
        chunks.append(blocks[begin:])
    return chunks


@dataclass(frozen=True, slots=True)
class _ChunkTask:
    """Decodes one chunk. Thread-safe. The decoded columns count towards the budget."""

    data: bytes
    header: AvroHeader
    layout: Layout
    budget: Budget

    def __call__(self, blocks: Sequence[AvroBlock]) -> list[Part]:
        with self.budget.allowance() as own:
            parts: list[Part] = []
            for made, first in self._decoded(blocks, own):
                if isinstance(made, Failure):
                    raise self._error(made, first + made.block)
                own.used_bytes += made.nbytes
                parts.append(made)
            return parts

    def _decoded(self, blocks: Sequence[AvroBlock], own: Allowance) -> Iterator[tuple[Part | Failure, int]]:
        """Decode the blocks in one or several parts, each with the index of its first block in the file."""
        size = sum(block.end - block.start for block in blocks)
        is_small = not DECODE_CHUNK.should_use(_USUAL_RATIO * size)
        if not is_small and _inflates_in_kernel(self.header):
            made = run_chunk(self.layout, self.data, blocks, is_deflated=True, limits=self._limits(own))
            yield made, blocks[0].index if blocks else 0
            return
        for some, bodies in self._inflated(blocks, own):
            buffer = b"".join(bodies)
            first = some[0].index if some else 0
            ends = list(accumulate(map(len, bodies), initial=0))
            if is_small and (
                len(buffer) <= _MOST_RATIO * size + _SMALL_BYTES or not DECODE_CHUNK.should_use(len(buffer))
            ):
                counts = [block.count for block in some]
                yield run(self.layout, buffer, ends[1:], counts, own.left_bytes), first
            else:
                inflated = [replace(b, start=ends[i], end=ends[i + 1]) for i, b in enumerate(some)]
                yield run_chunk(self.layout, buffer, inflated, is_deflated=False, limits=self._limits(own)), first

    def _limits(self, own: Allowance) -> Limits:
        inflated = _MOST_INFLATED * own.size_bytes
        return Limits(block=piece_limit(len(self.data)), inflated=inflated, kept=own.left_bytes)

    def _inflated(self, blocks: Sequence[AvroBlock], own: Allowance) -> Iterator[tuple[list[AvroBlock], list[Buffer]]]:
        """Inflate the blocks, as many at a time as the limit allows."""
        limit = piece_limit(len(self.data))
        inflate = Inflater(self.header.codec, limit)
        smallest = max(self.layout.program.smallest, 1)
        view = memoryview(self.data)
        some: list[AvroBlock] = []
        bodies: list[Buffer] = []
        size, left = 0, _MOST_INFLATED * own.size_bytes
        for block in blocks:
            try:
                body = inflate(view[block.start : block.end])
            except BadBlockError as error:
                raise error.at(self.header.location, f"block {block.index}") from error
            if block.count * smallest > len(body):
                reason = f"claims {block.count} objects in {len(body)} bytes"
                raise CorruptTable(reason, location=self.header.location, path=f"block {block.index}")
            left -= len(body)
            if left < 0:
                raise self._error(Failure(TOO_LARGE, 0, 0), block.index)
            if some and size + len(body) > limit:
                yield some, bodies
                some, bodies, size = [], [], 0
            some.append(block)
            bodies.append(body)
            size += len(body)
        yield some, bodies

    def _error(self, failure: Failure, block: int) -> CorruptTable:
        place = f"block {block}, entry {failure.entry}"
        if failure.reason == TOO_LARGE:
            size = len(self.data)
            return too_large(f"a file of {size} bytes", budget_of(size), location=self.header.location, path=place)
        return CorruptTable(failure.reason, location=self.header.location, path=place)


def _inflates_in_kernel(header: AvroHeader) -> bool:
    """Whether compiled kernels inflate the blocks themselves."""
    return header.codec == "deflate" and is_callable()


class _Joined:
    """Concatenates the columns of all chunks."""

    def __init__(self, layout: Layout, parts: Sequence[Part]) -> None:
        self._layout = layout
        self._parts = parts
        self.count = sum(part.rows[0] for part in parts)
        tables = range(len(layout.tables))
        self._numbers = [_concatenate([part.numbers[t] for part in parts]) for t in tables]
        self._valid = [_concatenate([part.valid[t] for part in parts]) for t in tables]
        self._all_valid = [np.asarray(valid.all(axis=1)).tolist() for valid in self._valid]

    def column(self, index: int) -> pa.Array:
        """A column by index: those of the program first, then those of the slot maps."""
        table, place = self._layout.place[index]
        valid = None if self._all_valid[table][place] else self._valid[table][place]
        match self._layout.kinds[index]:
            case "int" | "null":
                return number_array(self._numbers[table][place], valid)
            case "list":
                ends = _concatenate_offsets([part.lists[index] for part in self._parts])
                return list_array(ends, pa.nulls(int(ends[-1])), valid)
        strings = [part.strings[index] for part in self._parts]
        data = np.concatenate([part.data for part in strings])
        kind = self._layout.kinds[index]
        if kind == "bytes":
            return bytes_array(_concatenate_offsets([part.offsets for part in strings]), data, valid)
        # Byte strings of fixed width are numbers.
        numbers = np.zeros(self._valid[table].shape[1], _DTYPES[kind])
        numbers[self._valid[table][place]] = data.view(numbers.dtype)
        return number_array(numbers, valid)


def _concatenate(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate planes along their rows, without unused capacity."""
    return parts[0] if len(parts) == 1 and parts[0].flags.c_contiguous else np.concatenate(parts, axis=1)


def _concatenate_offsets(parts: Sequence[Int64Array]) -> Int64Array:
    if len(parts) == 1:
        return parts[0]
    shift = 0
    made = [parts[0][:1]]
    for offsets in parts:
        made.append(offsets[1:] + shift)
        shift += int(offsets[-1])
    return np.concatenate(made)
