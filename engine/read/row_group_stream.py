"""The batches of many row groups, in order: small row groups several at once, large ones piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Lock

import pyarrow as pa

from engine.read.request import ReadRequest
from engine.read.row_group import Piece, RowGroupReader, Work, row_bytes
from engine.runtime.counters import Counters
from engine.runtime.local import LocalRunner
from engine.runtime.runner import Runner

_HELD_BYTES = 128 << 20
"""What all row groups that threads have in hand may take in memory, decoded, if each is decoded whole."""
_LEAST_WHOLE_BYTES = 4 << 20
_HELD_BY_THREAD = 2
"""Row groups in hand for each thread of a runner."""


def row_group_batches(
    works: Iterable[Work], request: ReadRequest, *, runner: Runner, counters: Counters
) -> Iterator[pa.RecordBatch]:
    """The batches of all row groups, in order.

    A row group that is small enough is decoded whole by one thread, while others decode the next ones. One that is not
    is decoded piece by piece, when its turn comes: by several threads, which go ahead by a few pieces. So what is in
    memory does not depend on the size of row groups.

    Args:
        works: The row groups.
        request: What to read of them.
        runner: Its threads read.
        counters: Count the work.
    """
    threads = runner.threads if isinstance(runner, LocalRunner) else 1
    most = max(_LEAST_WHOLE_BYTES, _HELD_BYTES // (threads * _HELD_BY_THREAD))

    def read(work: Work) -> Iterable[pa.RecordBatch]:
        is_large = work.group.num_rows * row_bytes(work.group, request) > most
        reader = RowGroupReader(work, request, counters, is_large=is_large, threads=is_large and threads > 1)
        if threads > 1 and not is_large:
            return [batch for piece in reader.pieces() for batch in reader.finish(piece)]
        return _streamed(reader, runner)

    for batches in runner.map(read, works):
        yield from batches


def _streamed(reader: RowGroupReader, runner: Runner) -> Iterator[pa.RecordBatch]:
    """The batches of a row group. Whichever thread is free decodes the next piece, one at a time, and finishes it while
    another decodes the one after it."""
    pieces = enumerate(reader.pieces())
    decoding = Lock()

    def next_piece(_: int) -> tuple[int, list[pa.RecordBatch]] | None:
        with decoding:
            found: tuple[int, Piece] | None = next(pieces, None)
        return None if found is None else (found[0], reader.finish(found[1]))

    early: dict[int, list[pa.RecordBatch]] = {}
    due = 0
    # One more than there may be: it is the source that says that there is nothing more.
    for found in runner.map(next_piece, range(reader.count + 1)):
        if found is None:
            continue
        early[found[0]] = found[1]
        while due in early:
            yield from early.pop(due)
            due += 1
