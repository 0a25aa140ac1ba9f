"""The oracle: DuckDB over a workload's raw Parquet files, with deletes by their definition.

It shares no code with any engine: what layouts, writers, deletes and readers made of the rows is checked against it.
Only the checksum of the rows is formed as that of the engines' rows. Filters are evaluated on DuckDB tables that have
all rows, and a second time by `icebench.bench.truth.second_opinion`. `icebench.bench.truth.rows` answers likewise for
tables of which nothing else is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from icebench.bench.engines.checksum import Checksum, ColumnSum
from icebench.bench.truth.filters import filter_names, to_duckdb
from icebench.bench.truth.second_opinion import SecondOpinion
from icebench.bench.truth.sql import NoTruth, Sql, top_level


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


class Oracle:
    """Answers from the raw files of a workload; each question is answered once.

    Args:
        raw: Parquet files of the same columns.
        deleted: The filters of the rows that were deleted; a row for which one is null stays.
    """

    def __init__(self, raw: Sequence[Path], deleted: Sequence[str] = ()) -> None:
        self._raw = raw
        self._deleted = deleted
        self._known: dict[tuple[tuple[str, ...], str | None], Answer | NoTruth] = {}

    def answer(self, columns: Sequence[str], filter: str | None = None) -> Answer:
        """The rows that the filter keeps.

        Args:
            columns: Names, at least one.
            filter: SQL; None keeps all rows.

        Raises:
            ConfigError: A filter cannot be parsed, or names a column that the files do not have.
            DatasetFailed: A file is missing or damaged.
            NoTruth: DuckDB is not installed or cannot evaluate a filter, or there are two opinions of it (`Disputed`).
        """
        asked = (tuple(columns), filter)
        if asked not in self._known:
            try:
                sql = Sql()  # which has the rows of a file, and is let go with them
                self._known[asked] = Answer({path: self._of_file(sql, path, *asked) for path in map(str, self._raw)})
            except NoTruth as reason:
                self._known[asked] = reason  # which may have taken as long
        found = self._known[asked]
        if isinstance(found, NoTruth):
            raise found
        return found

    def _of_file(self, sql: Sql, path: str, columns: Sequence[str], filter: str | None) -> Checksum:
        names = [name for name, _ in top_level(path, source=path)]
        filters = [*([filter] if filter else []), *self._deleted]
        wanted = set(columns).union(*(filter_names(each, names) for each in filters))
        place = {name: names.index(name) for name in names if name in wanted}
        sql.load("stored", path, {f"c{ordinal}": ordinal for ordinal in place.values()}, source=path)
        types = sql.types("stored")
        known = {name: (f"c{ordinal}", types[f"c{ordinal}"]) for name, ordinal in place.items()}
        conditions = {each: to_duckdb(each, known) for each in filters}
        for each, condition in conditions.items():
            SecondOpinion.of(each, known, files=len(self._raw)).check(sql, "stored", condition, source=path)
        kept = ["true", *([conditions[filter]] if filter else [])]
        kept += [f"{conditions[deletes]} IS NOT TRUE" for deletes in self._deleted]
        shown = ", ".join(known[name][0] for name in columns)
        return sql.checksum(f"SELECT {shown} FROM stored WHERE {' AND '.join(kept)}", columns)  # noqa: S608
