"""Queries by DuckDB, of which only where the rows come from differs from engine to engine."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Timer
from typing import Any

import duckdb
import psutil

from icebench.bench.engines.duckdb_rows import fetched_rows
from icebench.bench.engines.engine import TookTooLong

MEMORY = 0.5
"""DuckDB's share of the machine's memory, beside a Java virtual machine and this process's own rows; it writes to disk
what is beyond. By default it takes four fifths, and the system ends a run whose query fills them."""


def configure(connection: duckdb.DuckDBPyConnection) -> None:
    """Settings of all connections that answer queries."""
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = '{int(MEMORY * psutil.virtual_memory().total)}B'")


class DuckDbQueries:
    """The answers of an engine whose open tables are a connection of DuckDB, in which each is a view."""

    dialect = "duckdb"

    def new_session(self, tables: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """Another connection to the same database, which shares its views, its caches and its threads."""
        session = tables.cursor()
        session.execute("SET enable_progress_bar = false")
        return session

    def answer(
        self, tables: duckdb.DuckDBPyConnection, query: str, names: Sequence[str], seconds: float | None = None
    ) -> list[tuple[Any, ...]]:
        if seconds is None:
            return fetched_rows(tables.execute(query))
        patience = Timer(seconds, tables.interrupt)
        patience.start()
        try:
            return fetched_rows(tables.execute(query))
        except duckdb.InterruptException as error:
            raise TookTooLong(seconds) from error
        finally:
            patience.cancel()
