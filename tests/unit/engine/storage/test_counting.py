from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebench.engine.runtime import counters as names
from icebench.engine.runtime.counters import Counters
from icebench.engine.storage.counting import CountingStore
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import FileNotFound, Unsupported


def made() -> tuple[CountingStore, Counters]:
    counters = Counters()
    return CountingStore(MemoryStore(), counters), counters


def test_requests_and_bytes_by_kind() -> None:
    store, counters = made()
    store.write("memory://f", b"0123456789")
    store.read("memory://f")
    store.read("memory://f", 2, 3)
    store.read("memory://f", 0, 4)
    store.read("memory://f", 8)
    store.size("memory://f")
    store.exists("memory://f")
    list(store.list("memory://"))
    store.delete("memory://f")
    assert counters.as_dict() == {
        names.STORAGE_REQUESTS_WRITE: 1,
        names.STORAGE_BYTES_WRITTEN: 10,
        names.STORAGE_REQUESTS_READ: 1,
        names.STORAGE_REQUESTS_RANGE_READ: 3,
        names.STORAGE_BYTES_READ: 19,
        names.STORAGE_REQUESTS_HEAD: 2,
        names.STORAGE_REQUESTS_LIST: 1,
        names.STORAGE_REQUESTS_DELETE: 1,
    }


def test_a_failed_request_is_a_request() -> None:
    store, counters = made()
    with pytest.raises(FileNotFound):
        store.read("memory://missing")
    assert counters.as_dict() == {names.STORAGE_REQUESTS_READ: 1}


def test_open_files() -> None:
    store, counters = made()
    with store.open_output("memory://f") as output:
        output.write(b"01234")
        output.write(b"56789")
        assert counters.as_dict() == {}
    assert counters.as_dict() == {names.STORAGE_REQUESTS_WRITE: 1, names.STORAGE_BYTES_WRITTEN: 10}
    source = store.open_input("memory://f")
    source.seek(5)
    assert source.read(2) == b"56"
    assert source.read() == b"789"
    assert counters[names.STORAGE_REQUESTS_HEAD] == 1
    assert counters[names.STORAGE_REQUESTS_RANGE_READ] == 2
    assert counters[names.STORAGE_BYTES_READ] == 5


def test_an_aborted_file_was_not_written() -> None:
    store, counters = made()
    output = store.open_output("memory://f")
    output.write(b"x")
    output.abort()
    output.close()
    assert counters.as_dict() == {}


def test_a_column_costs_less_than_the_file() -> None:
    store, counters = made()
    table = pa.table({name: list(range(10_000)) for name in "abcdefgh"})
    with store.open_output("memory://f") as output:
        pq.write_table(table, output, compression="none", use_dictionary=False)
    with pq.ParquetFile(store.open_input("memory://f")) as file:
        file.read(columns=["a"])
    assert 0 < counters[names.STORAGE_BYTES_READ] < store.size("memory://f") / 4
    store.physical("memory://f")


def test_another_process_gets_the_store_itself() -> None:
    assert pickle.loads(pickle.dumps(CountingStore(LocalStore(), Counters()))) == LocalStore()


def test_a_store_in_memory_does_not_go_to_another_process() -> None:
    with pytest.raises(Unsupported, match="of this process alone"):
        pickle.dumps(CountingStore(MemoryStore(), Counters()))
