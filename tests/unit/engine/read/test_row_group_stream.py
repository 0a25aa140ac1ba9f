"""Row groups are read ahead of the consumer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, permutations
from threading import Barrier, BrokenBarrierError
from time import sleep

import pyarrow as pa
import pytest

from icebench.engine.deletes.files import FileRead
from icebench.engine.read import row_group, row_group_stream
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.read.row_group import RowGroupReader
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, NestedField
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.store import Store
from icebench.engine.write.data_files import write_data_files
from tests.unit.engine.write.metadata_for_writes import metadata_of

SCHEMA = Schema((NestedField(field_id=1, name="id", type=LONG),))
ROWS = 12


def batches_of(
    runner: Runner, *, sizes: Sequence[int] = (3, 3, 3, 3), limit: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Of files with a row group of so many rows each, which are numbered from 0."""
    store, files = MemoryStore(), []
    for first, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
        table = pa.table({"id": range(first, first + size)})
        files += write_data_files(table, metadata=metadata_of(SCHEMA), store=store)
    asked = [FileRead(file_path=file.file_path, record_count=file.record_count) for file in files]
    request = ReadRequest(store=store, projection=SCHEMA, schemas=(SCHEMA,), limit=limit)
    return read_files(asked, request, runner=runner, counters=Counters())


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_group_stream, "_WHOLE_BYTES", 0)


def remote(is_remote: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(store: Store, location: str) -> bool:
        assert location.startswith("memory://")
        return is_remote

    monkeypatch.setattr(row_group_stream, "is_remote", answer)


def meeting(parties: int, monkeypatch: pytest.MonkeyPatch, seconds: float = 20) -> None:
    """Has the first pieces of row groups wait for each other."""
    met, right = Barrier(parties, timeout=seconds), RowGroupReader.batches

    def batches(self: RowGroupReader) -> Iterator[list[pa.RecordBatch]]:
        met.wait()
        yield from right(self)

    monkeypatch.setattr(RowGroupReader, "batches", batches)


@pytest.mark.usefixtures("large")
def test_first_pieces_are_decoded_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    remote(True, monkeypatch)
    meeting(4, monkeypatch)
    found = list(batches_of(LocalRunner(2)))
    assert pa.Table.from_batches(found)["id"].to_pylist() == list(range(ROWS))


@pytest.mark.usefixtures("large")
def test_as_many_are_begun_as_there_are_threads_where_files_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    remote(False, monkeypatch)
    meeting(2, monkeypatch)
    found = list(batches_of(LocalRunner(2)))
    assert pa.Table.from_batches(found)["id"].to_pylist() == list(range(ROWS))


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("is_remote", "threads", "limit"), [(False, 2, None), (True, 1, None), (False, 3, ROWS), (True, 2, ROWS)]
)
def test_no_more_are_begun(monkeypatch: pytest.MonkeyPatch, is_remote: bool, threads: int, limit: int | None) -> None:
    """One at a time by one thread, and for a consumer that takes few rows."""
    remote(is_remote, monkeypatch)
    meeting(3 if limit is None else 2, monkeypatch, seconds=0.2)
    with pytest.raises(BrokenBarrierError):
        list(batches_of(LocalRunner(threads), limit=limit))


@pytest.mark.usefixtures("large")
def test_a_consumer_that_waits_has_a_bounded_number_of_pieces_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    remote(False, monkeypatch)
    for limit in ("_LEAST_ROWS", "_MOST_ROWS"):
        monkeypatch.setattr(row_group, limit, 1)
    # Two pieces, of eight bytes each, of each row group in progress.
    monkeypatch.setattr(row_group_stream, "_AHEAD_BYTES", 2 * 2 * 8)
    decoded, right = [], RowGroupReader.batches

    def batches(self: RowGroupReader) -> Iterator[list[pa.RecordBatch]]:
        for piece in right(self):
            decoded.append(piece)
            yield piece

    monkeypatch.setattr(RowGroupReader, "batches", batches)
    found = batches_of(LocalRunner(2), sizes=[7] * 4)
    next(found)
    sleep(0.2)
    # The first one, and two ahead of it; two of the next row group.
    assert len(decoded) == 5
    found.close()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("large")
def test_who_stops_early_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    remote(True, monkeypatch)
    begun, ended = [], []
    right = RowGroupReader.batches

    def batches(self: RowGroupReader) -> Iterator[list[pa.RecordBatch]]:
        begun.append(self)
        try:
            yield from right(self)
        finally:
            ended.append(self)

    monkeypatch.setattr(RowGroupReader, "batches", batches)
    found = batches_of(LocalRunner(2))
    assert next(found)["id"].to_pylist() == [0, 1, 2]
    found.close()  # type: ignore[attr-defined]
    del found
    assert len(ended) == len(begun) > 1


@pytest.mark.parametrize("sizes", sorted(set(permutations([1, 1, 9, 9, 9, 1]))), ids=str)
def test_small_and_large_row_groups_come_in_order(monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int]) -> None:
    monkeypatch.setattr(row_group_stream, "_WHOLE_BYTES", 4 * 8)
    found = list(batches_of(LocalRunner(2), sizes=sizes))
    assert pa.Table.from_batches(found)["id"].to_pylist() == list(range(sum(sizes)))
