"""The batches of many row groups, in order: small row groups in parallel, others piece by piece."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa

from icebench.engine.read.request import ReadRequest
from icebench.engine.read.row_group import RowGroupReader, Work, row_bytes
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import Ahead, LocalRunner
from icebench.engine.runtime.runner import Runner
from icebench.engine.storage.resolve import is_remote

_WHOLE_BYTES = 8 << 20
"""Row groups that take no more memory are decoded whole by one thread, larger ones piece by piece."""
_HELD_BYTES = 256 << 20
"""The memory of all row groups that threads decode whole."""
_HELD_BY_THREAD = 2
"""Row groups in progress for each thread of a runner."""
_MOST_BEGUN = 8
"""Large row groups in progress."""
_AHEAD_BYTES = 96 << 20
"""The memory of all pieces of large row groups that wait for the consumer."""


def row_group_batches(
    works: Iterable[Work], request: ReadRequest, *, runner: Runner, counters: Counters
) -> Iterator[pa.RecordBatch]:
    """The batches of all row groups, in order.

    A small row group is decoded whole by one thread, while others decode the next ones. A large one is decoded piece by
    piece, its columns by several threads, and the next large ones are begun meanwhile: few columns do not keep all
    threads busy, and requests to an object store do not wait for each other. So memory does not depend on the size of
    row groups.

    Args:
        works: The row groups.
        request: What to read of them.
        runner: Its threads read.
        counters: Count the work.
    """
    threads = runner.threads if isinstance(runner, LocalRunner) else 1
    most = min(_WHOLE_BYTES, _HELD_BYTES // (threads * _HELD_BY_THREAD))

    def read(work: Work) -> RowGroupReader | Iterable[list[pa.RecordBatch]]:
        is_large = work.group.num_rows * row_bytes(work.group, request) > most
        reader = RowGroupReader(work, request, counters, threads=is_large and threads > 1)
        if threads == 1:
            return reader.batches()
        return reader if is_large else list(reader.batches())

    works = iter(works)
    first = next(works, None)
    if first is None:
        return
    at_once = _MOST_BEGUN if threads > 1 and is_remote(request.store, first.file.file_path) else threads
    found = runner.map(read, chain((first,), works))
    yield from _begun_ahead(found, min(at_once, _MOST_BEGUN), request)


def _begun_ahead(
    found: Iterable[RowGroupReader | Iterable[list[pa.RecordBatch]]], most: int, request: ReadRequest
) -> Iterator[pa.RecordBatch]:
    """The batches of row groups, in order, `most` of those that are still to be decoded in progress.

    A consumer that wants few rows has those decoded that it comes to.
    """
    most, held = (most, _AHEAD_BYTES // most) if request.limit is None else (1, 0)
    begun: deque[Iterable[list[pa.RecordBatch]]] = deque()
    try:
        for each in found:
            if isinstance(each, RowGroupReader):
                begun.append(Ahead(each.batches(), max(1, min(each.pieces, held // each.piece_bytes))))
            elif begun:
                begun.append(each)
            else:
                yield from chain.from_iterable(each)
            while len(begun) == most or (begun and not isinstance(begun[0], Ahead)):
                yield from chain.from_iterable(begun[0])
                begun.popleft()
        while begun:
            yield from chain.from_iterable(begun[0])
            begun.popleft()
    finally:
        for rest in begun:
            if isinstance(rest, Ahead):
                rest.close()
