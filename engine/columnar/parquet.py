"""Parquet files: open one, know its row groups, decode the leaves that are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Self, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from engine.columnar.decimals import narrow_footer
from engine.columnar.file_columns import FileColumns
from engine.columnar.name_mapping import has_field_ids, identified
from engine.columnar.source import RowGroup, check_size, fetched
from engine.errors import CorruptTable
from engine.spec.name_mapping import NameMapping
from engine.spec.schema import Schema
from engine.spec.types import DecimalType, ListType, MapType, StructType, Type
from engine.storage.store import InputFile, Store

Footer: TypeAlias = pq.FileMetaData
"""The metadata of a Parquet file."""

_WHOLE_FILE_BYTES = 1 << 20
"""Smaller files are fetched by one request: more requests take longer than the bytes that they would save."""
_BROKEN = (pa.ArrowException, OSError, ValueError, IndexError, OverflowError)
"""What pyarrow raises at a damaged file; a length that it would need too much memory for is among them."""


class ParquetSource:
    """An open Parquet file, to be shared by threads: each `read` has one of pyarrow's readers for itself.

    Args:
        store: Where the file is.
        location: The file.
        name_mapping: Gives field ids to a file that has none.
        needed_by: What refers to the file, for errors, e.g. ``"table db.t, snapshot 17"``.
        dictionaries: Text columns, by name, to decode as Arrow dictionaries.
        size_bytes: The file's size, where it is known; the file must have it.

    Attributes:
        columns: The file's columns with field ids, its own or those of the name mapping.
        has_field_ids: Whether they are its own.
        row_groups: All row groups, in file order.

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
    ) -> None:
        self.location = location
        self._name_mapping = name_mapping
        self._dictionaries = list(dictionaries)
        self._lock = Lock()
        self._idle: dict[bool, list[pq.ParquetFile]] = {False: [], True: []}
        self._narrow: Footer | None = None
        self._narrow_made = False
        self._in_memory = size_bytes is not None and size_bytes <= _WHOLE_FILE_BYTES
        self._input: InputFile
        with fetched(location, needed_by):
            if self._in_memory:
                self._input = pa.BufferReader(store.read(location, 0, _WHOLE_FILE_BYTES))
            else:
                self._input = store.open_input(location)
        try:
            check_size(self._input.size(), size_bytes, location)
            first = self._open(None)
            self.footer: Footer = first.metadata
            self.row_groups = _row_groups(self.footer)
            self.has_field_ids = has_field_ids(first.schema_arrow)
            schema = identified(first.schema_arrow, name_mapping, location)
            self.columns = FileColumns(schema, self.footer.num_columns)
        except _BROKEN as error:
            self._input.close()
            raise CorruptTable(f"not a readable Parquet file: {error}", location=location) from error
        except BaseException:
            self._input.close()
            raise
        self._idle[False].append(first)

    def _open(self, footer: Footer | None) -> pq.ParquetFile:
        return pq.ParquetFile(
            self._input,
            metadata=footer,
            read_dictionary=self._dictionaries,
            # The column chunks of a row group are fetched by few requests, near ones by one.
            pre_buffer=not self._in_memory,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )

    @property
    def _narrow_footer(self) -> Footer | None:
        """The footer for decoding decimals, made once, when the first decimal is wanted."""
        with self._lock:
            if not self._narrow_made:
                self._narrow, self._narrow_made = narrow_footer(self.footer), True
            return self._narrow

    @property
    def num_rows(self) -> int:
        """How many rows the file has."""
        return int(self.footer.num_rows)

    def read(self, row_group: int, wanted: Schema, *, narrow: bool = False) -> pa.Table:
        """See `engine.columnar.source.Source.read`; exactly the wanted leaves are decoded."""
        leaf_indices = self.columns.leaf_indices(wanted)
        if not leaf_indices:
            rows = self.footer.row_group(row_group).num_rows
            return pa.table({"": pa.nulls(rows)}).select([])
        holds = narrow and any(_holds_narrow_decimal(f.type) for f in wanted.fields)
        try:
            with self._reader(self._narrow_footer if holds else None) as file:
                table = file.reader.read_row_group(row_group, column_indices=list(leaf_indices), use_threads=False)
        except _BROKEN as error:
            raise CorruptTable(str(error), location=self.location, path=f"row group {row_group}") from error
        if table.num_rows != self.row_groups[row_group].num_rows:
            reason = f"has {table.num_rows} rows, and the footer says {self.row_groups[row_group].num_rows}"
            raise CorruptTable(reason, location=self.location, path=f"row group {row_group}")
        if self.has_field_ids:
            return table
        return table.cast(identified(table.schema, self._name_mapping, self.location))

    @contextmanager
    def _reader(self, narrow: Footer | None) -> Iterator[pq.ParquetFile]:
        """One of pyarrow's readers, which are not to be shared; making one for a wide file takes milliseconds."""
        idle = self._idle[narrow is not None]
        with self._lock:
            found = idle.pop() if idle else None
        file = self._open(narrow or self.footer) if found is None else found
        yield file
        with self._lock:
            idle.append(file)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            for idle in self._idle.values():
                idle.clear()
        self._input.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


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
        offset = group_offset(group) if group.num_columns else 0
        found.append(RowGroup(index, first_row, group.num_rows, offset, group.total_byte_size))
        first_row += group.num_rows
    if first_row != footer.num_rows:
        raise ValueError(f"its row groups have {first_row} rows, and its footer says {footer.num_rows}")
    return tuple(found)


def group_offset(group: pq.RowGroupMetaData) -> int:
    """Where the bytes of a row group begin: the first page of its first column."""
    first = group.column(0)
    return int(first.dictionary_page_offset if first.has_dictionary_page else first.data_page_offset)
