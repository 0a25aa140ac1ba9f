"""The batches of many row groups, in order: small row groups in parallel, others piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import pyarrow as pa

from icebench.engine.read.request import ReadRequest
from icebench.engine.read.row_group import RowGroupReader, Work, row_bytes
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner, made_ahead
from icebench.engine.runtime.runner import Runner
from icebench.engine.storage.resolve import is_remote

_WHOLE_BYTES = 8 << 20
"""Row groups that take no more memory are decoded whole by one thread. Larger ones decode faster piece by piece, with
columns in parallel: decoded data is used while it is in the processor's caches."""
_HELD_BYTES = 256 << 20
"""The memory of all row groups that threads decode whole."""
_HELD_BY_THREAD = 2
"""Row groups in progress for each thread of a runner."""
_BEGINNING = LocalRunner(4)
"""What decodes the first pieces of large row groups in an object store: of eight at a time, so that they take no more
memory than the others may."""


def row_group_batches(
    works: Iterable[Work], request: ReadRequest, *, runner: Runner, counters: Counters
) -> Iterator[pa.RecordBatch]:
    """The batches of all row groups, in order.

    A small row group is decoded whole by one thread, while others decode the next ones. A large one is decoded piece by
    piece by several threads, one piece ahead. So memory does not depend on the size of row groups. Where requests take
    milliseconds, the first pieces of the next large ones are decoded meanwhile: their requests do not wait for each
    other.

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

    works = iter(works)
    first = next(works, None)
    if first is None:
        return
    found = runner.map(read, chain((first,), works))
    if threads > 1 and is_remote(request.store, first.file.file_path):
        found = _BEGINNING.map(_begun, found)
    yield from chain.from_iterable(found)


def _begun(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """The batches, of which the first one is made now."""
    rest = iter(batches)
    return chain(list(islice(rest, 1)), rest)
