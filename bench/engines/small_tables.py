"""Small tables, which DuckDB reads whole before it joins them: it takes each scan in Arrow for one row, and joins what
it knows no size of in an order that may never end (duckdb/duckdb#25631). Of tables of its own it knows more."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

import icebench
from icebench.bench.engines.sql_text import identifier

ROWS, BYTES = 2_000_000, 16 << 20
"""Of a small table at most; beyond, what a plan prunes is worth more than what an optimizer knows."""


def is_small(table: icebench.Table) -> bool:
    """Whether a table's snapshot says that it is small; False where it does not say."""
    snapshot = table.current_snapshot
    if snapshot is None:
        return True
    try:
        rows, size = (int(snapshot.summary[f"total-{name}"]) for name in ("records", "files-size"))
    except (KeyError, ValueError):
        return False
    return rows <= ROWS and size <= BYTES


def view_of(name: str) -> str:
    """The view of a small table's scan, whose own name its copy has."""
    return f"scan of {name}"


def allow_copies(connection: Any) -> None:  # noqa: ANN401 - DuckDB's
    """Have DuckDB join copies with scans in Arrow, to which it would pass Bloom filters that it then refuses
    (duckdb/duckdb-python#463)."""
    connection.execute("SET disabled_optimizers = 'join_filter_pushdown'")


def copy_table(connection: Any, name: str, query: str, kind: str = "temp table") -> None:  # noqa: ANN401 - DuckDB's
    """Copy what a query may read of a small table, in place of an earlier copy.

    Args:
        connection: Of DuckDB, with the view of `view_of`.
        name: The table's.
        query: In DuckDB's SQL.
        kind: What other connections do not see, or ``table``.
    """
    view = identifier(view_of(name))
    names = connection.sql(f"from {view}").columns
    read = columns_read(query)
    wanted = [column for column in names if read is None or column.lower() in read] or names[:1]
    columns = ", ".join(map(identifier, wanted))
    copy = f"create or replace {kind} {identifier(name)} as select {columns} from {view}"  # noqa: S608 - quoted
    connection.execute(copy)


@lru_cache(maxsize=256)
def columns_read(query: str) -> frozenset[str] | None:
    """The names of all columns that a query may read, in lower case, with those of its tables; None for all columns, as
    of a query that cannot be parsed."""
    try:
        found = [each for each in sqlglot.parse(query, read="duckdb") if each is not None]
    except sqlglot.errors.SqlglotError:
        return None
    if not all(isinstance(each, exp.Query) and not _reads_rows(each) for each in found):
        return None
    return frozenset(name.name.lower() for each in found for name in each.find_all(exp.Identifier))


def _reads_rows(query: exp.Query) -> bool:
    """Whether it reads whole rows of a table: by ``*``, as in a natural join, or as a value, by the table's name."""
    if any(not isinstance(star.parent, exp.Count) for star in query.find_all(exp.Star)):
        return True
    if any(join.method for join in query.find_all(exp.Join)) or query.find(exp.Pivot, exp.Columns) is not None:
        return True
    tables = {name.lower() for each in query.find_all(exp.Table) for name in (each.name, each.alias) if name}
    return any(column.name.lower() in tables for column in query.find_all(exp.Column))
