"""Times reads of a table on this machine, each from a fresh handle as queries of a new process have it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import icebench
from icebench.bench.advise.planned import StoredColumns
from icebench.bench.advise.queries import Query
from icebench.bench.advise.rates import TimedRead

_TIMES = 3
_QUERIES = 16
"""The heaviest of a table's queries, which are timed."""
_SECONDS = 0.3
Clock = Callable[[], float]


def time_reads(
    table: icebench.Table,
    queries: Sequence[Query],
    *,
    most_bytes: float | None = None,
    budget: float = _SECONDS,
    clock: Clock = time.perf_counter,
) -> list[TimedRead]:
    """Read what the heaviest queries ask, and whole columns; the least of some times after one that does not count,
    as other programs only add to them.

    Args:
        table: In local files.
        queries: Of the table.
        most_bytes: Queries that read more are left out; None for no limit.
        budget: Seconds after which no other query is begun.
        clock: Monotonic seconds.

    Raises:
        EngineError: It cannot be read.
    """
    stored, found, start = StoredColumns(table), [], clock()
    for query in (*_whole(queries), *sorted(queries, key=lambda each: -each.weight)[:_QUERIES]):
        if not query.columns or clock() - start > budget:
            continue
        reading = stored.reading(query)
        if most_bytes is not None and reading.bytes_read > most_bytes:
            continue
        read_rows(table, query)
        seconds = []
        for _ in range(_TIMES):
            begin = clock()
            read_rows(table, query)
            seconds.append(clock() - begin)
        found.append(TimedRead(amounts=reading.amounts, seconds=min(seconds)))
    return found


def read_rows(table: icebench.Table, query: Query, counters: icebench.Counters | None = None) -> int:
    """The number of rows that a query finds, read from a fresh handle.

    Raises:
        EngineError: It cannot be read.
    """
    fresh = icebench.load_table(table.metadata_location)
    columns = list(query.columns) or None
    return sum(batch.num_rows for batch in fresh.scan(query.filter, columns, counters=counters).to_batches())


def _whole(queries: Sequence[Query]) -> list[Query]:
    """Without a filter: all columns that queries use, and the first of them."""
    used = tuple(dict.fromkeys(column for query in queries for column in query.columns))
    return [Query(name="columns", columns=own) for own in dict.fromkeys((used, used[:1]))]
