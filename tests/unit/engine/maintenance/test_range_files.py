from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from icebench.engine.maintenance.range_files import MOST_RANGES, RangeFiles
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import StorageFailed
from tests.services.faulty_store import FaultyStore

PLACE = "memory://ranges/sorting"


@pytest.mark.parametrize("ranges", [1, 7, MOST_RANGES])
@pytest.mark.parametrize("waiting_bytes", [1, 4_000, 1 << 20])
def test_each_range_has_its_rows_in_the_order_they_came(ranges: int, waiting_bytes: int) -> None:
    random = np.random.default_rng(1)
    store = MemoryStore()
    files = RangeFiles(store, PLACE, ranges=ranges, waiting_bytes=waiting_bytes)
    expected: list[list[tuple[int, str]]] = [[] for _ in range(ranges)]
    for start in range(0, 5_000, 1_000):
        numbers = random.permutation(np.arange(1_000) % ranges)
        rows = [(start + i, f"row {start + i}") for i in range(1_000)]
        columns = [pa.array([n for n, _ in rows]), pa.array([text for _, text in rows])]
        files.add(pa.RecordBatch.from_arrays(columns, names=["same", "same"]), numbers)
        for number, row in zip(numbers, rows, strict=True):
            expected[number].append(row)
    files.finish()
    for number in range(ranges):
        columns = files.read(number).columns
        assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == expected[number]
    assert len(list(store.list(PLACE))) == ranges
    files.remove()
    assert not list(store.list(PLACE))


def test_files_are_read_by_reads_of_the_store_which_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    files = RangeFiles(store, PLACE, ranges=1, waiting_bytes=1)
    files.add(pa.RecordBatch.from_arrays([pa.array(np.arange(20))], names=["n"]), np.zeros(20, np.int64))
    files.finish()
    monkeypatch.delattr(MemoryStore, "open_input")
    assert files.read(0).column("n").to_pylist() == list(range(20))


def test_what_waits_is_bounded() -> None:
    store = MemoryStore()
    files = RangeFiles(store, PLACE, ranges=2, waiting_bytes=8_000)
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(500))], names=["n"])
    files.add(batch, np.zeros(500, np.int64))
    assert files._waiting_size == 4_000
    files.add(batch, np.ones(500, np.int64))
    assert files._waiting_size == 0
    files.remove()


def test_nothing_stays_of_files_that_were_not_finished() -> None:
    store = FaultyStore(MemoryStore())
    files = RangeFiles(store, PLACE, ranges=150, waiting_bytes=1)
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(150))], names=["n"])
    files.add(batch, np.arange(150))
    assert len(files._open) == 150
    files.add(batch.slice(0, 100), np.arange(100))
    files.remove()
    assert not list(store.list(PLACE))


def test_a_file_that_is_cut_anywhere_is_noticed_and_named() -> None:
    store = MemoryStore()
    files = RangeFiles(store, PLACE, ranges=1, waiting_bytes=1)
    for _ in range(3):
        files.add(pa.RecordBatch.from_arrays([pa.array(np.arange(20))], names=["n"]), np.zeros(20, np.int64))
    files.finish()
    (file,) = store.list(PLACE)
    data = store.read(file.location)
    end_of_stream = 8
    for size in range(0, len(data) - end_of_stream, 4):
        store.write(file.location, data[:size], overwrite=True)
        with pytest.raises(StorageFailed, match=f"{PLACE}/.*arrow"):
            files.read(0)
    store.write(file.location, data, overwrite=True)
    assert files.read(0).num_rows == 60
