from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebench.engine.columnar.projection import MissingValues, Projector
from icebench.engine.formats.parquet import machine_kernels, source
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.runtime.counters import STORAGE_REQUESTS_RANGE_READ, Counters
from icebench.engine.spec.name_mapping import parse_name_mapping
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    INT,
    LONG,
    STRING,
    NestedField,
    StructType,
    list_type,
    map_type,
)
from icebench.engine.storage.counting import CountingStore
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import CorruptTable, FileNotFound, Unsupported

PATH = "memory://b/f.parquet"


def stored(table: pa.Table, **options: object) -> MemoryStore:
    store = MemoryStore()
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    store.write(PATH, sink.getvalue().to_pybytes())
    return store


PLAIN = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "person.name": ["a", "b", None],
        "s": [{"x": 1, "skip": 1}, None, {"x": None, "skip": 2}],
        "l": [[{"y": 1}], None, []],
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "unmapped": [0, 0, 0],
    }
)
MAPPING = parse_name_mapping(
    """[{"field-id": 1, "names": ["id", "ident"]}, {"field-id": 2, "names": ["person.name"]},
        {"field-id": 3, "names": ["s"], "fields": [{"field-id": 4, "names": ["x"]}]},
        {"field-id": 5, "names": ["l"], "fields": [{"field-id": 6, "names": ["element"],
                                                    "fields": [{"field-id": 7, "names": ["y"]}]}]},
        {"field-id": 8, "names": ["m"], "fields": [{"field-id": 9, "names": ["key"]},
                                                    {"field-id": 10, "names": ["value"]}]}]"""
)
WANTED = Schema(
    (
        NestedField(field_id=8, name="map", type=map_type(9, STRING, 10, LONG)),
        NestedField(
            field_id=5, name="list", type=list_type(6, StructType((NestedField(field_id=7, name="yy", type=LONG),)))
        ),
        NestedField(field_id=3, name="st", type=StructType((NestedField(field_id=4, name="xx", type=LONG),))),
        NestedField(field_id=2, name="name", type=STRING),
        NestedField(field_id=1, name="identifier", type=LONG),
    )
)


def with_ids(table: pa.Table) -> pa.Table:
    """The table with the field ids 1, 2, ..."""
    fields = [f.with_metadata({"PARQUET:field_id": str(n)}) for n, f in enumerate(table.schema, 1)]
    return table.cast(pa.schema(fields))


def test_a_row_group_begins_at_one_place_whatever_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The readers of two parts of a file may see footers of different columns: each row group is of one part."""
    assert machine_kernels.SLIM_FOOTER.load()
    table = with_ids(pa.table({f"c{n}": np.arange(100) * n for n in range(300)}))
    store = stored(table, row_group_size=40)
    offsets, columns = set(), set()
    for is_slim in (True, False):
        monkeypatch.setattr(machine_kernels.SLIM_FOOTER, "should_use", lambda _, is_slim=is_slim: is_slim)
        for field_id in (1, 150, 300):
            with ParquetSource(store, PATH, field_ids=[field_id]) as source:
                columns.add(source.footer.num_columns)
                offsets.add(tuple(source.offset(group.index) for group in source.row_groups))
    assert columns == {1, 300}
    assert len(offsets) == 1


@pytest.mark.parametrize("compliant", [True, False])
def test_files_without_ids_are_read_through_the_name_mapping(compliant: bool) -> None:
    store = stored(PLAIN, use_compliant_nested_type=compliant, row_group_size=2)
    rows = []
    with ParquetSource(store, PATH, name_mapping=MAPPING) as source:
        assert [(g.first_row, g.num_rows) for g in source.row_groups] == [(0, 2), (2, 1)]
        assert len(source.columns.leaf_indices(WANTED)) == 6
        for group in source.row_groups:
            rows += Projector(missing=MissingValues()).table(source.read(group.index, WANTED), WANTED).to_pylist()
    assert rows == [
        {"map": [("k", 1)], "list": [{"yy": 1}], "st": {"xx": 1}, "name": "a", "identifier": 1},
        {"map": None, "list": None, "st": None, "name": "b", "identifier": 2},
        {"map": [], "list": [], "st": {"xx": None}, "name": None, "identifier": 3},
    ]


def test_files_without_ids_and_without_a_mapping_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"schema\.name-mapping\.default"):
        ParquetSource(stored(PLAIN), PATH)


def test_a_missing_file_is_named_with_what_needs_it() -> None:
    with pytest.raises(FileNotFound, match=r"f\.parquet \(needed by table db\.t, snapshot 17\)"):
        ParquetSource(MemoryStore(), PATH, needed_by="table db.t, snapshot 17")


def test_a_file_that_is_not_parquet_is_corrupt() -> None:
    store = MemoryStore()
    store.write(PATH, b"not a Parquet file at all")
    with pytest.raises(CorruptTable, match="not a readable Parquet file"):
        ParquetSource(store, PATH)


def test_damaged_pages_are_corrupt() -> None:
    table = pa.table({"id": pa.array(range(1000), pa.int32())}).cast(
        pa.schema([pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "1"})])
    )
    store = stored(table, compression="zstd")
    data = bytearray(store.read(PATH))
    data[4:400] = bytes(396)
    store.write(PATH, bytes(data), overwrite=True)
    with ParquetSource(store, PATH) as source, pytest.raises(CorruptTable, match="row group 0"):
        source.read(0, Schema((NestedField(field_id=1, name="id", type=INT),)))


IDS = pa.table({"id": pa.array(range(1000), pa.int64())}).cast(
    pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
)


def test_a_changed_bit_is_found_by_the_checksum_of_its_page() -> None:
    store = stored(IDS, compression="none", use_dictionary=False, write_page_checksum=True)
    data = bytearray(store.read(PATH))
    data[data.index((500).to_bytes(8, "little"))] ^= 1
    store.write(PATH, bytes(data), overwrite=True)
    with ParquetSource(store, PATH) as source, pytest.raises(CorruptTable, match=r"at row group 0.*: .*[Cc][Rr][Cc]"):
        source.read(0, Schema((NestedField(field_id=1, name="id", type=LONG),)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"write_page_index": True, "row_group_size": 300},
        {"use_dictionary": False, "compression": "none"},
        {"data_page_version": "2.0"},
    ],
)
def test_the_footer_accounts_for_all_bytes_of_a_whole_file(options: dict[str, Any]) -> None:
    store = stored(IDS, **options)
    with ParquetSource(store, PATH, field_ids=[1]) as source:
        assert source.accounts_for_all_bytes
    data = store.read(PATH)
    for changed in (data[:4] + data[5:], data[:4] + b"\0" + data[4:], data[:-20] + data[-19:]):
        store.write(PATH, changed, overwrite=True)
        try:
            source = ParquetSource(store, PATH)
        except CorruptTable:
            continue
        assert not source.accounts_for_all_bytes
        source.close()


def test_what_libraries_say_is_one_printable_line() -> None:
    assert str(CorruptTable("two\nlines \x0f", location="f")) == "f: two; lines ?"


@pytest.mark.parametrize(
    ("limits", "at_once"),
    [
        ({}, True),
        ({"_AT_ONCE_BYTES": 0}, True),
        ({"_AT_ONCE_BYTES": 0, "BUFFER_BYTES": 1000}, False),
        ({"_AT_ONCE_BYTES": 0, "_MOST_LISTED": 3}, False),
    ],
)
def test_what_is_read_of_a_large_row_group_is_fetched_at_once(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], at_once: bool
) -> None:
    """Where it takes no more than the buffers would: other columns do not count."""
    random = np.random.default_rng(1)
    rows = pa.table({name: random.integers(0, 1 << 60, 300_000) for name in "abcd"})
    store = stored(rows, use_dictionary=False, compression="none", row_group_size=1 << 20)
    for name, value in limits.items():
        monkeypatch.setattr(source, name, value)
    wanted = Schema((NestedField(field_id=1, name="a", type=LONG), NestedField(field_id=3, name="c", type=LONG)))
    mapping = parse_name_mapping('[{"field-id": 1, "names": ["a"]}, {"field-id": 3, "names": ["c"]}]')
    counters = Counters()
    with ParquetSource(CountingStore(store, counters), PATH, name_mapping=mapping) as opened:
        before = counters[STORAGE_REQUESTS_RANGE_READ]
        found = pa.concat_tables(opened.batches(0, wanted, rows=50_000))
    assert found.rename_columns(["a", "c"]).equals(rows.select(["a", "c"]))
    assert (counters[STORAGE_REQUESTS_RANGE_READ] - before == 2) == at_once
