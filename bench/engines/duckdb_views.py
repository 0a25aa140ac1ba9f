"""Views of this project's scans in DuckDB, which takes each scan in Arrow for one row, and joins what it knows no size
of in an order that may never end (duckdb/duckdb#25631). So large tables state how many rows they have, and small ones
are copied for a query: of tables of its own DuckDB knows the values, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from functools import lru_cache
from typing import TypeVar

import duckdb
import sqlglot
from sqlglot import exp

import icebench
from icebench.bench.engines.duckdb_queries import limited
from icebench.bench.engines.sql_text import identifier

T = TypeVar("T")

ROWS, BYTES = 2_000_000, 16 << 20
"""Of a small table at most; beyond, what a plan prunes is worth more than what an optimizer knows."""
_MOST = 2**63 - 1
"""DuckDB counts no further."""


def create_view(
    connection: duckdb.DuckDBPyConnection, name: str, table: icebench.Table, counters: icebench.Counters | None = None
) -> bool:
    """Create or replace a view of a table's scan, which is planned in every query.

    Args:
        connection: Whose view it is.
        name: Of the view.
        table: To scan.
        counters: Take the work of all its scans.

    Returns:
        Whether the table is small: a query that joins it should copy it.
    """
    rows, size = _total(table, "records"), _total(table, "files-size")
    scan = table.scan(counters=counters).to_duckdb(connection)
    is_small = 0 <= rows <= ROWS and 0 <= size <= BYTES
    if not is_small:
        # No row, as the limit is 0: DuckDB does not know that before it executes the query.
        nulls = ", ".join(["null"] * len(scan.columns))
        empty = f"select {nulls} from range({rows}) limit cast(0 * random() as bigint)"  # noqa: S608 - numbers alone
        scan = scan.union(connection.sql(empty))
    scan.create_view(name)
    return is_small


def _total(table: icebench.Table, name: str) -> int:
    """A total of the current snapshot's summary; -1 where it does not say."""
    if table.current_snapshot is None:
        return 0
    try:
        return min(int(table.current_snapshot.summary[f"total-{name}"]), _MOST)
    except (KeyError, ValueError):
        return -1


def allow_joins(connection: duckdb.DuckDBPyConnection) -> None:
    """Have DuckDB join what it knows the size of with scans in Arrow, to which it would pass Bloom filters that it then
    refuses (duckdb/duckdb-python#463)."""
    connection.execute("SET disabled_optimizers = 'join_filter_pushdown'")


def answer_over_copies(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    small: Collection[str],
    fetch: Callable[[duckdb.DuckDBPyConnection], T],
    seconds: float | None = None,
) -> T:
    """Answer a query over copies of small tables: temporary tables, which hide the views of their names until the
    answer is there.

    Args:
        connection: Of DuckDB, with a view of each table.
        query: In DuckDB's SQL.
        small: Those to copy, of the tables that it reads.
        fetch: Gives the answer, of the connection that has executed the query.
        seconds: How long copying and answering may take.

    Raises:
        TookTooLong: There was no answer by then.
        duckdb.Error: As the query over the views raises it: copies have only the columns that its text names.
    """
    with ExitStack() as copies:
        try:
            with limited(connection, seconds):
                for name in small:
                    _copy(connection, name, query)
                    copies.callback(connection.execute, f"drop table temp.{identifier(name)}")
                return fetch(connection.execute(query))
        except (duckdb.BinderException, duckdb.CatalogException):
            if not small:
                raise
    with limited(connection, seconds):
        return fetch(connection.execute(query))


def _copy(connection: duckdb.DuckDBPyConnection, name: str, query: str) -> None:
    """Copy what a query may read of a table."""
    view = f"memory.main.{identifier(name)}"  # of a database in memory, which no temporary table hides
    names = connection.sql(f"from {view}").columns
    read = columns_read(query)
    wanted = [column for column in names if read is None or column.lower() in read] or names[:1]
    columns = ", ".join(map(identifier, wanted))
    connection.execute(f"create temp table {identifier(name)} as select {columns} from {view}")  # noqa: S608 - quoted


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
