"""Writes a Parquet file whose columns are encoded by several threads: byte for byte the file that one thread writes.

pyarrow encodes the columns of a row group one after the other. Here runs of neighbouring columns are written at the
same time, each by pyarrow as a file of its own in memory. Their column chunks follow one another in the file, then come
Bloom filters, column indexes and offset indexes (parquet.thrift: ColumnChunk), and a footer in which the offsets are
those of the whole file. What the footer says of the file as a whole is taken from a file without rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icebench.engine.formats.parquet.footer_bytes import MAGIC, MARK_BYTES, footer_file
from icebench.engine.formats.parquet.thrift import (
    INT64,
    LIST,
    STOP,
    STRUCT,
    read_field,
    read_list,
    read_number,
    read_struct,
    skip,
)
from icebench.engine.formats.parquet.thrift_writing import Pieces, field_head, list_head, numbers_in, put, signed, take
from icebench.engine.runtime.local import available_threads
from icebench.engine.runtime.runner import Runner
from icebench.engine.storage.store import OutputFile

MOST_ROWS = 1 << 26
"""Of a row group: pyarrow begins another one beyond (`_MAX_ROW_GROUP_SIZE`), whatever it is asked for."""
_RUNS_OF_A_THREAD = 4
"""Columns take different times; more runs than threads keep all of them at work."""
_NUM_ROWS, _ROW_GROUPS = 3, 4  # of FileMetaData
_COLUMNS, _GROUP_BYTES, _GROUP_COMPRESSED_BYTES = 1, 2, 6  # of RowGroup
_META = 3  # of ColumnChunk
_DATA_AT, _INDEX_AT, _DICTIONARY_AT = 9, 10, 11  # of ColumnMetaData
_BLOOM, _COLUMN_INDEX, _OFFSET_INDEX = (14, 15), (6, 7), (4, 5)
"""The fields with offset and length: of ColumnMetaData, and of ColumnChunk."""
_AFTER_ROWS = (_BLOOM, _COLUMN_INDEX, _OFFSET_INDEX)
"""In the order in which Arrow writes them."""
_TRUE, _FALSE = 1, 2
_INT32 = 5


@dataclass(frozen=True)
class _Chunk:
    """A column chunk whose values are in the file.

    Args:
        pieces: Its serialized description, with the offsets of the file that it was encoded in.
        moved_by: How much further on it is than there.
        after_rows: Its Bloom filter and indexes, by their fields.
    """

    pieces: Pieces
    moved_by: int
    after_rows: dict[tuple[int, int], bytes]


@dataclass(frozen=True)
class _Run:
    """Neighbouring columns of a row group, encoded.

    Args:
        data: Their column chunks.
        chunks: Pieces and what comes after the rows, of each.
        size_bytes: Before compression.
    """

    data: pa.Buffer
    chunks: Sequence[tuple[Pieces, dict[tuple[int, int], bytes]]]
    size_bytes: int


@dataclass(frozen=True)
class _RowGroup:
    chunks: list[_Chunk]
    rows: int
    start: int
    size_bytes: int
    compressed_bytes: int


class ParallelWriter:
    """Writes one file, as `pyarrow.parquet.ParquetWriter` does.

    Args:
        output: Where the file goes; stays open.
        schema: Of the rows.
        runner: Encodes.
        sorting_columns: The order of the rows.
        options: Further arguments of `pyarrow.parquet.ParquetWriter`.

    Attributes:
        metadata: Of the file, after `close`.
    """

    def __init__(
        self,
        output: OutputFile,
        schema: pa.Schema,
        *,
        runner: Runner,
        sorting_columns: Sequence[pq.SortingColumn] | None,
        **options: Any,  # noqa: ANN401 - theirs
    ) -> None:
        self._output = output
        self._schema = schema
        self._sorting = sorting_columns or ()
        self._options = options
        self._runner = runner
        size = max(-(-len(schema) // (available_threads() * _RUNS_OF_A_THREAD)), 1)
        self._runs = [range(start, min(start + size, len(schema))) for start in range(0, len(schema), size)]
        self._groups: list[_RowGroup] = []
        self._key_values: dict[str, str] = {}
        self.metadata: pq.FileMetaData | None = None
        output.write(MAGIC)

    def add_key_value_metadata(self, key_values: Mapping[str, str]) -> None:
        """Metadata of the file."""
        self._key_values.update(key_values)

    def write_table(self, rows: pa.Table, row_group_size: int) -> None:
        """Write rows as one row group.

        Args:
            rows: Of the schema; `MOST_ROWS` at most.
            row_group_size: At least so many.
        """
        assert row_group_size >= rows.num_rows <= MOST_ROWS
        start, size_bytes = self._output.tell(), 0
        chunks: list[_Chunk] = []
        for run in self._runner.map(partial(self._encode, rows), self._runs):
            moved_by = self._output.tell() - len(MAGIC)
            self._output.write(run.data)
            chunks += [_Chunk(pieces, moved_by, after_rows) for pieces, after_rows in run.chunks]
            size_bytes += run.size_bytes
        self._groups.append(_RowGroup(chunks, rows.num_rows, start, size_bytes, self._output.tell() - start))

    def _encode(self, rows: pa.Table, columns: range) -> _Run:
        own = rows.select(list(columns))
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, own.schema, **self._options) as writer:
            writer.write_table(own, row_group_size=max(rows.num_rows, 1))
        file = sink.getvalue()
        descriptions, group = _described_chunks(_footer_of(file))
        chunks = [(pieces, _after_rows(file, numbers_in(pieces))) for pieces in descriptions]
        return _Run(
            file.slice(len(MAGIC), group[_GROUP_COMPRESSED_BYTES]),
            chunks,
            group[_GROUP_BYTES],
        )

    def close(self) -> None:
        """Write what comes after the rows."""
        places: dict[tuple[int, int], dict[int, int]] = {}
        for fields in _AFTER_ROWS:
            for g, group in enumerate(self._groups):
                for c, chunk in enumerate(group.chunks):
                    if (data := chunk.after_rows.get(fields)) is not None:
                        if fields == _OFFSET_INDEX:
                            data = _moved_pages(data, chunk.moved_by)
                        places.setdefault((g, c), {}).update(zip(fields, (self._output.tell(), len(data)), strict=True))
                        self._output.write(data)
        groups = [
            self._described([_placed(chunk, places.get((g, c), {})) for c, chunk in enumerate(group.chunks)], group)
            for g, group in enumerate(self._groups)
        ]
        footer = self._footer(groups)
        self._output.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
        self.metadata = pq.read_metadata(footer_file(footer))

    def _described(self, chunks: list[bytes], group: _RowGroup) -> bytes:
        """A row group, serialized; Arrow leaves its ordinal out unless the file is encrypted."""
        sorting = [
            field_head(1, _INT32)
            + signed(key.column_index)
            + field_head(1, _TRUE if key.descending else _FALSE)
            + field_head(1, _TRUE if key.nulls_first else _FALSE)
            + bytes([STOP])
            for key in self._sorting
        ]
        return b"".join(
            (
                field_head(1, LIST) + list_head(len(chunks), STRUCT),
                *chunks,
                field_head(1, INT64) + signed(group.size_bytes),
                field_head(1, INT64) + signed(group.rows),
                field_head(1, LIST) + list_head(len(sorting), STRUCT) if sorting else b"",
                *sorting,
                field_head(1 if sorting else 2, INT64) + signed(group.start),
                field_head(1, INT64) + signed(group.compressed_bytes),
                bytes([STOP]),
            )
        )

    def _footer(self, groups: list[bytes]) -> bytes:
        """The footer of a file without rows, with these row groups in it."""
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, self._schema, **self._options) as writer:
            if self._key_values:
                writer.add_key_value_metadata(self._key_values)
        empty = _footer_of(sink.getvalue())
        new = {
            _NUM_ROWS: signed(sum(group.rows for group in self._groups)),
            _ROW_GROUPS: list_head(len(groups), STRUCT) + b"".join(groups),
        }
        parts: list[bytes] = []
        number, at, copied = 0, 0, 0
        while True:
            number, kind, value = read_field(empty, at, number)
            if kind == STOP:
                return b"".join([*parts, empty[copied:]])
            at = skip(empty, value, kind)
            if number in new:
                parts += [empty[copied:value], new[number]]
                copied = at


def _footer_of(file: pa.Buffer) -> bytes:
    end = file.size - MARK_BYTES
    length = int.from_bytes(file[end : end + 4].to_pybytes(), "little")
    return file[end - length : end].to_pybytes()


def _described_chunks(footer: bytes) -> tuple[list[Pieces], dict[int, int]]:
    """The column chunks of the only row group, and the group's own numbers by field."""
    number, kind, at = read_field(footer, 0, 0)
    while number != _ROW_GROUPS:
        number, kind, at = read_field(footer, skip(footer, at, kind), number)
    groups, _, at = read_list(footer, at)
    number, _, at = read_field(footer, at, 0)
    assert (groups, number) == (1, _COLUMNS)
    count, _, at = read_list(footer, at)
    chunks = []
    for _ in range(count):
        pieces, at = take(
            footer,
            at,
            {*_COLUMN_INDEX, *_OFFSET_INDEX},
            {_META: {_DATA_AT, _INDEX_AT, _DICTIONARY_AT, *_BLOOM}},
        )
        chunks.append(pieces)
    return chunks, read_struct(footer, at, number=number)[0]


def _after_rows(file: pa.Buffer, numbers: Mapping[int, int]) -> dict[tuple[int, int], bytes]:
    found = {}
    for fields in _AFTER_ROWS:
        start, length = (numbers.get(field) for field in fields)
        if start is not None and length is not None:
            found[fields] = file[start : start + length].to_pybytes()
    return found


def _moved_pages(offset_index: bytes, by: int) -> bytes:
    """An offset index whose pages are so much further on (parquet.thrift: OffsetIndex)."""
    _, _, at = read_field(offset_index, 0, 0)
    count, _, at = read_list(offset_index, at)
    parts = [offset_index[:at]]
    for _ in range(count):
        # A page location begins with its offset.
        _, _, value = read_field(offset_index, at, 0)
        offset, end = read_number(offset_index, value)
        parts += [offset_index[at:value], signed(offset + by)]
        at = skip(offset_index, at, STRUCT)
        parts.append(offset_index[end:at])
    return b"".join([*parts, offset_index[at:]])


def _placed(chunk: _Chunk, places: Mapping[int, int]) -> bytes:
    """The serialized chunk, with the offsets that it has in the file."""
    moved = {
        field: value + chunk.moved_by
        for field, value in numbers_in(chunk.pieces).items()
        if field in (_DATA_AT, _INDEX_AT, _DICTIONARY_AT)
    }
    return put(chunk.pieces, {**moved, **places})
