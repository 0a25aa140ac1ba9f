"""Row groups of files in an object store are read ahead of the consumer."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier, BrokenBarrierError

import pyarrow as pa
import pytest

from icebench.engine.deletes.files import FileRead
from icebench.engine.read import row_group_stream
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


def batches_of(runner: Runner) -> Iterator[pa.RecordBatch]:
    """Of four files, each with a row group."""
    store, files = MemoryStore(), []
    for first in range(0, ROWS, 3):
        rows = pa.table({"id": range(first, first + 3)})
        files += write_data_files(rows, metadata=metadata_of(SCHEMA), store=store)
    asked = [FileRead(file_path=file.file_path, record_count=file.record_count) for file in files]
    request = ReadRequest(store=store, projection=SCHEMA, schemas=(SCHEMA,))
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
@pytest.mark.parametrize(("is_remote", "threads"), [(False, 2), (True, 1)])
def test_they_are_not_on_this_machine_or_by_one_thread(
    monkeypatch: pytest.MonkeyPatch, is_remote: bool, threads: int
) -> None:
    remote(is_remote, monkeypatch)
    meeting(2, monkeypatch, seconds=0.2)
    with pytest.raises(BrokenBarrierError):
        list(batches_of(LocalRunner(threads)))


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
