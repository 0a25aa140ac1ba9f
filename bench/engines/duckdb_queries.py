"""Queries by DuckDB, of which only where the rows come from differs from engine to engine."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Timer
from typing import Any

import duckdb

from icebench.bench.engines.duckdb_rows import fetched_rows
from icebench.bench.engines.engine import TookTooLong


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
