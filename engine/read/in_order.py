"""Row groups read by the threads of a runner, the last of them by all together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat

import pyarrow as pa

from engine.read.row_group import Work
from engine.runtime.crew import Crew
from engine.runtime.local import available_threads
from engine.runtime.runner import Runner

_VALUES_TO_SHARE = 1_000_000
"""Decoding so many takes some 10 ms; another thread costs up to 2 ms of processor time to start and wake."""


def in_order(
    works: Iterable[Work],
    read: Callable[[Work], list[pa.RecordBatch]],
    *,
    columns: int,
    runner: Runner,
    crew: Crew,
) -> Iterator[pa.RecordBatch]:
    """The batches of all row groups, in order.

    Args:
        works: The row groups.
        read: Gives the batches of one.
        columns: How many columns are to give.
        runner: Calls `read`.
        crew: Threads that find no row group left help with the columns of those that others read. Row groups are
            handed out first, so that a long table is read as if there were no crew.
    """

    def read_or_help(work: Work | None) -> list[pa.RecordBatch]:
        if work is None:
            crew.help()
            return []
        with crew.working():
            return read(work)

    for batches in runner.map(read_or_help, _with_helpers(works, columns)):
        yield from batches


def _with_helpers(works: Iterable[Work], columns: int) -> Iterator[Work | None]:
    """The row groups, then None for each thread that is to help with the last ones, if those are large."""
    last = 0
    for work in works:
        last = work.group.num_rows * columns
        yield work
    if columns > 1 and last >= _VALUES_TO_SHARE:
        yield from repeat(None, available_threads() - 1)
