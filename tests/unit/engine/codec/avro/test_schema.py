"""Avro schemas of Iceberg types, against what Iceberg Java and PyIceberg write."""

from __future__ import annotations

import pytest

from icebench.engine.codec.avro.schema import avro_name, decimal_width, record_schema
from icebench.engine.codec.manifests.schema import entry_type, manifest_file_type
from icebench.engine.spec.types import (
    INT,
    TIMESTAMPTZ,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    NestedField,
    StructType,
    Type,
)
from icebench.errors import Unsupported


def partition(*types: Type) -> StructType:
    return StructType(tuple(NestedField(field_id=1000 + i, name=f"p{i}", type=t) for i, t in enumerate(types)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ok_1", "ok_1"),
        ("9x", "_9x"),
        ("x_", "x_"),
        ("a.b", "a_x2Eb"),
        ("☃", "_x2603"),
        ("a#b", "a_x23b"),
        ("", ""),
        ("\U0001f600", "_xD83D_xDE00"),
    ],
)
def test_names_are_sanitised_as_iceberg_java_does(name: str, expected: str):
    assert avro_name(name) == expected


def test_sanitised_fields_keep_their_name_in_a_property():
    made = record_schema(StructType((NestedField(field_id=1, name="9x", type=INT),)), "r")["fields"][0]
    assert made == {
        "name": "_9x",
        "type": ["null", "int"],
        "default": None,
        "iceberg-field-name": "9x",
        "field-id": 1,
    }


@pytest.mark.parametrize(
    ("precision", "width"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)]
)
def test_decimals_take_the_fewest_bytes(precision: int, width: int):
    assert decimal_width(precision) == width


def test_a_named_type_is_defined_once():
    made = record_schema(partition(DecimalType(9, 2), DecimalType(9, 2), UUID, UUID, FixedType(4), FixedType(4)), "r")
    types = [f["type"][1] for f in made["fields"]]
    assert types[1::2] == ["decimal_9_2", "uuid_fixed", "fixed_4"]
    assert types[0] == {
        "type": "fixed",
        "name": "decimal_9_2",
        "size": 4,
        "logicalType": "decimal",
        "precision": 9,
        "scale": 2,
    }


def test_manifest_entries_of_each_version():
    required: dict[int, set[str]] = {}
    for version in (1, 2, 3):
        made = record_schema(entry_type(partition(TIMESTAMPTZ), version), "manifest_entry")
        entry = {f["name"]: f for f in made["fields"]}
        file = {f["name"]: f for f in entry["data_file"]["type"]["fields"]}
        required[version] = {name for name, f in {**entry, **file}.items() if not isinstance(f["type"], list)}
        assert file["partition"]["type"]["name"] == "r102"
        assert file["lower_bounds"]["type"][1]["logicalType"] == "map"
        assert file["lower_bounds"]["type"][1]["items"]["name"] == "k126_v127"
        assert file["split_offsets"]["type"][1]["element-id"] == 133
        assert ("block_size_in_bytes" in file) == (version == 1)
        assert ("first_row_id" in file) == ("content_offset" in file) == (version == 3)
    common = {"status", "data_file", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes"}
    assert required[1] == common | {"snapshot_id", "block_size_in_bytes"}
    assert required[2] == required[3] == common | {"content"}


def test_manifest_lists_of_each_version():
    names = {v: [f.name for f in manifest_file_type(v).fields] for v in (1, 2, 3)}
    assert "content" not in names[1]
    assert names[3] == [*names[2], "first_row_id"]
    assert names[2][:7] == [
        "manifest_path",
        "manifest_length",
        "partition_spec_id",
        "content",
        "sequence_number",
        "min_sequence_number",
        "added_snapshot_id",
    ]


def test_variants_are_unsupported():
    with pytest.raises(Unsupported, match="variant"):
        record_schema(partition(VARIANT), "r")
