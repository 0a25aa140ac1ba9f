"""The batches of many row groups, in order: small row groups in parallel, others piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa

from icebench.engine.read.request import ReadRequest
from icebench.engine.read.row_group import RowGroupReader, Work, row_bytes
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner, made_ahead
from icebench.engine.runtime.runner import Runner

_WHOLE_BYTES = 8 << 20
"""Row groups that take no more memory are decoded whole by one thread. Larger ones decode faster piece by piece, with
columns in parallel: decoded data is used while it is in the processor's caches."""
_HELD_BYTES = 256 << 20
"""The memory of all row groups that threads decode whole."""
_HELD_BY_THREAD = 2
"""Row groups in progress for each thread of a runner."""


def row_group_batches(
    works: Iterable[Work], request: ReadRequest, *, runner: Runner, counters: Counters
) -> Iterator[pa.RecordBatch]:
    """The batches of all row groups, in order.

    A small row group is decoded whole by one thread, while others decode the next ones. A large one is decoded piece by
    piece by several threads, one piece ahead. So memory does not depend on the size of row groups.

    Args:
        works: The row groups.
        request: What to read of them.
        runner: Its threads read.
        counters: Count the work.
    """
    threads = runner.threads if isinstance(runner, LocalRunner) else 1
    most = min(_WHOLE_BYTES, _HELD_BYTES // (threads * _HELD_BY_THREAD))

    def read(work: Work) -> Iterable[pa.RecordBatch]:
        is_large = work.group.num_rows * row_bytes(work.group, request) > most
        reader = RowGroupReader(work, request, counters, threads=is_large and threads > 1)
        if threads == 1:
            return chain.from_iterable(reader.batches())
        if is_large:
            return chain.from_iterable(made_ahead(reader.batches()))
        return list(chain.from_iterable(reader.batches()))

    yield from chain.from_iterable(runner.map(read, works))
