"""Files without field ids in tables without a name mapping: what Hive and Impala make of tables that they migrate."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import icebench
from icebench.engine.spec.data_file import DataFile, FileFormat
from icebench.engine.spec.types import LONG
from icebench.errors import ContradictionWarning, CorruptTable, Invalid, Unsupported

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("place", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.int32())])),
    ]
)
FORMATS: tuple[FileFormat, ...] = ("parquet", "orc", "avro")
ROWS: list[dict[str, Any]] = [{"id": i, "name": f"n{i}", "place": {"x": i, "y": -i}} for i in range(5)]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[icebench.Table]:
    catalog = icebench.load_catalog(f"{tmp_path}/wh")
    yield catalog.create_table("db.t", SCHEMA)
    catalog.close()


def encoded(data: pa.Table, file_format: FileFormat) -> bytes:
    sink = io.BytesIO()
    if file_format == "parquet":
        pq.write_table(data, sink)
    elif file_format == "orc":
        orc.write_table(data, sink)
    else:
        fastavro.writer(sink, fastavro.parse_schema(_avro(data.schema, "row")), data.to_pylist())
    return sink.getvalue()


def _avro(fields: pa.Schema | pa.StructType, name: str) -> dict[str, object]:
    def type_of(f: pa.Field) -> object:
        if pa.types.is_list(f.type):
            return {"type": "array", "items": ["null", type_of(f.type.value_field)]}
        return (
            _avro(f.type, f.name)
            if pa.types.is_struct(f.type)
            else {"int64": "long", "int32": "int"}.get(str(f.type), str(f.type))
        )

    return {"type": "record", "name": name, "fields": [{"name": f.name, "type": ["null", type_of(f)]} for f in fields]}


def add(table: icebench.Table, data: pa.Table, file_format: FileFormat, name: str = "f") -> None:
    location = f"{table.location}/data/{name}.{file_format}"
    content = encoded(data, file_format)
    table.store.write(location, content)
    file = DataFile(
        file_path=location,
        file_format=file_format,
        record_count=data.num_rows,
        file_size_in_bytes=len(content),
    )
    table.add_files([file])


def refused(table: icebench.Table, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        table.scan().to_arrow()


@pytest.mark.parametrize("file_format", FORMATS)
def test_columns_in_the_tables_order(table: icebench.Table, file_format: FileFormat) -> None:
    add(table, pa.Table.from_pylist(ROWS, SCHEMA), file_format)
    assert table.scan().to_arrow().to_pylist() == ROWS
    assert table.scan("id > 2 and place.y <= -3", columns=["name"]).to_arrow().to_pylist() == [
        {"name": "n3"},
        {"name": "n4"},
    ]
    assert table.scan("id = 9").count() == 0


@pytest.mark.parametrize("file_format", FORMATS)
def test_fewer_columns_are_null(table: icebench.Table, file_format: FileFormat) -> None:
    add(table, pa.Table.from_pylist(ROWS, SCHEMA).select(["id", "name"]), file_format)
    assert table.scan().to_arrow().to_pylist() == [{**row, "place": None} for row in ROWS]


def test_parquet_goes_by_position_and_others_by_name(table: icebench.Table) -> None:
    data = pa.Table.from_pylist(ROWS, SCHEMA).rename_columns(["number", "text", "place"])
    add(table, data, "parquet")
    assert table.scan().to_arrow().to_pylist() == ROWS


def test_a_renamed_and_a_dropped_column_keep_their_position(table: icebench.Table) -> None:
    add(table, pa.Table.from_pylist(ROWS, SCHEMA), "parquet")
    table.update_schema(lambda schema: schema.drop_column("id").rename_column("name", "title"))
    assert table.scan().to_arrow().to_pylist() == [{"title": r["name"], "place": r["place"]} for r in ROWS]


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_orders_are_found_by_name(table: icebench.Table, file_format: FileFormat) -> None:
    add(table, pa.Table.from_pylist(ROWS, SCHEMA).select(["name", "place", "id"]), file_format)
    assert table.scan().to_arrow().to_pylist() == ROWS


def test_a_parquet_file_in_another_order_is_refused(table: icebench.Table) -> None:
    add(table, pa.Table.from_pylist(ROWS, SCHEMA).select(["name", "id"]), "parquet")
    refused(table, "its column 1 has the name of column 2, 'name'")


def test_nested_columns_of_other_names_are_refused(table: icebench.Table) -> None:
    odd = pa.table({"id": [1], "name": ["n"], "place": [{"a": 1, "b": 2}]})
    add(
        table,
        odd.cast(pa.schema([*list(SCHEMA)[:2], pa.field("place", pa.struct({"a": pa.int32(), "b": pa.int32()}))])),
        "parquet",
    )
    refused(table, "nested names of its column 'place'")


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_a_file_with_a_former_name_is_refused(table: icebench.Table, file_format: FileFormat) -> None:
    add(table, pa.Table.from_pylist(ROWS, SCHEMA), file_format)
    table.update_schema(lambda schema: schema.rename_column("name", "title"))
    refused(table, "the name of its column 'name'")


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_a_file_whose_names_are_all_others_is_refused(table: icebench.Table, file_format: FileFormat) -> None:
    add(table, pa.table({"_col0": [1], "_col1": ["a"]}), file_format)
    refused(table, "the name of its column '_col0'")


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_column_that_the_table_had_later_is_refused(table: icebench.Table, file_format: FileFormat) -> None:
    # Planning takes it that the file lacks the column, as its snapshot is older: a filter would lose rows.
    add(table, pa.table({"id": [1], "name": ["n"], "extra": [7]}), file_format)
    table.update_schema(lambda schema: schema.drop_column("place").add_column("extra", LONG))
    table.append(pa.table({"id": [2], "name": ["m"], "extra": [8]}))
    named = (
        "its column 3 has the name of column 6" if file_format == "parquet" else "'extra' is newer than some snapshots"
    )
    refused(table, named)


@pytest.mark.parametrize("name", ["extra", "other"])
def test_a_position_that_the_table_had_later_is_refused(tmp_path: Path, name: str) -> None:
    table = icebench.load_catalog(f"{tmp_path}/wh").create_table("db.t", pa.schema([("id", pa.int64())]))
    add(table, pa.table({"id": [1], name: [7]}), "parquet")
    table.update_schema(lambda schema: schema.add_column("extra", LONG))
    refused(table, f"its column '{name}' is newer than some snapshots")


def test_a_name_mapping_comes_first(table: icebench.Table) -> None:
    add(table, pa.Table.from_pylist(ROWS, SCHEMA).select(["name", "id"]), "parquet")
    mapping = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name"]}]'
    table.set_properties({"schema.name-mapping.default": mapping})
    assert table.scan().to_arrow().to_pylist() == [{**row, "place": None} for row in ROWS]


def test_a_file_with_some_ids_is_not_numbered(table: icebench.Table) -> None:
    fields = [pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}), pa.field("name", pa.string())]
    add(table, pa.table({"id": [1], "name": ["n"]}, schema=pa.schema(fields)), "parquet")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "name": None, "place": None}]


HIVES_MAPPING = """[
    {"field-id": 1, "names": ["place"], "fields": [{"field-id": 2, "names": ["x"]}, {"field-id": 3, "names": ["y"]}]},
    {"field-id": 4, "names": ["id"]},
    {"field-id": 5, "names": ["tags"], "fields": [{"field-id": 6, "names": ["element"]}]}
]"""
"""Hive numbers the columns that it migrates in another order than the schema of the table that it makes."""
MIGRATED = pa.schema([SCHEMA.field("place"), SCHEMA.field("id"), pa.field("tags", pa.list_(pa.int32()))])
MIGRATED_ROWS = [{"place": {"x": i, "y": -i}, "id": i, "tags": [i, None]} for i in range(5)]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_name_mapping_of_other_ids_is_not_believed(tmp_path: Path, file_format: FileFormat) -> None:
    table = icebench.load_catalog(f"{tmp_path}/wh").create_table(
        "db.t", MIGRATED, properties={"schema.name-mapping.default": HIVES_MAPPING}
    )
    assert [f.field_id for f in table.schema().fields] == [1, 2, 3]
    with_own_ids = {"write.format.default": file_format}
    table.set_properties(with_own_ids)
    table.append(pa.Table.from_pylist(MIGRATED_ROWS[:1], MIGRATED))
    strict = icebench.load_table(table.metadata_location, verify="strict")
    assert strict.scan().to_arrow().to_pylist() == MIGRATED_ROWS[:1]
    add(table, pa.Table.from_pylist(MIGRATED_ROWS[1:], MIGRATED), file_format)
    for columns in (None, ["id"], ["tags"], ["place"]):
        with pytest.warns(ContradictionWarning, match="the table's name mapping has id 2 in another place"):
            found = icebench.load_table(table.metadata_location).scan(columns=columns).to_arrow().to_pylist()
        kept = columns or MIGRATED.names
        assert sorted(found, key=str) == sorted([{c: row[c] for c in kept} for row in MIGRATED_ROWS], key=str)
    with pytest.warns(ContradictionWarning):
        assert icebench.load_table(table.metadata_location).scan("id >= 3 and place.y < -3").count() == 1
    with pytest.raises(CorruptTable, match="the table's name mapping has id 2 in another place"):
        icebench.load_table(table.metadata_location, verify="strict").scan().to_arrow()


def test_a_name_mapping_may_have_other_names_and_ids_of_dropped_columns(table: icebench.Table) -> None:
    add(table, pa.Table.from_pylist(ROWS, SCHEMA), "parquet")
    inner = '[{"field-id": 4, "names": ["y"]}, {"field-id": 5, "names": ["x"]}]'
    within_none = '{"names": ["z"], "fields": [{"field-id": 4, "names": ["q"]}]}'
    swapped = f"""[{{"field-id": 3, "names": ["place"], "fields": {inner}}}, {{"field-id": 1, "names": ["id", "no"]}},
        {within_none}]"""
    table.set_properties({"schema.name-mapping.default": swapped})
    table.update_schema(lambda schema: schema.drop_column("name"))
    expected = [{"id": r["id"], "place": {"x": r["place"]["y"], "y": r["place"]["x"]}} for r in ROWS]
    assert table.scan().to_arrow().to_pylist() == expected


def test_files_are_not_added_by_a_name_mapping_of_other_ids(tmp_path: Path) -> None:
    properties = {"schema.name-mapping.default": HIVES_MAPPING}
    table = icebench.load_catalog(f"{tmp_path}/wh").create_table("db.t", MIGRATED, properties=properties)
    location = f"{table.location}/data/f.parquet"
    table.store.write(location, encoded(pa.Table.from_pylist(MIGRATED_ROWS, MIGRATED), "parquet"))
    with pytest.raises(Invalid, match=r"schema\.name-mapping\.default has id 2 in another place"):
        table.add_files([location])
