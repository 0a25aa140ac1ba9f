"""The oracle: DuckDB over a workload's raw Parquet files, with deletes by their definition.

It shares no code with any engine: what layouts, writers, deletes and readers made of the rows is held against it. Only
the checksum of the rows is formed as that of the engines' rows. `bench.measure.brute.truth` answers likewise for tables
of which nothing else is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.engines.checksum import Checksum, ColumnSum, checksum_of
from bench.errors import DatasetFailed

_BATCH_ROWS = 1 << 16


class NoTruth(Exception):
    """What is true cannot be found out here, for the reason that it says; nothing is wrong with the table."""


@dataclass(frozen=True)
class Answer:
    """The rows of a query, as their checksum by file."""

    by_file: Mapping[str, Checksum]

    @cached_property
    def total(self) -> Checksum:
        """Of all files."""
        first, *others = self.by_file.values()
        return sum(others, first)

    @property
    def rows(self) -> int:
        """How many."""
        return self.total.rows

    @property
    def columns(self) -> Mapping[str, ColumnSum]:
        """The nulls and the exact sum of each column."""
        return self.total.columns

    def fault_of(self, found: Checksum) -> str | None:
        """What is wrong with delivered rows, in words; None when they are the true ones."""
        true = self.total
        difference = found.difference(true)
        if difference is None or list(found.columns) != list(true.columns):
            return difference
        for path, own in self.by_file.items():
            if own.rows and found + own == true:
                return f"lacks all {own.rows} rows of {path}"
            if own.rows and true + own == found:
                return f"has the {own.rows} rows of {path} twice"
        for name in (name for name, own in found.columns.items() if own != true.columns[name]):
            for other in true.columns:
                if name != other and found.columns[name] == true.columns[other]:
                    return f"column {name} has the values of column {other}"
        return difference


class Sql:
    """A DuckDB of one's own.

    Raises:
        NoTruth: DuckDB is not installed.
    """

    def __init__(self) -> None:
        try:
            self._duckdb: Any = import_module("duckdb")
        except ImportError as error:
            raise NoTruth("the truth is found out by DuckDB: pip install 'icebench[peers]'") from error
        # No file needs an extension, and none shall be downloaded.
        self._connection = self._duckdb.connect(config={"autoinstall_known_extensions": False})

    def register(self, name: str, rows: pa.Table) -> None:
        """Make rows known under a name."""
        self._connection.register(name, rows)

    def rows(self, query: str, *, source: str) -> list[tuple[Any, ...]]:
        """All rows of a result; `source` is the file that is read, for errors.

        Raises:
            DatasetFailed: The file is missing or damaged, or the query is wrong.
        """
        try:
            found: list[tuple[Any, ...]] = self._connection.execute(query).fetchall()
        except self._duckdb.Error as error:
            raise DatasetFailed(f"file {source} cannot be read: {' '.join(str(error).split())}") from error
        return found

    def checksum(self, query: str, columns: Sequence[str], *, source: str) -> Checksum:
        """The checksum of a result. Raises as `rows` does."""
        try:
            return checksum_of(self._connection.execute(query).to_arrow_reader(_BATCH_ROWS), columns)
        except (self._duckdb.Error, pa.ArrowException) as error:
            raise DatasetFailed(f"file {source} cannot be read: {' '.join(str(error).split())}") from error


class Oracle:
    """Answers from the raw files of a workload.

    Args:
        raw: Parquet files of the same columns.
        deleted: The filters of the rows that were deleted; a row for which one is null stays.

    Raises:
        NoTruth: DuckDB is not installed.
    """

    def __init__(self, raw: Sequence[Path], deleted: Sequence[str] = ()) -> None:
        self._raw = raw
        self._deleted = deleted
        self._sql = Sql()

    def answer(self, columns: Sequence[str], filter: str | None = None) -> Answer:
        """The rows that the filter keeps.

        Args:
            columns: Names, at least one.
            filter: SQL; None keeps all rows.

        Raises:
            DatasetFailed: A file is missing or damaged, or a filter is wrong.
        """
        kept = [f"({filter})"] if filter else []
        kept += [f"({deletes}) IS NOT TRUE" for deletes in self._deleted]
        where = f" WHERE {' AND '.join(kept)}" if kept else ""
        shown = ", ".join(map(identifier, columns))
        found = {}
        for path in map(str, self._raw):
            query = f"SELECT {shown} FROM read_parquet({quoted(path)}, hive_partitioning=false){where}"  # noqa: S608
            found[path] = self._sql.checksum(query, columns, source=path)
        return Answer(found)


def quoted(text: str) -> str:
    """Text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
