import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.codec.parquet_choice import KERNELS
from engine.columnar.parquet import ParquetSource
from engine.columnar.parquet_bytes import FetchedBytes, Window, fetch, footer_bytes, footer_file, joined
from engine.columnar.schemas import from_arrow_schema
from engine.runtime.counters import Counters
from engine.storage.counting import CountingStore
from engine.storage.memory import MemoryStore

PATH = "memory://b/f.parquet"


def test_near_spans_are_fetched_by_one_request() -> None:
    spans = [(100_000, 10), (0, 100), (100 + 8192, 5), (100_010, 1), (40, 10)]
    assert joined(spans) == [(0, 8297), (100_000, 11)]
    assert joined([(0, 20 << 20), (20 << 20, 20 << 20)]) == [(0, 20 << 20), (20 << 20, 20 << 20)]


def test_what_was_fetched_is_found() -> None:
    data = bytes(range(256)) * 1000
    fetched = fetch(pa.BufferReader(data), [(200_000, 300), (5, 10), (7, 0)])
    assert bytes(fetched.span(200_010, 20)) == data[200_010:200_030]
    assert bytes(fetched.span(5, 10)) == data[5:15]
    for start, size in ((5, 11), (4, 3), (100_000, 1)):
        with pytest.raises(OSError, match="not in the file"):
            fetched.span(start, size)


def test_a_window_is_a_file() -> None:
    window = Window(100)
    window.fetched = FetchedBytes({10: b"abcdef", 96: b"wxyz"})
    assert (window.seek(12), window.read(3), window.tell()) == (12, b"cde", 15)
    assert (window.seek(-2, io.SEEK_END), window.read()) == (98, b"yz")


def test_a_footer_is_found_by_one_request_or_two() -> None:
    for columns in (3, 3000):
        table = pa.table({f"column_{i}": [1] for i in range(columns)})
        sink = io.BytesIO()
        pq.write_table(table, sink)
        data = sink.getvalue()
        footer = footer_bytes(pa.BufferReader(data), len(data))
        assert footer is not None
        assert pq.read_metadata(footer_file(footer)).equals(pq.read_metadata(io.BytesIO(data)))
    for other in (b"", b"PAR1", data[:-1], data[:-8] + b"\xff\xff\xff\xffPAR1"):
        assert footer_bytes(pa.BufferReader(other), len(other)) is None


@pytest.mark.parametrize("names", [["a", "c"], ["a", "s", "c"], ["s", "t"], ["t", "a"]])
def test_columns_of_both_kinds_are_fetched_by_no_more_requests(
    names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = range(200_000)
    columns = {"a": numbers, "s": [str(n) for n in numbers], "c": numbers, "t": [str(-n) for n in numbers]}
    fields = [
        pa.field(name, pa.string() if name in "st" else pa.int64(), metadata={"PARQUET:field_id": str(i)})
        for i, name in enumerate(columns)
    ]
    schema = pa.schema(fields)
    table = pa.table(columns, schema=schema)
    store = MemoryStore()
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=100_000)
    store.write(PATH, sink.getvalue())
    wanted = from_arrow_schema(schema, first_id=0).select([schema.names.index(name) for name in names])
    assert KERNELS.load()
    seen = []
    for kernels in (True, False):
        monkeypatch.setattr(KERNELS, "pays", lambda _, chosen=kernels: chosen)
        counters = Counters()
        with ParquetSource(CountingStore(store, counters), PATH) as source:
            found = pa.concat_tables([source.read(group, wanted) for group in (0, 1)])
        assert found.equals(table.select(sorted(names, key=schema.names.index)))
        seen.append({name: counters[name] for name in ("storage_requests_range_read", "storage_bytes_read")})
    ours, pyarrows = seen
    assert ours["storage_requests_range_read"] <= pyarrows["storage_requests_range_read"]
    assert ours["storage_bytes_read"] <= pyarrows["storage_bytes_read"]
