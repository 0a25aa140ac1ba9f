"""Parquet files: opening, row groups, and decoding of the wanted leaves."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from icebench.engine.columnar.schemas import field_id_of
from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.formats.file_columns import FileColumns
from icebench.engine.formats.name_mapping import FilesWithoutIds, assign_field_ids, has_field_ids
from icebench.engine.formats.parquet.annotations import without_null_groups
from icebench.engine.formats.parquet.chunk_storage import ChunkStorage
from icebench.engine.formats.parquet.content_end import end_of_content
from icebench.engine.formats.parquet.footer import check_footer, slim_footer
from icebench.engine.formats.parquet.footer_bytes import MARK_BYTES, footer_bytes, has_encrypted_footer
from icebench.engine.formats.parquet.footer_chunks import FooterChunks
from icebench.engine.formats.parquet.readers import BUFFER_BYTES, ParquetReaders
from icebench.engine.formats.parquet.thrift import shape_of
from icebench.engine.formats.source import (
    RowGroup,
    Source,
    explaining_missing_file,
    native_file,
    rechunk,
    slice_table,
    without_columns,
)
from icebench.engine.spec.name_mapping import NameMapping
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import DecimalType, Type, children
from icebench.engine.storage.store import Store

Footer: TypeAlias = pq.FileMetaData
"""The metadata of a Parquet file."""

_WHOLE_FILE_BYTES = 1 << 20
"""Smaller files are fetched by one request, as further requests would take longer than they save."""
_AT_ONCE_BYTES = 64 << 20
"""The column chunks of smaller row groups are fetched before decoding, by few requests; those of larger ones while they
are decoded, so that memory does not depend on the size of row groups, unless the wanted ones take no more than the
buffers would."""
_MOST_LISTED = 1000
"""Column chunks of a file, at most, whose sizes are looked up for that."""
_OLDER = "is_from_converted_type"
"""What pyarrow says of an annotation that is a converted type, with no logical type beside it."""
_BROKEN = (pa.ArrowException, OSError, ValueError, IndexError, OverflowError, MemoryError)
"""Errors of pyarrow for a damaged file, including a length that needs too much memory."""


class ParquetSource(Source):
    """An open Parquet file. Thread-safe.

    Args:
        dictionaries: Text columns, by name, to decode as Arrow dictionaries.
        field_ids: The top-level columns that will be read; None for any.
        size_bytes: The file's size according to the metadata, if known: a small file is read by one request. A file of
            another size is found all the same.

    Attributes:
        has_field_ids: Whether they are its own.
        chunks: The column chunks of the footer.
        in_memory: Whether the whole file was fetched when it was opened.
    """

    def __init__(
        self,
        store: Store,
        location: str,
        *,
        name_mapping: NameMapping | None = None,
        without_ids: FilesWithoutIds | None = None,
        needed_by: str | None = None,
        dictionaries: Sequence[str] = (),
        size_bytes: int | None = None,
        field_ids: Collection[int] | None = None,
    ) -> None:
        self.location = location
        self._field_ids = None if field_ids is None else frozenset(field_ids)
        self._name_mapping = name_mapping
        self._whole_footer: bytes | None = None
        in_memory = size_bytes is not None and size_bytes <= _WHOLE_FILE_BYTES
        with explaining_missing_file(location, needed_by):
            if in_memory:
                data = store.read(location, 0, _WHOLE_FILE_BYTES + 1)
                in_memory = len(data) <= _WHOLE_FILE_BYTES  # else the metadata state a wrong size
                self._input = pa.BufferReader(data)
            if not in_memory:
                self._input = native_file(store.open_input(location))
        self.in_memory = in_memory
        try:
            self.size_bytes = size = self._input.size()
            tail = footer_bytes(self._input, size)
            if tail is not None:
                check_footer(tail, size, location=location)
            elif has_encrypted_footer(self._input, size):
                raise Unsupported(f"the encrypted Parquet file {location}")
            known = None if in_memory and not dictionaries else tail
            if tail is not None and self._field_ids is not None:
                slim = slim_footer(tail, self._field_ids)
                self._whole_footer = tail if slim else None
                tail, known = slim or tail, slim or known
            self._readers = _readers(self._input, tail, known, dictionaries, in_memory=in_memory)
            self.footer: Footer = self._readers.footer
            self.num_rows = int(self.footer.num_rows)
            self.row_groups = _row_groups(self.footer)
            stored = self._readers.schema
            self.has_field_ids = has_field_ids(stored)
            if name_mapping is None and without_ids is not None and not self.has_field_ids:
                name_mapping = without_ids.ids_of(stored, location, store, by_position=True)
                self._name_mapping = name_mapping
            self.columns = FileColumns(assign_field_ids(stored, name_mapping, location), self.footer.num_columns)
            self.chunks = FooterChunks(tail, self.footer.num_row_groups, self.footer.num_columns)
        except _BROKEN as error:
            self._input.close()
            raise CorruptTable(f"not a readable Parquet file: {error}", location=location) from error
        except BaseException:
            self._input.close()
            raise

    @property
    def accounts_for_all_bytes(self) -> bool:
        # Not the footer that was kept: it may have been reduced to some columns.
        footer = footer_bytes(self._input, self.size_bytes)
        return footer is not None and end_of_content(footer) == self.size_bytes - len(footer) - MARK_BYTES

    def offset(self, row_group: int) -> int:
        # The same for each reader of a part of the file, whatever columns it wants.
        offset = self._all_chunks.offset(row_group)
        if offset is None:
            raise CorruptTable("no place of a column chunk", location=self.location, path=f"row group {row_group}")
        return offset

    def check_nanoseconds(self, field_ids: Collection[int]) -> None:
        """Refuse INT96 for these columns: it is read in microseconds, as most of its range has no nanoseconds in Arrow.

        Raises:
            Unsupported: One of them that will be read is stored so.
        """
        for leaf in self.columns.leaves:
            field_id = field_id_of(leaf.field)
            is_read = field_id in field_ids and (self._field_ids is None or field_id in self._field_ids)
            if is_read and self.footer.schema.column(leaf.index).physical_type == "INT96":
                raise Unsupported(f"nanoseconds of the INT96 column {leaf.path} of {self.location}")

    def ambiguous_zones(self) -> frozenset[int]:
        """See `Source.ambiguous_zones`: those in INT96, and those with none but the older annotation, which Iceberg
        Java 0.7 gave to both kinds; pyarrow takes the latter for moments."""
        found = set()
        for leaf in self.columns.leaves:
            if pat.is_timestamp(leaf.field.type):
                stored = self.footer.schema.column(leaf.index)
                if stored.physical_type == "INT96" or json.loads(stored.logical_type.to_json())[_OLDER]:
                    found.add(field_id_of(leaf.field))
        return frozenset(field_id for field_id in found if field_id is not None)

    @cached_property
    def _all_chunks(self) -> FooterChunks:
        """The column chunks of all columns, wanted or not."""
        if self._whole_footer is None:
            return self.chunks
        try:
            _, leaves, row_groups = shape_of(self._whole_footer)
        except (IndexError, ValueError) as error:
            raise CorruptTable(f"a damaged footer: {error}", location=self.location) from error
        return FooterChunks(self._whole_footer, row_groups, leaves)

    def storages(self) -> list[ChunkStorage]:
        """How the column chunks are stored, in order; raises CorruptTable for a damaged footer."""
        try:
            return self.chunks.storages()
        except (IndexError, ValueError) as error:
            raise CorruptTable(f"a damaged footer: {error}", location=self.location) from error

    def read(self, row_group: int, wanted: Schema) -> pa.Table:
        """See `Source.read`; exactly the wanted leaves are decoded."""
        leaves = self._leaves(wanted)
        if not leaves:
            return without_columns(self.row_groups[row_group].num_rows)
        return self._whole(row_group, leaves, narrow=False, threads=False)

    def batches(
        self,
        row_group: int,
        wanted: Schema,
        *,
        rows: int,
        narrow: bool = False,
        threads: bool = False,
    ) -> Iterator[pa.Table]:
        """See `Source.batches`; exactly the wanted leaves are decoded."""
        leaves = self._leaves(wanted)
        if not leaves:
            yield from slice_table(without_columns(self.row_groups[row_group].num_rows), rows)
            return
        narrow = narrow and any(_holds_narrow_decimal(f.type) for f in wanted.fields)
        is_small = self.row_groups[row_group].size_bytes <= _AT_ONCE_BYTES
        at_once = is_small or self._compressed_bytes(row_group, leaves) <= BUFFER_BYTES
        if is_small and 0 < self.row_groups[row_group].num_rows <= rows:
            yield self._whole(row_group, leaves, narrow=narrow, threads=threads)
            return
        found = self._readers.batches(row_group, leaves, rows=rows, narrow=narrow, at_once=at_once, threads=threads)
        count = 0
        for table in rechunk(self._tables(found, row_group), rows):
            count += table.num_rows
            yield self._with_field_ids(table)
        self._check_rows(count, row_group)

    def _compressed_bytes(self, row_group: int, leaves: Sequence[int]) -> float:
        """What column chunks take in the file; infinite where that is not known, or takes long to find out."""
        return sum(self._sizes.get((row_group, leaf), math.inf) for leaf in leaves)

    @cached_property
    def _sizes(self) -> Mapping[tuple[int, int], int]:
        """The compressed bytes of each column chunk, by row group and leaf."""
        if len(self.row_groups) * self.footer.num_columns > _MOST_LISTED:
            return {}
        try:
            return {(chunk.row_group, chunk.leaf): chunk.compressed_bytes for chunk in self.chunks.storages()}
        except (IndexError, ValueError):
            return {}

    def _whole(self, row_group: int, leaves: Sequence[int], *, narrow: bool, threads: bool) -> pa.Table:
        with self._decoding(row_group):
            table = self._readers.read(row_group, leaves, narrow=narrow, threads=threads)
        self._check_rows(table.num_rows, row_group)
        return self._with_field_ids(table)

    def _leaves(self, wanted: Schema) -> tuple[int, ...]:
        if self._field_ids is not None and not self._field_ids.issuperset(f.field_id for f in wanted.fields):
            raise AssertionError(f"{self.location} was opened for other columns than {wanted}")
        return self.columns.leaf_indices(wanted)

    def _tables(self, batches: Iterator[pa.RecordBatch], row_group: int) -> Iterator[pa.Table]:
        while True:
            with self._decoding(row_group):
                batch = next(batches, None)
            if batch is None:
                return
            yield pa.Table.from_batches([batch])

    @contextmanager
    def _decoding(self, row_group: int) -> Iterator[None]:
        try:
            yield
        except _BROKEN as error:
            raise CorruptTable(str(error), location=self.location, path=f"row group {row_group}") from error

    def _with_field_ids(self, table: pa.Table) -> pa.Table:
        if self.has_field_ids:
            return table
        return table.cast(assign_field_ids(table.schema, self._name_mapping, self.location))

    def _check_rows(self, rows: int, row_group: int) -> None:
        if rows != self.row_groups[row_group].num_rows:
            reason = f"has {rows} rows, and the footer says {self.row_groups[row_group].num_rows}"
            raise CorruptTable(reason, location=self.location, path=f"row group {row_group}")

    def close(self) -> None:
        self._readers.close()
        self._input.close()


def _readers(
    file: pa.NativeFile, tail: bytes | None, known: bytes | None, dictionaries: Sequence[str], *, in_memory: bool
) -> ParquetReaders:
    """Readers of a file; those of its footer without what pyarrow refuses, if it has such."""
    try:
        return ParquetReaders(file, known, dictionaries, in_memory=in_memory)
    except _BROKEN:
        readable = None if tail is None else without_null_groups(tail)
        if readable is None:
            raise
        return ParquetReaders(file, readable, dictionaries, in_memory=in_memory)


def _holds_narrow_decimal(type_: Type) -> bool:
    if isinstance(type_, DecimalType):
        return type_.precision <= 18
    return any(_holds_narrow_decimal(f.type) for f in children(type_))


def _row_groups(footer: Footer) -> tuple[RowGroup, ...]:
    """All row groups; raises ValueError if their rows do not add up to those of the file."""
    found = []
    first_row = 0
    for index in range(footer.num_row_groups):
        group = footer.row_group(index)
        if group.num_rows < 0:
            raise ValueError(f"row group {index} has {group.num_rows} rows")
        found.append(RowGroup(index, first_row, group.num_rows, group.total_byte_size))
        first_row += group.num_rows
    if first_row != footer.num_rows:
        raise ValueError(f"its row groups have {first_row} rows, and its footer says {footer.num_rows}")
    return tuple(found)
