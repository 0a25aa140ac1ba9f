"""Queries in DuckDB's SQL, in the dialects of engines, and DuckDB's own answers to them over plain rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.scope import traverse_scope

from icebench.bench.engines.duckdb_rows import fetched_rows
from icebench.bench.engines.duckdb_views import columns_read
from icebench.bench.engines.sql_text import identifier, quoted
from icebench.bench.errors import ConfigError, DatasetFailed
from icebench.bench.truth.query_answers import RankedRows
from icebench.bench.truth.sql import NoTruth

_DOUBLES = ("DOUBLE", "FLOAT")


@dataclass(frozen=True)
class Query:
    """One query, by its text in DuckDB's SQL.

    Raises, from every property:
        ConfigError: It is not one query, or has a LIMIT that is not a number.
    """

    name: str
    text: str

    @cached_property
    def _parsed(self) -> exp.Query:
        try:
            found = [each for each in sqlglot.parse(self.text, read="duckdb") if each is not None]
        except sqlglot.errors.SqlglotError as error:
            raise ConfigError(f"not SQL of DuckDB: {str(error).splitlines()[0]}", path=self.name) from error
        if len(found) != 1 or not isinstance(found[0], exp.Query):
            raise ConfigError("is not one query", path=self.name)
        return found[0]

    @property
    def unlimited(self) -> Query:
        """The query without its outer LIMIT and OFFSET."""
        return Query(self.name, self._without_limit().sql("duckdb"))

    def _without_limit(self) -> exp.Query:
        query = self._parsed.copy()
        query.set("limit", None)
        query.set("offset", None)
        return query

    @property
    def limit(self) -> int | None:
        """At most how many rows it gives; None without LIMIT."""
        return self._count("limit")

    @property
    def offset(self) -> int:
        """How many rows it leaves out at the start."""
        return self._count("offset") or 0

    def _count(self, clause: str) -> int | None:
        found = self._parsed.args.get(clause)
        if found is None:
            return None
        number = found.args.get("expression")
        is_share = found.args.get("limit_options") is not None
        if is_share or not (isinstance(number, exp.Literal) and number.is_int):
            raise ConfigError(f"its {clause.upper()} is not a number", path=self.name)
        return int(number.name)

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The tables that it reads, in lower case and sorted; with their schema where the query names one."""
        query = normalize_identifiers(self._parsed.copy(), dialect="duckdb")
        sources = (source for scope in traverse_scope(query) for source in scope.sources.values())
        named = (each for each in sources if isinstance(each, exp.Table) and each.name)  # functions have none
        return tuple(sorted({".".join(part for part in (each.db, each.name) if part) for each in named}))

    @property
    def columns(self) -> frozenset[str] | None:
        """The names of all columns that it may read, in lower case, among others; None for all of its tables."""
        return columns_read(self.text)

    def in_dialect(self, dialect: str) -> str:
        """Its text for an engine.

        In Spark's dialect it has DuckDB's arithmetic, which divides and averages decimals as doubles, and rounds a
        double's own value, not the shortest text for it (1.025 is less than that).

        Args:
            dialect: ``duckdb`` or ``spark``.
        """
        if dialect == "duckdb":
            return self.text
        query = self._parsed.copy()
        for rounded in list(query.find_all(exp.Round)):
            if (digits := rounded.args.get("decimals")) is not None:
                rounded.replace(_rounded_double(rounded.this, digits))
        for division in query.find_all(exp.Div):
            division.set("this", exp.cast(division.this, "double"))
            division.set("expression", exp.cast(division.expression, "double"))
        for average in query.find_all(exp.Avg):
            average.set("this", exp.cast(average.this, "double"))
        return query.sql(dialect)

    def ranked(self, described: Callable[[str], Sequence[tuple[str, str]]]) -> str:
        """The query without its LIMIT, sorted, with two last columns: the rank of each row by the keys of ORDER BY
        before the first that is a double, where rows may be equal, and that double, or null.

        Of a double that is computed, an engine's order of additions decides the last digits, and so whether the keys
        behind it decide: they are left out.

        Args:
            described: Gives the names and types of the columns of a text, as DuckDB describes them.

        Raises:
            ConfigError: Of rows that are distinct or united, a key of ORDER BY is not among the columns.
        """
        rows = self._without_limit()
        order = rows.args.get("order")
        rows.set("order", None)
        names = [name for name, _ in described(self.unlimited.text)]
        columns = [f"c{place}" for place in range(len(names))]
        shown = ", ".join(columns)
        keys: list[tuple[str, exp.Ordered]] = []
        for key in [] if order is None else _without_all(order.expressions, len(names)):
            place = self._shown_key(rows, key.this, names)
            if place is None:
                self._hide_key(rows, key.this, len(columns))
                place = len(columns)
                columns.append(f"c{place}")
            keys.append((columns[place], key))
        types = dict(zip(columns, (kind for _, kind in described(rows.sql("duckdb"))), strict=True))
        exact = list(takewhile(lambda key: types[key[0]] not in _DOUBLES, keys))
        double = "".join(name for name, _ in keys[len(exact) : len(exact) + 1]) or "null"
        return (
            f"select {shown}, rank() over ({_order_by(exact)}), {double} "  # noqa: S608 - the user's own query
            f"from ({rows.sql('duckdb')}) as answer({', '.join(columns)}) {_order_by(keys[: len(exact) + 1])}"
        )

    def _shown_key(self, rows: exp.Query, what: exp.Expr, names: Sequence[str]) -> int | None:
        """The place of the column that a key of ORDER BY is, by number, name or expression; None if it is none."""
        if isinstance(what, exp.Literal) and what.is_int:
            return int(what.name) - 1
        name = what.name.lower() if isinstance(what, exp.Column) and not what.table else None
        selects = rows.selects
        aliases = [place for place, select in enumerate(selects) if name and select.alias.lower() == name]
        if name and not aliases:
            return next((place for place, shown in enumerate(names) if shown.lower() == name), None)
        equal = [place for place, select in enumerate(selects) if select.unalias() == what]
        if not aliases + equal:
            return None
        found = (aliases or equal)[-1]  # DuckDB takes the last column of an alias
        if len(selects) == len(names) or not any(map(_may_be_several, selects[:found])):
            return found
        if any(map(_may_be_several, selects[found + 1 :])):
            raise ConfigError(f"ORDER BY {what.sql('duckdb')} is a column between stars", path=self.name)
        return len(names) - len(selects) + found

    def _hide_key(self, rows: exp.Query, what: exp.Expr, place: int) -> None:
        """Add a key of ORDER BY as the column of this place, unless columns must stay what they are."""
        if not isinstance(rows, exp.Select) or rows.args.get("distinct") is not None:
            raise ConfigError(f"ORDER BY {what.sql('duckdb')} is not among its columns", path=self.name)
        rows.select(exp.alias_(what.copy(), f"key_{place}"), copy=False, dialect="duckdb")


def _without_all(keys: Sequence[exp.Ordered], width: int) -> Iterator[exp.Ordered]:
    """Keys of ORDER BY, with every column's number for ``ALL``."""
    for key in keys:
        if isinstance(key.this, exp.Var):
            for number in range(1, width + 1):
                each = key.copy()
                each.set("this", exp.Literal.number(number))
                yield each
        else:
            yield key


def _order_by(keys: Sequence[tuple[str, exp.Ordered]]) -> str:
    """ORDER BY columns, in the directions of keys."""
    ordered = [key.copy() for _, key in keys]
    for each, (name, _) in zip(ordered, keys, strict=True):
        each.set("this", exp.column(name))
    return exp.Order(expressions=ordered).sql("duckdb") if ordered else ""


def _rounded_double(number: exp.Expr, digits: exp.Expr) -> exp.Expr:
    factor = (
        exp.Literal.number(f"1e{digits.name}")
        if isinstance(digits, exp.Literal)
        else exp.Pow(this=exp.Literal.number(10), expression=digits)
    )
    whole = exp.Round(this=exp.Mul(this=exp.Paren(this=number), expression=factor))
    return exp.Paren(this=exp.Div(this=whole, expression=factor.copy()))


def _may_be_several(select: exp.Expr) -> bool:
    """Whether it may give several columns."""
    return select.is_star or select.find(exp.Columns, exp.Explode, exp.Unnest) is not None


class ReferenceAnswers:
    """DuckDB's answers over rows that no engine under test has read.

    Args:
        folder: Where DuckDB keeps what does not fit into memory; None for a database in memory.

    Raises:
        NoTruth: DuckDB is not installed.
    """

    def __init__(self, folder: Path | None = None) -> None:
        try:
            self._duckdb: Any = import_module("duckdb")
        except ImportError as error:
            raise NoTruth("the right answers are DuckDB's: pip install 'icebench[peers]'") from error
        settings = {"autoinstall_known_extensions": "false"}
        if folder is None:
            self._connection = self._duckdb.connect(config=settings)
        else:
            settings["temp_directory"] = str(folder / "spilled")
            self._connection = self._duckdb.connect(str(folder / "rows.duckdb"), config=settings)
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET enable_progress_bar = false")

    def add_files(self, name: str, paths: Iterable[Path]) -> None:
        """Let queries find the rows of Parquet files under a name."""
        listed = ", ".join(quoted(str(path)) for path in paths)
        self._connection.execute(f"CREATE VIEW {identifier(name)} AS FROM read_parquet([{listed}])")

    def add_rows(self, name: str, rows: Iterable[pa.RecordBatch]) -> None:
        """Copy rows into a table of that name; at least one batch, perhaps without rows."""
        created = False
        for batch in rows:
            self._connection.register("batch", pa.Table.from_batches([batch]))
            insert = f"INSERT INTO {identifier(name)}" if created else f"CREATE TABLE {identifier(name)} AS"
            self._connection.execute(f"{insert} FROM batch")
            self._connection.unregister("batch")
            created = True
        assert created, name

    def answer(self, query: Query) -> RankedRows:
        """The right rows.

        Raises:
            ConfigError: DuckDB does not take the query, or `Query.ranked` does not.
            DatasetFailed: A file is missing or damaged.
        """
        try:
            rows = fetched_rows(self._connection.execute(query.ranked(self._described)))
        except self._duckdb.IOException as error:
            raise DatasetFailed(_line(error)) from error
        except self._duckdb.Error as error:
            raise ConfigError(_line(error), path=query.name) from error
        return RankedRows.of(rows, query.offset, query.limit)

    def _described(self, text: str) -> list[tuple[str, str]]:
        return [column[:2] for column in self._connection.execute(f"DESCRIBE {text}").fetchall()]


def unknown_tables(queries: Sequence[Query], known: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """The name of each query that reads tables that are not known -> their names."""
    there = {name.lower() for name in known}
    found = {query.name: tuple(name for name in query.tables if name not in there) for query in queries}
    return {name: tables for name, tables in found.items() if tables}


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
