"""Decodes the blocks of an Avro file into columns by field id.

A file is worked through in chunks of neighbouring blocks: inflate, run the program, copy the byte strings out, drop the
inflated bytes. Memory is bounded by a chunk and the result; chunks are independent, so they may run on several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

from engine.codec import avro_kernels as kernels
from engine.codec.avro_arena import Column, Part, Run, concatenate
from engine.codec.avro_file import AvroBlock, AvroHeader, read_blocks
from engine.codec.avro_program import ColumnLayout, Path, Program, Selection, compile_schema
from engine.codec.block_codecs import BadBlockError, Buffer, Inflater
from engine.codec.kernel_choice import interprets
from engine.errors import CorruptTable

_CHUNK_BYTES = 1 << 20
"""Compressed bytes of a chunk: large enough that the calls between Python and compiled code do not matter."""


class MapFunction(Protocol):
    """Runs independent calls, in order, like the built-in `map`; a thread pool's `map` runs several at once."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]: ...


@dataclass(frozen=True, slots=True)
class DecodedObjects:
    """The decoded columns. A list column's elements are columns of their own, whose paths extend the list's; their
    rows are all elements of all lists, in order. `slots` has a column for each wanted key, map by map."""

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
        program = compile_schema(header.schema_json, selection)
    except CorruptTable as error:
        raise CorruptTable(error.reason, location=header.location, path=error.path) from error
    blocks = read_blocks(data, header)
    task = _ChunkTask(data, header, program, tuple(keys))
    parts = list(map_chunks(task, _chunks(blocks)))
    columns = {
        layout.path: concatenate([part.columns[i] for part in parts]) for i, layout in enumerate(program.columns)
    }
    slots = {
        layout.path: {
            key: concatenate([part.slots[m][k] for part in parts])
            for k, key in enumerate(task.keys)
            if any(part.slots[m][k].has_values for part in parts)
        }
        for m, layout in enumerate(program.slots)
    }
    layouts = {layout.path: layout for layout in program.columns}
    return DecodedObjects(sum(part.count for part in parts), columns, slots, layouts)


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
    """Decodes one chunk; picklable, and safe to run on several threads."""

    data: bytes
    header: AvroHeader
    program: Program
    keys: tuple[int, ...]

    def __call__(self, blocks: Sequence[AvroBlock]) -> Part:
        bodies = self._inflate(blocks)
        buffer = bytes(bodies[0]) if len(bodies) == 1 else b"".join(bodies)
        counts = [block.count for block in blocks]
        ends = list(accumulate(map(len, bodies)))
        rows = [sum(counts), *(len(buffer) // size + 1 for size in self.program.table_smallest[1:])]
        run = Run(self.program, self.keys, rows, interpreted=interprets(len(buffer)))
        code = run.decode(buffer, ends, counts)
        if code < 0:
            block, entry = run.failed
            place = f"block {blocks[block].index}, entry {entry}"
            raise CorruptTable(kernels.MESSAGES[code], location=self.header.location, path=place)
        return run.part(buffer)

    def _inflate(self, blocks: Sequence[AvroBlock]) -> list[Buffer]:
        inflate = Inflater(self.header.codec)
        view = memoryview(self.data)
        bodies: list[Buffer] = []
        for block in blocks:
            try:
                body = inflate(view[block.start : block.end])
            except BadBlockError as error:
                raise self._corrupt(str(error), block) from error
            if block.count * max(self.program.smallest, 1) > len(body):
                raise self._corrupt(f"claims {block.count} objects in {len(body)} bytes", block)
            bodies.append(body)
        return bodies

    def _corrupt(self, reason: str, block: AvroBlock) -> CorruptTable:
        return CorruptTable(reason, location=self.header.location, path=f"block {block.index}")
