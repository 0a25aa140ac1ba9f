"""Queries by DuckDB, of which only where the rows come from differs from engine to engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import duckdb
import psutil

from icebench.bench.engines.duckdb_rows import fetched_rows
from icebench.bench.engines.engine import TookTooLong

MEMORY = 0.5
"""DuckDB's share of the machine's memory, beside a Java virtual machine and this process's own rows; it writes to disk
what is beyond. By default it takes four fifths, and the system ends a run whose query fills them."""
_AGAIN_SECONDS = 0.05


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
        with limited(tables, seconds):
            return fetched_rows(tables.execute(query))


@contextmanager
def limited(connection: duckdb.DuckDBPyConnection, seconds: float | None) -> Iterator[None]:
    """Interrupts whatever a connection executes from that time on, and raises TookTooLong."""
    if seconds is None:
        yield
        return
    is_done, is_over = Event(), Event()

    def interrupt() -> None:
        if not is_done.wait(seconds):
            is_over.set()
            connection.interrupt()
        # Between two statements there is nothing to interrupt.
        while not is_done.wait(_AGAIN_SECONDS):
            connection.interrupt()

    watch = Thread(target=interrupt, daemon=True)
    watch.start()
    try:
        yield
    except duckdb.InterruptException as error:
        if not is_over.is_set():
            raise
        raise TookTooLong(seconds) from error
    finally:
        is_done.set()
        watch.join()
