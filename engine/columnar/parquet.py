"""Parquet files: open one, know its row groups, decode the leaves that are wanted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from engine.codec.parquet_choice import KERNELS
from engine.codec.parquet_chunk import Chunk, KeptRows
from engine.codec.parquet_footer import check_footer, slim_footer
from engine.codec.parquet_footer_chunks import FooterChunks
from engine.codec.parquet_inflate import BadPageError
from engine.columnar.file_columns import FileColumns
from engine.columnar.name_mapping import has_field_ids, identified
from engine.columnar.parquet_bytes import FetchedBytes, fetch, footer_bytes
from engine.columnar.parquet_columns import OwnChunk, OwnColumns, decoded
from engine.columnar.parquet_readers import ParquetReaders
from engine.columnar.source import RowGroup, check_size, fetched, only, without_columns
from engine.errors import CorruptTable
from engine.runtime.crew import Crew
from engine.spec.name_mapping import NameMapping
from engine.spec.schema import Schema
from engine.spec.types import DecimalType, ListType, MapType, StructType, Type
from engine.storage.store import InputFile, Store

Footer: TypeAlias = pq.FileMetaData
"""The metadata of a Parquet file."""
Mask: TypeAlias = npt.NDArray[np.bool_]

_LEAST_ROWS = 100_000
"""In smaller row groups Python's share of a column chunk, which holds its lock, takes threads longer than the kernels
save: in those of 47,000 rows pyarrow takes three quarters of the time."""
_WHOLE_FILE_BYTES = 1 << 20
"""Smaller files are fetched by one request: more requests take longer than the bytes that they would save."""
_BROKEN = (pa.ArrowException, OSError, ValueError, IndexError, OverflowError, MemoryError)
"""What pyarrow raises at a damaged file; a length that it would need too much memory for is among them."""


class ParquetSource:
    """An open Parquet file, to be shared by threads.

    Args:
        store: Where the file is.
        location: The file.
        name_mapping: Gives field ids to a file that has none.
        needed_by: What refers to the file, for errors, e.g. ``"table db.t, snapshot 17"``.
        dictionaries: Text columns, by name, to decode as Arrow dictionaries.
        size_bytes: The file's size, where it is known; the file must have it.
        field_ids: The top-level columns that will be asked for; None for any.
        crew: Threads that may help to decode columns; by default nobody does.

    Attributes:
        columns: The file's columns with field ids, its own or those of the name mapping; of a wide file perhaps only
            those that will be asked for.
        has_field_ids: Whether they are its own.
        row_groups: All row groups, in file order.
        chunks: What the footer says of column chunks.

    Raises:
        FileNotFound: Naming the file and `needed_by`.
        CorruptTable: The file is not Parquet, or not of that size.
        Unsupported: The file has no field ids, and there is no name mapping.
    """

    def __init__(
        self,
        store: Store,
        location: str,
        *,
        name_mapping: NameMapping | None = None,
        needed_by: str | None = None,
        dictionaries: Sequence[str] = (),
        size_bytes: int | None = None,
        field_ids: Collection[int] | None = None,
        crew: Crew | None = None,
    ) -> None:
        self.location = location
        self._crew = crew or Crew()
        self._field_ids = None if field_ids is None else frozenset(field_ids)
        self._name_mapping = name_mapping
        in_memory = size_bytes is not None and size_bytes <= _WHOLE_FILE_BYTES
        self._whole: FetchedBytes | None = None
        with fetched(location, needed_by):
            if in_memory:
                data = store.read(location, 0, _WHOLE_FILE_BYTES)
                self._whole, self._input = FetchedBytes({0: data}), pa.BufferReader(data)
            else:
                self._input = _native(store.open_input(location))
        try:
            size = self._input.size()
            check_size(size, size_bytes, location)
            tail = footer_bytes(self._input, size)
            if tail is not None:
                check_footer(tail, size, location=location)
            if tail is not None and self._field_ids is not None:
                tail = slim_footer(tail, self._field_ids) or tail
            self._readers = ParquetReaders(self._input, tail, dictionaries, in_memory=in_memory)
            self.footer: Footer = self._readers.footer
            self.row_groups = _row_groups(self.footer)
            stored = self._readers.schema
            self.has_field_ids = has_field_ids(stored)
            self.columns = FileColumns(identified(stored, name_mapping, location), self.footer.num_columns)
            self.chunks = FooterChunks(tail, self.footer.num_row_groups, self.footer.num_columns)
            self._own = OwnColumns(self.footer, self.chunks, stored, size)
        except _BROKEN as error:
            self._input.close()
            raise CorruptTable(f"not a readable Parquet file: {error}", location=location) from error
        except BaseException:
            self._input.close()
            raise

    @property
    def num_rows(self) -> int:
        """How many rows the file has."""
        return int(self.footer.num_rows)

    def offset(self, row_group: int) -> int:
        """See `engine.columnar.source.Source.offset`."""
        offset = self.chunks.offset(row_group)
        if offset is None:
            raise CorruptTable("no place of a column chunk", location=self.location, path=f"row group {row_group}")
        return offset

    def read(self, row_group: int, wanted: Schema, *, narrow: bool = False, keep: Mask | None = None) -> pa.Table:
        """See `engine.columnar.source.Source.read`; exactly the wanted leaves are decoded."""
        if self._field_ids is not None and not self._field_ids.issuperset(f.field_id for f in wanted.fields):
            raise AssertionError(f"{self.location} was opened for other columns than {wanted}")
        leaves = self.columns.leaf_indices(wanted)
        if not leaves:
            rows = self.row_groups[row_group].num_rows
            return without_columns(rows if keep is None else int(np.count_nonzero(keep)))
        try:
            own = self._own_chunks(row_group, leaves, narrow=narrow)
            # Rows are left out of narrow decimals, and widened after that, for less than it takes to copy wide ones.
            narrow = (narrow or keep is not None) and any(_holds_narrow_decimal(f.type) for f in wanted.fields)
            table = self._decoded(row_group, leaves, own, narrow=narrow, keep=keep)
        except _BROKEN as error:
            raise CorruptTable(str(error), location=self.location, path=f"row group {row_group}") from error
        if self.has_field_ids:
            return table
        return table.cast(identified(table.schema, self._name_mapping, self.location))

    def _own_chunks(self, row_group: int, leaves: Sequence[int], *, narrow: bool) -> dict[int, OwnChunk]:
        """By leaf, the column chunks that are decoded here and not by pyarrow."""
        places = {leaf: self.columns.place_of_leaf(leaf) for leaf in leaves}
        stored = {leaf: self._own.stored(leaf, place, narrow=narrow) for leaf, place in places.items()}
        count = sum(found is not None for found in stored.values())
        rows = self.row_groups[row_group].num_rows
        if not count or rows < _LEAST_ROWS or not KERNELS.pays(count * rows):
            return {}
        chunks = {leaf: self._own.chunk(row_group, leaf, found) for leaf, found in stored.items() if found is not None}
        return {leaf: chunk for leaf, chunk in chunks.items() if chunk is not None}

    def _decoded(
        self, row_group: int, leaves: Sequence[int], own: dict[int, OwnChunk], *, narrow: bool, keep: Mask | None
    ) -> pa.Table:
        """Leaves of a row group, those of `own` decoded here as far as their pages are known, the others by pyarrow."""
        arrays: dict[int, pa.Array | pa.ChunkedArray] = {}
        parts = self._fetched(row_group, leaves) if own else None
        if parts is not None:
            kept = None if keep is None else KeptRows(keep)
            chunks = [(self.columns.place_of_leaf(leaf), chunk) for leaf, chunk in own.items()]
            made = self._crew.each(lambda own: self._decoded_here(row_group, *own, parts, kept), chunks)
            arrays.update((place, array) for (place, _), array in zip(chunks, made, strict=True) if array is not None)
        rest = [leaf for leaf in leaves if self.columns.place_of_leaf(leaf) not in arrays]
        if not rest:
            fields = [self._readers.schema.field(place).with_type(array.type) for place, array in arrays.items()]
            return pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields, self._readers.schema.metadata))
        table = self._readers.read(row_group, rest, narrow=narrow, fetched=parts)
        self._check_rows(table, row_group)
        return self._with(only(table, keep), rest, arrays)

    def _fetched(self, row_group: int, leaves: Sequence[int]) -> FetchedBytes:
        """The bytes of column chunks, as far as they are in the file."""
        if self._whole is not None:
            return self._whole
        size = self._input.size()
        places = [place for leaf in leaves if (place := self._own.place(row_group, leaf)) is not None]
        spans = [(p.start, min(p.size, size - p.start)) for p in places if 0 <= p.start < size and p.size > 0]
        return fetch(self._input, spans)

    def _decoded_here(
        self, row_group: int, place: int, chunk: OwnChunk, parts: FetchedBytes, keep: KeptRows | None
    ) -> pa.Array | None:
        """A column chunk; None where its pages are of a kind that pyarrow may know."""
        try:
            pages = Chunk(parts.span(*chunk.span), chunk.form)
            return decoded(pages, chunk, keep) if pages.is_known else None
        except BadPageError as error:
            path = f"row group {row_group}, column {self._readers.schema.field(place).name}"
            raise CorruptTable(str(error), location=self.location, path=path) from error

    def _with(self, table: pa.Table, leaves: Sequence[int], arrays: dict[int, pa.Array | pa.ChunkedArray]) -> pa.Table:
        """The columns that pyarrow decoded, which have these leaves, and ours, in the file's order."""
        if not arrays:
            return table
        fields = {place: self._readers.schema.field(place).with_type(array.type) for place, array in arrays.items()}
        places = dict.fromkeys(self.columns.place_of_leaf(leaf) for leaf in leaves)
        for place, field, column in zip(places, table.schema, table.columns, strict=True):
            fields[place], arrays[place] = field, column
        ordered = sorted(arrays)
        schema = pa.schema([fields[place] for place in ordered], table.schema.metadata)
        return pa.Table.from_arrays([arrays[place] for place in ordered], schema=schema)

    def _check_rows(self, table: pa.Table, row_group: int) -> None:
        if table.num_rows != self.row_groups[row_group].num_rows:
            reason = f"has {table.num_rows} rows, and the footer says {self.row_groups[row_group].num_rows}"
            raise CorruptTable(reason, location=self.location, path=f"row group {row_group}")

    def close(self) -> None:
        """Close the file."""
        self._readers.close()
        self._input.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _native(file: InputFile) -> pa.NativeFile:
    """The file as one of pyarrow's, whose `read_at` threads may call at once."""
    return file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, mode="r")


def _holds_narrow_decimal(type_: Type) -> bool:
    match type_:
        case DecimalType():
            return type_.precision <= 18
        case StructType(fields):
            return any(_holds_narrow_decimal(f.type) for f in fields)
        case ListType(element):
            return _holds_narrow_decimal(element.type)
        case MapType(key, value):
            return _holds_narrow_decimal(key.type) or _holds_narrow_decimal(value.type)
    return False


def _row_groups(footer: Footer) -> tuple[RowGroup, ...]:
    """All row groups; raises ValueError where their rows are not those of the file."""
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
