"""Data pages of version 2."""

import io
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.data_files import write_data_files
from tests.unit.engine.write.metadata_for_writes import metadata_of

ROWS = 6_000
NESTED = pa.struct([("n", pa.int32()), ("d", pa.float64())])
DELTAS, TEXTS, PLAIN = {"DELTA_BINARY_PACKED"}, {"DELTA_BYTE_ARRAY"}, {"PLAIN"}
EXPECTED = {
    "id": DELTAS,
    "day": DELTAS,
    "at": DELTAS,
    "cents": DELTAS,
    "wide": TEXTS,
    "text": TEXTS,
    "raw": TEXTS,
    "uuid": TEXTS,
    "flag": {"RLE"},
    "ratio": PLAIN,
    "in.n": DELTAS,
    "in.d": PLAIN,
    "many.list.element": TEXTS,
}


def rows() -> pa.Table:
    numbers = range(ROWS)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "day": pa.array(numbers, pa.int32()).cast(pa.date32()),
            "at": pa.array(numbers, pa.timestamp("us")),
            "cents": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(9, 2)),
            "wide": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(38, 2)),
            "text": pa.array([f"text {n}" if n % 7 else None for n in numbers]),
            "raw": pa.array([b"%d" % n for n in numbers]),
            "uuid": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([n.to_bytes(16, "big") for n in numbers], pa.binary(16))
            ),
            "flag": pa.array([n % 3 == 0 for n in numbers]),
            "ratio": pa.array([n / 7 for n in numbers]),
            "in": pa.array([{"n": n, "d": n / 3} if n % 5 else None for n in numbers], NESTED),
            "many": pa.array([[f"a{n}", None] for n in numbers], pa.list_(pa.string())),
            "few": pa.array([n % 4 for n in numbers], pa.int64()),
        }
    )


@pytest.mark.parametrize("dictionary", ["true", "false"])
def test_columns_without_a_dictionary_have_encodings_of_version_2(dictionary: str) -> None:
    properties = {"write.parquet.page-version": "v2", "parquet.enable.dictionary": dictionary}
    store = MemoryStore()
    (file,) = write_data_files(rows(), metadata=metadata_of(rows().schema, properties=properties), store=store)
    group = pq.read_metadata(io.BytesIO(store.read(file.file_path))).row_group(0)
    found = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    assert {path: set(found[path].encodings) - {"RLE"} or {"RLE"} for path in EXPECTED} == EXPECTED
    assert found["few"].has_dictionary_page == (dictionary == "true")
    assert not any(found[path].has_dictionary_page for path in EXPECTED)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_table_has_the_rows_that_were_written(version: str, tmp_path: Path) -> None:
    properties = {"write.parquet.page-version": version, "parquet.enable.dictionary": "false"}
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", rows().schema, properties=properties)
    table.append(rows())
    table.append(rows().slice(0, 9).set_column(0, "id", pa.array(range(ROWS, ROWS + 9), pa.int64())))
    table.delete(f"id in (0, {ROWS}, {ROWS + 8})", mode="merge-on-read")
    found = table.scan(filter=f"id < {ROWS}").to_arrow().sort_by("id").cast(rows().schema)
    assert found == rows().slice(1)
    assert table.scan().count() == ROWS + 6
    assert table.scan(filter="id >= 5990 and text = 'text 5998'").to_arrow()["id"].to_pylist() == [5998]
    cents = table.scan(columns=["cents"], filter=f"wide < 0.05 and id < {ROWS}").to_arrow()["cents"].to_pylist()
    assert sorted(cents) == [Decimal(n) / 100 for n in range(1, 5)]
    for deletes in table.inspect.delete_files()["file_path"].to_pylist():
        paths = pq.read_metadata(deletes.removeprefix("file://")).row_group(0).column(0)
        assert paths.path_in_schema == "file_path"
        assert ("DELTA_BYTE_ARRAY" in paths.encodings) == (version == "v2")
    file = table.scan(filter="id = 5").plan().files["file_path"].to_pylist()[0]
    assert _pages(file) == ({3} if version == "v2" else {0})


def _pages(file: str) -> set[int]:
    """The types of the pages of the first column: 0 and 3 are data pages of versions 1 and 2 (parquet.thrift)."""
    with Path(file.removeprefix("file://")).open("rb") as data:
        data.seek(4)
        head = data.read(2)
    assert head[0] == 0x15  # field 1, an i32, as a zigzag number
    return {head[1] >> 1}
