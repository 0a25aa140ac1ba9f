"""Manifests of other writers, by hand: what is required, what is checked, where errors point."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.codec.avro.reading import block_columns
from icebench.engine.codec.manifests.reader import decode_columns, decode_entries, decode_header
from icebench.engine.spec.manifest import EntryStatus, ManifestContent
from icebench.errors import CorruptTable, Unsupported
from tests.property.avro_writing import Style, container

HEADER = {
    "schema": json.dumps({"type": "struct", "schema-id": 0, "fields": []}),
    "partition-spec": json.dumps([{"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000}]),
    "partition-spec-id": "0",
    "format-version": "2",
    "content": "deletes",
}
FILE = {"file_path": "s3://b/a.parquet", "file_format": "PARQUET", "record_count": 3, "file_size_in_bytes": 9}


@pytest.fixture(params=["interpreted", "compiled"], scope="module", autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to run the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DECODE_CHUNK, "should_use", lambda _: request.param != "interpreted")
        yield


def named(name: str, field_id: int | None, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": type_} | ({} if field_id is None else {"field-id": field_id})


def schema(*more: dict[str, Any], partition: Any = "int", without: str = "") -> dict[str, Any]:
    file_fields = [
        named("file_path", 100, "string"),
        named("file_format", 101, "string"),
        named("partition", 102, {"type": "record", "name": "r102", "fields": [named("p", 1000, partition)]}),
        named("record_count", 103, "long"),
        named("file_size_in_bytes", 104, "long"),
        *more,
    ]
    file_fields = [f for f in file_fields if f["name"] != without]
    fields = [named("status", 0, "int"), named("data_file", 2, {"type": "record", "name": "r2", "fields": file_fields})]
    return {"type": "record", "name": "manifest_entry", "fields": [f for f in fields if f["name"] != without]}


def entry(status: int = 1, partition: Any = 5, **more: Any) -> dict[str, Any]:
    return {"status": status, "data_file": {**FILE, "partition": {"p": partition}, **more}}


def manifest(entries: list[Any], writer_schema: Any = None, *, header: Any = None, **style: Any) -> bytes:
    return container(writer_schema or schema(), entries, HEADER if header is None else header, Style(**style))


def test_what_v1_lacks():
    (found,) = decode_entries(manifest([entry()]))
    assert found.status is EntryStatus.ADDED
    assert (found.snapshot_id, found.sequence_number, found.file_sequence_number) == (None, None, None)
    assert found.data_file.content == 0
    assert found.data_file.partition == (5,)
    assert (found.data_file.split_offsets, found.data_file.first_row_id) == (None, None)
    assert found.data_file.lower_bounds == {}
    columns = decode_columns(manifest([entry()]), metrics=[1])
    assert columns["sequence_number"].to_pylist() == [None]
    assert columns["content"].to_pylist() == [0]
    assert columns.keys_of("lower_bounds") == []


def test_header():
    header = decode_header(manifest([]))
    assert (header.format_version, header.content, header.spec.spec_id) == (2, ManifestContent.DELETES, 0)
    assert header.spec.fields[0].name == "p"
    old = decode_header(manifest([], header={k: HEADER[k] for k in ("schema", "partition-spec")}))
    assert (old.format_version, old.content, old.spec.spec_id) == (1, ManifestContent.DATA, 0)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"schema": None}, "header.schema"),
        ({"partition-spec": None}, "header.partition-spec"),
        ({"partition-spec": "{}"}, "header.partition-spec"),
        ({"partition-spec-id": "x"}, "header.partition-spec-id"),
        ({"format-version": "-1"}, "header.format-version"),
        ({"content": "both"}, "header.content"),
    ],
)
def test_headers_that_contradict_the_specification(change: dict[str, Any], path: str):
    header = {key: value for key, value in {**HEADER, **change}.items() if value is not None}
    with pytest.raises(CorruptTable) as caught:
        decode_header(manifest([], header=header), location="m.avro")
    assert (caught.value.location, caught.value.path) == ("m.avro", path)


def test_later_versions_are_unsupported():
    with pytest.raises(Unsupported, match="format version 4"):
        decode_header(manifest([], header={**HEADER, "format-version": "4"}))


@pytest.mark.parametrize("name", ["status", "file_path", "file_format", "record_count", "file_size_in_bytes"])
def test_required_fields(name: str):
    with pytest.raises(CorruptTable, match=name):
        decode_columns(manifest([entry()], schema(without=name)))


@pytest.mark.parametrize(
    ("more", "value"),
    [
        (named("sort_order_id", 140, "string"), "x"),
        (named("key_metadata", 131, "long"), 1),
        (named("split_offsets", 132, "long"), 1),
        (named("split_offsets", 132, {"type": "array", "items": "string"}), ["x"]),
        (named("first_row_id", 142, "boolean"), True),
        (named("value_counts", 109, {"type": "map", "values": "long"}), {"1": 2}),
        (named("lower_bounds", 125, "bytes"), b""),
    ],
)
def test_fields_of_another_type(more: dict[str, Any], value: Any):
    data = manifest([entry(**{more["name"]: value})], schema(more))
    with pytest.raises(CorruptTable) as caught:
        decode_columns(data, metrics=[1])
    assert caught.value.path == "header.avro.schema"


def test_unknown_codes_name_their_entry():
    with pytest.raises(CorruptTable, match="7 is not a status") as caught:
        decode_columns(manifest([entry(), entry(status=7)]))
    assert caught.value.path == "entry 1"


def test_text_is_utf8():
    data = manifest([entry(), entry(file_path="s3://b/%")], codec="null").replace(b"s3://b/%", b"s3://b/\xff")
    with pytest.raises(CorruptTable, match="not UTF-8") as caught:
        decode_columns(data)
    assert caught.value.path == "entry 1"


def test_unknown_file_formats_are_unsupported():
    with pytest.raises(Unsupported, match="lance"):
        decode_entries(manifest([entry(file_format="lance")]))


def test_damage_names_block_and_entry():
    data = manifest([entry() for _ in range(10)], objects_per_block=4, codec="null")
    # The length of the path of the third entry of the second block.
    place = -1
    for _ in range(7):
        place = data.index(b"s3://b/a.parquet", place + 1)
    damaged = data[: place - 1] + b"\x7f" + data[place:]
    with pytest.raises(CorruptTable) as caught:
        decode_columns(damaged, location="m.avro")
    assert (caught.value.location, caught.value.path) == ("m.avro", "block 1, entry 2")


def test_a_block_cannot_hold_more_objects_than_bytes():
    data = bytearray(manifest([entry()], codec="null"))
    count = data.index(bytes(range(16))) + 16
    data[count] = 0x7E
    with pytest.raises(CorruptTable, match="claims 63 objects") as caught:
        decode_columns(bytes(data))
    assert caught.value.path == "block 0"


def fixed(size: int, **logical: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "f", "size": size, **logical}


@pytest.mark.parametrize(
    ("type_", "written", "value"),
    [
        ({"type": "int", "logicalType": "date"}, 19_000, 19_000),
        ("boolean", True, True),
        ("float", 1.5, 1.5),
        ("string", "é", "é"),
        ("bytes", b"\xff", b"\xff"),
        (fixed(16, logicalType="uuid"), bytes(15) + b"\x07", uuid.UUID(int=7)),
        ({"type": "string", "logicalType": "uuid"}, str(uuid.UUID(int=7)), uuid.UUID(int=7)),
        (
            fixed(4, logicalType="decimal", precision=9, scale=2),
            (-150).to_bytes(4, "big", signed=True),
            Decimal("-1.50"),
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, b"\x00\xff", Decimal("2.55")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x07", Decimal(7)),
        (fixed(2), b"ab", b"ab"),
        ("null", None, None),
    ],
)
def test_partition_values_are_internal_values(type_: Any, written: Any, value: Any):
    (found,) = decode_entries(manifest([entry(partition=written)], schema(partition=type_)))
    assert found.data_file.partition == (value,)
    assert type(found.data_file.partition[0]) is type(value)


def test_partition_fields_may_be_left_out_when_their_source_was_dropped():
    bare = schema(partition="int")
    bare["fields"][1]["type"]["fields"][2]["type"]["fields"] = []
    (found,) = decode_entries(manifest([entry()], bare))
    assert found.data_file.partition == (None,)


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        ({"type": "string", "logicalType": "uuid"}, "not a uuid"),
        (fixed(3, logicalType="uuid"), b"abc"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": "x"}, b"\x07"),
        ({"type": "array", "items": "int"}, [1]),
    ],
)
def test_partition_values_that_are_none(type_: Any, written: Any):
    with pytest.raises(CorruptTable):
        decode_entries(manifest([entry(partition=written)], schema(partition=type_)))


@pytest.mark.parametrize("codec", ["deflate", "null"])
def test_one_block_that_takes_far_more_room_than_most(codec: str):
    offsets = named("split_offsets", 132, {"type": "array", "items": "long"})
    made = [entry(split_offsets=[], file_path="p" * 50)] * 20_000 + [entry(split_offsets=list(range(200)))] * 300
    data = manifest(made, schema(offsets), objects_per_block=len(made), codec=codec)
    columns = decode_columns(data)
    assert columns.count == len(made)
    assert columns["file_path"].to_pylist() == [e["data_file"]["file_path"].encode() for e in made]
    assert columns["split_offsets"].to_pylist() == [e["data_file"]["split_offsets"] for e in made]


def test_without_libdeflate_by_its_address(monkeypatch: pytest.MonkeyPatch):
    data = manifest([entry(partition=i) for i in range(500)], objects_per_block=9, codec="deflate")
    monkeypatch.setattr(block_columns, "is_callable", lambda: False)
    assert decode_columns(data)["partition/1000"].to_pylist() == list(range(500))


def test_threads_give_the_same_columns():
    data = manifest([entry(partition=i, record_count=i) for i in range(2000)], objects_per_block=7, codec="null")
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(3) as pool:
        patch.setattr(block_columns, "_CHUNK_BYTES", 500)
        columns = decode_columns(data, map_chunks=pool.map)
    assert columns["record_count"].to_pylist() == columns["partition/1000"].to_pylist() == list(range(2000))
    assert columns["file_path"].to_pylist() == [b"s3://b/a.parquet"] * 2000
    assert columns.size_bytes > 2000 * 8


def _field(field_id: object, type_: object) -> dict[str, object]:
    return {"id": field_id, "name": f"c{field_id}", "type": type_, "required": False}


_MAP = {
    "type": "map",
    "key-id": 2,
    "key": "int",
    "value-id": 3,
    "value": {"type": "struct", "fields": [_field(12, "int")]},
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (json.dumps({"type": "struct", "fields": [_field(7, "long"), _field(5, "int")]}), 7),
        (json.dumps({"type": "struct", "fields": [_field(1, {"type": "struct", "fields": [_field(9, "int")]})]}), 9),
        (json.dumps({"type": "struct", "fields": [_field(1, {"type": "list", "element-id": 8, "element": "int"})]}), 8),
        (json.dumps({"type": "struct", "fields": [_field(1, _MAP), _field(4, "int")]}), 12),
        (HEADER["schema"], None),
        ("no JSON", None),
        ("[]", None),
        (json.dumps({"type": "struct", "fields": [{"id": 7}]}), None),
        (json.dumps({"type": "struct", "fields": [_field("7", "int"), _field(8, "int")]}), None),
        (json.dumps({"type": "struct", "fields": [_field("7", "int")]}), None),
    ],
)
def test_the_highest_id_that_the_table_had(text: str, found: int | None) -> None:
    data = manifest([entry()], header={**HEADER, "schema": text})
    assert decode_columns(data).highest_field_id == found
