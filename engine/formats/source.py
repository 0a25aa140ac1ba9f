"""Interface of open data and delete files, whatever their format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.codec.array_views import boolean_array
from icebench.engine.errors import CorruptTable, FileNotFound
from icebench.engine.formats.file_columns import FileColumns
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.shared_file import SharedInputFile
from icebench.engine.storage.store import InputFile

_MANY = 0.8
"""At or above this fraction of kept rows, filter column by column."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A unit of decoding: a row group of Parquet, a stripe of ORC, blocks of Avro.

    Args:
        index: Its place among the file's.
        first_row: The position of its first row in the file.
        num_rows: Its rows.
        size_bytes: Their size, before compression if the format records that.
    """

    index: int
    first_row: int
    num_rows: int
    size_bytes: int


class Source(ABC):
    """An open file. Thread-safe, except for closing.

    Args:
        store: Where the file is.
        location: The file.
        name_mapping: Gives field ids to a file that has none.
        without_ids: Does so where there is no name mapping.
        needed_by: What refers to the file, for errors, e.g. ``"table db.t, snapshot 17"``.

    Attributes:
        location: The file.
        columns: Its columns, with the field ids of the file or of the table's name mapping.
        num_rows: How many rows it has.
        row_groups: All parts, in file order.
        size_bytes: Its size.

    Raises:
        FileNotFound: Naming the file and `needed_by`.
        CorruptTable: The file is not of its format.
        Unsupported: The file has no field ids and there is no name mapping, or holds what is not read.
    """

    location: str
    columns: FileColumns
    num_rows: int
    row_groups: tuple[RowGroup, ...]
    size_bytes: int

    @property
    @abstractmethod
    def accounts_for_all_bytes(self) -> bool:
        """Whether the file's own metadata lead to every byte of it: nothing was cut out, and nothing put in."""

    def ambiguous_zones(self) -> frozenset[int]:
        """The ids of timestamps, at every depth, of which the file does not say whether they are moments or local
        times."""
        return frozenset()

    @abstractmethod
    def offset(self, row_group: int) -> int:
        """The offset of a row group's bytes in the file.

        Raises:
            CorruptTable: The file does not record it.
        """

    @abstractmethod
    def read(self, row_group: int, wanted: Schema) -> pa.Table:
        """Decode the columns of a row group that `wanted` has, in the file's own types and with field ids.

        Args:
            row_group: Its index.
            wanted: Columns, of which the file may lack some, at every depth; the result may have others, too.

        Raises:
            CorruptTable: The bytes contradict the file's own metadata.
        """

    def batches(
        self,
        row_group: int,
        wanted: Schema,
        *,
        rows: int,
        narrow: bool = False,
        threads: bool = False,
    ) -> Iterator[pa.Table]:
        """Decode the same columns in tables of `rows` rows each (the last may have fewer), as they are consumed if the
        format allows it. Not thread-safe.

        Args:
            row_group: Its index.
            wanted: As `read`.
            rows: At least 1.
            narrow: Return decimals as decimal32 and decimal64 where that is less work.
            threads: May decode on several threads.

        Raises:
            CorruptTable: As `read`.
        """
        del narrow, threads
        return slice_table(self.read(row_group, wanted), rows)

    @abstractmethod
    def close(self) -> None:
        """Release the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextmanager
def explaining_missing_file(location: str, needed_by: str | None) -> Iterator[None]:
    """Context of the first request for a file: if it is missing, the error names what refers to it."""
    try:
        yield
    except FileNotFound as error:
        raise FileNotFound(location, needed_by) from error


@contextmanager
def locating_errors(location: str) -> Iterator[None]:
    """Context of decoding a file: errors that name no file are about this one."""
    try:
        yield
    except CorruptTable as error:
        if error.location is not None:
            raise
        raise CorruptTable(error.reason, location=location, path=error.path, needed_by=error.needed_by) from error


def native_file(file: InputFile) -> pa.NativeFile:
    """The file as one of pyarrow's, whose `read_at` threads may call at once."""
    return file if isinstance(file, pa.NativeFile) else pa.PythonFile(SharedInputFile(file), mode="r")


def without_columns(rows: int) -> pa.Table:
    """A table of that many rows without columns."""
    return pa.table({"": pa.nulls(rows)}).select([])


def slice_table(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    """Split a table into tables of `rows` rows; the last may have fewer."""
    for start in range(0, table.num_rows, rows):
        # A table without columns does not clip a slice.
        yield table.slice(start, min(rows, table.num_rows - start))


def rechunk(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Combine small tables into tables of `rows` rows; the last may have fewer."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        while count >= rows:
            joined = pa.concat_tables(waiting) if len(waiting) > 1 else waiting[0]
            yield joined.slice(0, rows) if count > rows else joined
            count -= rows
            waiting = [joined.slice(rows)] if count else []
    if count:
        yield pa.concat_tables(waiting)


def keep_rows(table: pa.Table, keep: npt.NDArray[np.bool_] | None) -> pa.Table:
    """The rows to keep, or all.

    Arrow filters a table by row numbers, value by value. Its filter of a single column copies runs of kept rows, which
    is faster while few rows are dropped.
    """
    if keep is None:
        return table
    if not table.num_columns:
        return without_columns(int(np.count_nonzero(keep)))
    mask = boolean_array(keep)
    if np.count_nonzero(keep) < _MANY * len(keep):
        return table.filter(mask)
    return pa.Table.from_arrays([column.filter(mask) for column in table.columns], schema=table.schema)
