"""Types and schemas as JSON."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pytest

from icebench.engine.codec.metadata_json.schema import (
    decode_schema,
    encode_schema,
    primitive_from_text,
    schema_from_json,
    schema_to_json,
    type_from_json,
    type_to_json,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    DOUBLE,
    LONG,
    MAX_DEPTH,
    SIMPLE_PRIMITIVES,
    STRING,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    GeospatialType,
    NestedField,
    PrimitiveType,
    StructType,
    list_type,
    map_type,
)
from icebench.errors import CorruptTable, Unsupported

NESTED = StructType(
    (
        NestedField(field_id=3, name="a", type=list_type(4, STRING, required=True), required=True, doc="words"),
        NestedField(field_id=5, name="b", type=map_type(6, STRING, 7, DOUBLE)),
    )
)


@pytest.mark.parametrize("name", sorted(SIMPLE_PRIMITIVES))
def test_types_without_parameters(name: str):
    assert type_from_json(name) == SIMPLE_PRIMITIVES[name]
    assert type_to_json(SIMPLE_PRIMITIVES[name]) == name


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("decimal(9,2)", DecimalType(9, 2)),
        ("decimal( 38 , 0 )", DecimalType(38, 0)),
        ("fixed[16]", FixedType(16)),
        ("FIXED[ 0 ]", FixedType(0)),
        ("geometry", GeospatialType("geometry")),
        ("geometry(srid:4326)", GeospatialType("geometry", "srid:4326")),
        ("Geometry(OGC:CRS84)", GeospatialType("geometry", "OGC:CRS84")),
        ("geography(OGC:CRS84, Karney)", GeospatialType("geography", "OGC:CRS84", "karney")),
        ("Long", LONG),
    ],
)
def test_types_with_parameters(text: str, type_: PrimitiveType):
    assert primitive_from_text(text) == type_
    written = type_to_json(type_)
    assert type_from_json(written) == type_


@pytest.mark.parametrize("text", ["decimal(39, 2)", "decimal(0, 0)", "decimal(4, 5)"])
def test_impossible_parameters(text: str):
    with pytest.raises(CorruptTable, match="decimal"):
        type_from_json(text)


def test_types_of_later_versions_are_unsupported():
    with pytest.raises(Unsupported, match="interval"):
        schema_from_json({"type": "struct", "fields": [{"id": 1, "name": "i", "required": True, "type": "interval"}]})


def test_nested_types_and_their_ids():
    assert type_from_json(type_to_json(NESTED)) == NESTED
    assert type_to_json(NESTED)["fields"][1]["type"] == {
        "type": "map",
        "key-id": 6,
        "key": "string",
        "value-id": 7,
        "value": "double",
        "value-required": False,
    }


@pytest.mark.parametrize(
    ("type_", "value", "written"),
    [
        (LONG, 5, 5),
        (DecimalType(9, 2), Decimal("1.50"), "1.50"),
        (UUID, uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (TIMESTAMPTZ_NS, -1, "1969-12-31T23:59:59.999999999+00:00"),
    ],
)
def test_defaults(type_: PrimitiveType, value: Any, written: Any):
    f = NestedField(field_id=1, name="c", type=type_, initial_default=value, write_default=value)
    schema = Schema((f,), 4)
    made = schema_to_json(schema)
    assert made["fields"][0]["initial-default"] == made["fields"][0]["write-default"] == written
    assert schema_from_json(made) == schema


@pytest.mark.parametrize("key", ["initial-default", "write-default"])
@pytest.mark.parametrize("default", [{}, {"2": 5}])
def test_defaults_of_structs_are_refused_by_name(key: str, default: Any):
    """As in Iceberg Java: a file that lacks the column would read as null."""
    inner = {"type": "struct", "fields": [{"id": 2, "name": "x", "required": False, "type": "long"}]}
    f = {"id": 1, "name": "c", "required": False, "type": inner}
    assert schema_from_json({"fields": [{**f, key: None}]}).fields[0].initial_default is None
    with pytest.raises(Unsupported, match=f"a default of type struct.*, at s.fields.0..{key}"):
        schema_from_json({"fields": [{**f, key: default}]}, path="s")


def test_schemas_as_text():
    schema = Schema((NestedField(field_id=1, name="é", type=NESTED),), 9, frozenset())
    assert decode_schema(encode_schema(schema)) == schema
    assert hash(decode_schema(encode_schema(schema))) == hash(schema)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"id": None}, "s.fields[0].id"),
        ({"required": "yes"}, "s.fields[0].required"),
        ({"type": {"type": "set"}}, "s.fields[0].type.type"),
        ({"type": 5}, "s.fields[0].type"),
        ({"type": {"type": "list", "element-id": 2, "element": "int"}}, "s.fields[0].type.element-required"),
        ({"initial-default": "x"}, "s.fields[0].initial-default"),
    ],
)
def test_errors_name_the_place(change: dict[str, Any], path: str):
    f = {"id": 1, "name": "c", "required": False, "type": "long", **change}
    with pytest.raises(CorruptTable) as caught:
        schema_from_json({"type": "struct", "fields": [f]}, path="s")
    assert caught.value.path == path


def test_an_id_is_given_once():
    f = {"id": 1, "name": "c", "required": False, "type": "long"}
    with pytest.raises(CorruptTable, match="used twice"):
        schema_from_json({"fields": [f, f]})


def nested_lists(depth: int) -> Any:
    made: Any = "long"
    for i in range(1, depth):
        made = {"type": "list", "element-id": i + 1, "element": made, "element-required": False}
    return made


def test_types_are_nested_so_deep_and_no_deeper():
    schema = {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": nested_lists(MAX_DEPTH)}]}
    assert len(schema_from_json(schema).by_id) == MAX_DEPTH
    for depth in (MAX_DEPTH + 1, 300):
        with pytest.raises(Unsupported, match=f"nested over {MAX_DEPTH} deep, at type.element"):
            type_from_json(nested_lists(depth), location="v1.metadata.json")


@pytest.mark.parametrize(
    ("text", "crs", "algorithm"),
    [
        ("geometry", None, None),
        ("geometry ( srid : 4326  )", "srid : 4326", None),
        ("Geometry()", None, None),
        ("geography( srid:4326 , Vincenty )", "srid:4326", "vincenty"),
        ("geography(srid:4326,)", "srid:4326", None),
        ("geography (  )", None, None),
    ],
)
def test_geospatial_parameters_may_have_spaces_around_them(text: str, crs: str | None, algorithm: str | None):
    assert primitive_from_text(text) == GeospatialType(text.lower().split("(")[0].strip(), crs, algorithm)


@pytest.mark.parametrize("text", ["geometry(", "geometry(a)b", "geometry(a))", "geography(a,b,c)", "geography(a, b c)"])
def test_geospatial_types_that_are_none(text: str):
    assert primitive_from_text(text) is None


def test_identifiers_and_defaults_that_are_false_zero_or_empty_are_written():
    fields = tuple(
        NestedField(field_id=i, name=f"c{i}", type=type_, required=True, initial_default=value, write_default=value)
        for i, (type_, value) in enumerate(((LONG, 0), (SIMPLE_PRIMITIVES["boolean"], False), (STRING, "")), 1)
    )
    schema = Schema(fields, 0, frozenset({1, 3}))
    assert decode_schema(encode_schema(schema)) == schema
    written = schema_to_json(schema)
    assert written["identifier-field-ids"] == [1, 3]
    assert [f["initial-default"] for f in written["fields"]] == [0, False, ""]
