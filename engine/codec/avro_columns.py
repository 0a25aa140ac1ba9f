"""Decodes the blocks of an Avro file into columns by field id.

A file is worked through in chunks of neighbouring blocks: inflate, run the program, copy the byte strings out, drop the
inflated bytes. Memory is bounded by a chunk and the result; chunks are independent, so they may run on several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.codec.avro_arena import Failure, Layout, Part, run
from engine.codec.avro_chunk import run_chunk
from engine.codec.avro_file import AvroBlock, AvroHeader, read_blocks
from engine.codec.avro_program import ColumnLayout, Path, Selection, compile_schema
from engine.codec.block_codecs import BadBlockError, Buffer, Inflater, deflate_limit
from engine.codec.columns import BoolArray, BytesColumn, FixedColumn, Int64Array, ListColumn
from engine.codec.kernel_choice import interprets_chunk as interprets
from engine.codec.libdeflate import is_callable
from engine.errors import CorruptTable

Column: TypeAlias = FixedColumn | BytesColumn | ListColumn

_CHUNK_BYTES = 1 << 20
"""Compressed bytes of a chunk: large enough that the calls between Python and compiled code do not matter."""

_USUAL_RATIO = 2
"""What manifests inflate to."""
_NO_VALUES: Int64Array = np.zeros(0, np.int64)
_DTYPES: dict[str, Any] = {"boolean": np.uint8, "float": np.dtype("<f4"), "double": np.dtype("<f8")}


class MapFunction(Protocol):
    """Runs independent calls, in order, like the built-in `map`; a thread pool's `map` runs several at once."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]: ...


@dataclass(frozen=True, slots=True)
class DecodedObjects:
    """The decoded columns. A list column's elements are columns of their own, whose paths extend the list's; their
    rows are all elements of all lists, in order. `slots` has a column for each wanted key that occurs, map by map."""

    count: int
    columns: Mapping[Path, Column]
    slots: Mapping[Path, Mapping[int, Column]]
    layouts: Mapping[Path, ColumnLayout]


def decode_objects(
    data: bytes,
    header: AvroHeader,
    selection: Selection,
    *,
    keys: Sequence[int] = (),
    map_chunks: MapFunction = map,
) -> DecodedObjects:
    """The selected columns of all objects in the file.

    Args:
        data: The whole file.
        header: Its header.
        selection: What to decode.
        keys: The wanted keys of the maps in `selection.slots`, distinct and not negative.
        map_chunks: Runs the chunks.

    Raises:
        CorruptTable: The bytes contradict the Avro specification or the writer schema; `path` says which block and
            entry.
        Unsupported: A codec or a schema that Iceberg does not use.
    """
    try:
        layout = _layout_of(header.schema_json, selection, tuple(keys))
    except CorruptTable as error:
        raise CorruptTable(error.reason, location=header.location, path=error.path) from error
    program = layout.program
    blocks = read_blocks(data, header)
    task = _ChunkTask(data, header, layout)
    # Where blocks are inflated one at a time, chunks are for threads alone.
    chunks = [blocks] if map_chunks is map and task.inflates_in_kernel else _chunks(blocks)
    joined = _Joined(layout, list(map_chunks(task, chunks)))
    columns = {column.path: joined.column(index) for index, column in enumerate(program.columns)}
    slots: dict[Path, dict[int, Column]] = {}
    index = len(columns)
    for slot in program.slots:
        found = {key: joined.column(index + k) for k, key in enumerate(layout.keys)}
        slots[slot.path] = {key: column for key, column in found.items() if column.has_values}
        index += len(layout.keys)
    return DecodedObjects(joined.count, columns, slots, {column.path: column for column in program.columns})


@lru_cache(maxsize=64)
def _layout_of(schema_json: bytes, selection: Selection, keys: tuple[int, ...]) -> Layout:
    """Kept, because the manifests of a table have one writer schema or few."""
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
    """Decodes one chunk; safe to run on several threads."""

    data: bytes
    header: AvroHeader
    layout: Layout

    def __call__(self, blocks: Sequence[AvroBlock]) -> Part:
        size = sum(block.end - block.start for block in blocks)
        made = self._interpreted(blocks) if interprets(_USUAL_RATIO * size) else self._compiled(blocks)
        if isinstance(made, Failure):
            block = blocks[made.block]
            if not made.reason:
                raise self._corrupt("not valid deflate", block)
            place = f"block {block.index}, entry {made.entry}"
            raise CorruptTable(made.reason, location=self.header.location, path=place)
        return made

    def _interpreted(self, blocks: Sequence[AvroBlock]) -> Part | Failure:
        bodies = self._inflate(blocks)
        counts = [block.count for block in blocks]
        return run(self.layout, b"".join(bodies), list(accumulate(map(len, bodies))), counts)

    @property
    def inflates_in_kernel(self) -> bool:
        """Whether compiled kernels inflate the blocks themselves."""
        return self.header.codec == "deflate" and is_callable()

    def _compiled(self, blocks: Sequence[AvroBlock]) -> Part | Failure:
        if self.inflates_in_kernel:
            most = deflate_limit(max((block.end - block.start for block in blocks), default=0))
            return run_chunk(self.layout, self.data, blocks, is_deflated=True, most_inflated=most)
        bodies = self._inflate(blocks)
        ends = list(accumulate(map(len, bodies), initial=0))
        inflated = [replace(b, start=ends[i], end=ends[i + 1]) for i, b in enumerate(blocks)]
        return run_chunk(self.layout, b"".join(bodies), inflated, is_deflated=False, most_inflated=0)

    def _inflate(self, blocks: Sequence[AvroBlock]) -> list[Buffer]:
        inflate = Inflater(self.header.codec)
        smallest = max(self.layout.program.smallest, 1)
        view = memoryview(self.data)
        bodies: list[Buffer] = []
        for block in blocks:
            try:
                body = inflate(view[block.start : block.end])
            except BadBlockError as error:
                raise self._corrupt(str(error), block) from error
            if block.count * smallest > len(body):
                raise self._corrupt(f"claims {block.count} objects in {len(body)} bytes", block)
            bodies.append(body)
        return bodies

    def _corrupt(self, reason: str, block: AvroBlock) -> CorruptTable:
        return CorruptTable(reason, location=self.header.location, path=f"block {block.index}")


class _Joined:
    """The columns of all chunks."""

    def __init__(self, layout: Layout, parts: Sequence[Part]) -> None:
        self._layout = layout
        self._parts = parts
        self.count = sum(part.rows[0] for part in parts)
        tables = range(len(layout.tables))
        self._numbers = [_joined([part.numbers[t] for part in parts]) for t in tables]
        self._valid = [_joined([part.valid[t] for part in parts]) for t in tables]
        self._all_valid = [np.asarray(valid.all(axis=1)).tolist() for valid in self._valid]

    def column(self, index: int) -> Column:
        """A column of the program, or after those one of a slot map."""
        table, place = self._layout.place[index]
        valid = None if self._all_valid[table][place] else self._valid[table][place]
        match self._layout.kinds[index]:
            case "int" | "null":
                return FixedColumn(self._numbers[table][place], valid)
            case "list":
                return ListColumn(_joined_offsets([part.lists[index] for part in self._parts]), _NO_VALUES, valid)
        strings = [part.strings[index] for part in self._parts]
        column = BytesColumn(
            _joined_offsets([part.offsets for part in strings]), np.concatenate([part.data for part in strings]), valid
        )
        kind = self._layout.kinds[index]
        return column if kind == "bytes" else _numbers_of(column, self._valid[table][place], _DTYPES[kind])


def _numbers_of(column: BytesColumn, valid: BoolArray, dtype: Any) -> FixedColumn:  # noqa: ANN401 - any numpy dtype
    """Numbers that were taken for byte strings of their width."""
    numbers = np.zeros(len(column), dtype)
    numbers[valid] = column.data.view(dtype)
    return FixedColumn(numbers, column.valid)


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Planes side by side, without the room that was not needed."""
    return parts[0] if len(parts) == 1 and parts[0].flags.c_contiguous else np.concatenate(parts, axis=1)


def _joined_offsets(parts: Sequence[Int64Array]) -> Int64Array:
    if len(parts) == 1:
        return parts[0]
    shift = 0
    made = [parts[0][:1]]
    for offsets in parts:
        made.append(offsets[1:] + shift)
        shift += int(offsets[-1])
    return np.concatenate(made)
