"""Parquet files: open one, know its row groups, decode the leaves that are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from engine.columnar.name_mapping import has_field_ids, identified
from engine.errors import CorruptTable, FileNotFound
from engine.spec.name_mapping import NameMapping
from engine.storage.store import Store

Footer: TypeAlias = pq.FileMetaData
"""The metadata of a Parquet file."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group: its place, the position of its first row in the file, its rows, where its bytes begin in the file
    and how many they are."""

    index: int
    first_row: int
    num_rows: int
    offset: int
    size_bytes: int


class ParquetSource:
    """An open Parquet file. Row groups may be read from several threads through several instances, not through one.

    Args:
        store: Where the file is.
        location: The file.
        name_mapping: Gives field ids to a file that has none.
        needed_by: What refers to the file, for errors, e.g. ``"table db.t, snapshot 17"``.
        dictionaries: Text columns, by name, to decode as Arrow dictionaries.
        footer: The file's metadata where it is known already; saves reading it.

    Attributes:
        schema: The file's Arrow schema with field ids, its own or those of the name mapping.
        has_field_ids: Whether they are its own.

    Raises:
        FileNotFound: Naming the file and `needed_by`.
        CorruptTable: The file is not Parquet.
    """

    def __init__(
        self,
        store: Store,
        location: str,
        *,
        name_mapping: NameMapping | None = None,
        needed_by: str | None = None,
        dictionaries: Sequence[str] = (),
        footer: Footer | None = None,
    ) -> None:
        self.location = location
        self._name_mapping = name_mapping
        try:
            self._input = store.open_input(location)
        except FileNotFound as error:
            raise FileNotFound(location, needed_by) from error
        try:
            self._file = pq.ParquetFile(
                self._input,
                metadata=footer,
                read_dictionary=list(dictionaries),
                # Far away, many small requests cost more than the copy that joining them takes.
                pre_buffer=_is_remote(location),
                coerce_int96_timestamp_unit="us",
            )
            self.has_field_ids = has_field_ids(self._file.schema_arrow)
            self.schema = identified(self._file.schema_arrow, name_mapping, location)
        except (pa.ArrowInvalid, OSError) as error:
            self._input.close()
            raise CorruptTable(f"not a readable Parquet file: {error}", location=location) from error
        except BaseException:
            self._input.close()
            raise

    @property
    def footer(self) -> Footer:
        """The file's metadata."""
        return self._file.metadata

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """All row groups, in file order."""
        found = []
        first_row = 0
        for index in range(self.footer.num_row_groups):
            group = self.footer.row_group(index)
            found.append(RowGroup(index, first_row, group.num_rows, group_offset(group), group.total_byte_size))
            first_row += group.num_rows
        return tuple(found)

    def read(self, row_group: int, leaf_indices: Sequence[int], *, threads: bool = False) -> pa.Table:
        """Decode leaves of a row group.

        Raises:
            CorruptTable: The bytes are not what the footer says.
        """
        if not leaf_indices:
            rows = self.footer.row_group(row_group).num_rows
            return pa.table({"": pa.nulls(rows)}).select([])
        try:
            return self._file.reader.read_row_group(row_group, column_indices=list(leaf_indices), use_threads=threads)
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptTable(f"row group {row_group}: {error}", location=self.location) from error

    def fields_of(self, table: pa.Table) -> pa.Schema:
        """The schema of a decoded table with field ids, those of the name mapping included."""
        return table.schema if self.has_field_ids else identified(table.schema, self._name_mapping, self.location)

    def close(self) -> None:
        """Close the file."""
        self._input.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _is_remote(location: str) -> bool:
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme not in ("file", "memory")


def group_offset(group: pq.RowGroupMetaData) -> int:
    """Where the bytes of a row group begin: the first page of its first column."""
    first = group.column(0)
    return int(first.dictionary_page_offset if first.has_dictionary_page else first.data_page_offset)
