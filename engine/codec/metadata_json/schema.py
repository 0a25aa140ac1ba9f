"""JSON form of types and schemas (spec appendix C: "Schemas")."""

from __future__ import annotations

import re
from typing import Any

from icebench.engine.codec.metadata_json.objects import JsonObject, JsonValue, parse_json, write_json
from icebench.engine.codec.metadata_json.values import DefaultValue, value_from_json, value_to_json
from icebench.engine.errors import CorruptTable, Invalid, Unsupported
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    MAX_DEPTH,
    SIMPLE_PRIMITIVES,
    DecimalType,
    FixedType,
    GeospatialType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    list_type,
    map_type,
)

_DECIMAL = re.compile(r"decimal\s*\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)", re.ASCII)
_FIXED = re.compile(r"fixed\s*\[\s*(\d{1,9})\s*\]", re.ASCII)
# Possessive, and the spaces around a CRS are stripped afterwards, so that matching takes linear time.
_GEOMETRY = re.compile(r"geometry\s*+(?:\(([^)]*+)\))?+", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"geography\s*+(?:\(([^,)]*+)(?:,\s*+(\w*+)\s*+)?+\))?+", re.IGNORECASE)


def primitive_from_text(text: str) -> PrimitiveType | None:
    """Parse a primitive type with its parameters, such as ``decimal(9, 2)``; None for an unknown name.

    Raises:
        ValueError: The parameters are out of the type's range.
    """
    lowered = text.strip().lower()
    simple = SIMPLE_PRIMITIVES.get(lowered)
    if simple is not None:
        return simple
    if found := _DECIMAL.fullmatch(lowered):
        return DecimalType(int(found[1]), int(found[2]))
    if found := _FIXED.fullmatch(lowered):
        return FixedType(int(found[1]))
    if found := _GEOMETRY.fullmatch(text.strip()):
        return GeospatialType("geometry", (found[1] or "").strip() or None)
    if found := _GEOGRAPHY.fullmatch(text.strip()):
        return GeospatialType("geography", (found[1] or "").strip() or None, (found[2] or "").lower() or None)
    return None


def type_from_json(value: JsonValue, *, path: str = "type", location: str | None = None) -> Type:
    """The type that a parsed JSON value describes.

    Raises:
        CorruptTable: The value is no type; the error has the path.
        Unsupported: A type of a later format version, or nested too deeply.
    """
    return _type_from_json(value, path, location, 1)


def _type_from_json(value: JsonValue, path: str, location: str | None, depth: int) -> Type:
    if depth > MAX_DEPTH:
        raise Unsupported(f"{location or 'a schema'}: types nested over {MAX_DEPTH} deep, at {path}")
    if not isinstance(value, str):
        return _nested_from_json(JsonObject(value, path=path, location=location), depth)
    try:
        found = primitive_from_text(value)
    except ValueError as error:
        raise CorruptTable(str(error), location=location, path=path) from error
    if found is None:
        raise Unsupported(f"the type {value[:100]!r} at {path} is not one of format versions 1 to 3")
    return found


def _nested_from_json(node: JsonObject, depth: int) -> Type:
    kind = node.text("type")
    match kind:
        case "struct":
            return StructType(tuple(_field_from_json(child, depth) for child in node.children("fields")))
        case "list":
            return list_type(
                node.int32("element-id"), _type_of(node, "element", depth), required=node.flag("element-required")
            )
        case "map":
            return map_type(
                node.int32("key-id"),
                _type_of(node, "key", depth),
                node.int32("value-id"),
                _type_of(node, "value", depth),
                value_required=node.flag("value-required"),
            )
    raise node.error("type", f"{kind!r} is not struct, list or map")


def _type_of(node: JsonObject, key: str, depth: int) -> Type:
    return _type_from_json(node.value(key), node.path_of(key), node.location, depth + 1)


def _field_from_json(node: JsonObject, depth: int = 0) -> NestedField:
    type_ = _type_of(node, "type", depth)
    return NestedField(
        field_id=node.int32("id"),
        name=node.text("name"),
        type=type_,
        required=node.flag("required"),
        doc=node.text_or_none("doc"),
        initial_default=_default_from_json(node, "initial-default", type_),
        write_default=_default_from_json(node, "write-default", type_),
    )


def _default_from_json(node: JsonObject, key: str, type_: Type) -> DefaultValue:
    default = node.members.get(key)
    if default is not None and not isinstance(type_, PrimitiveType):
        raise Unsupported(f"{node.location or 'a schema'}: a default of type {type_}, at {node.path_of(key)}")
    try:
        return value_from_json(type_, default)
    except ValueError as error:
        raise node.error(key, str(error)) from error


def schema_from_json(value: JsonValue, *, path: str = "", location: str | None = None) -> Schema:
    """The schema that a parsed JSON object describes; `schema-id` defaults to 0 as in v1.

    Raises:
        CorruptTable: The value is no schema, or an id is used twice or unknown; the error has the path.
        Unsupported: A type of a later format version, or a default of a struct, list or map, as in Iceberg Java.
    """
    node = JsonObject(value, path=path, location=location)
    if node.has("type") and node.text("type") != "struct":
        raise node.error("type", "a schema is a struct")
    fields = tuple(_field_from_json(child) for child in node.children("fields"))
    identifiers = node.int32s("identifier-field-ids") if node.has("identifier-field-ids") else ()
    try:
        schema = Schema(fields, node.int32_or_none("schema-id") or 0, frozenset(identifiers))
    except Invalid as error:
        raise node.error("fields", str(error)) from error
    for field_id in identifiers:
        if field_id not in schema.by_id:
            raise node.error("identifier-field-ids", f"refers to field {field_id}, which is not in the schema")
    return schema


def type_to_json(type_: Type) -> JsonValue:
    """The JSON-ready form of a type."""
    match type_:
        case StructType(fields):
            return {"type": "struct", "fields": [_field_to_json(f) for f in fields]}
        case ListType(element):
            return {
                "type": "list",
                "element-id": element.field_id,
                "element": type_to_json(element.type),
                "element-required": element.required,
            }
        case MapType(key, value):
            return {
                "type": "map",
                "key-id": key.field_id,
                "key": type_to_json(key.type),
                "value-id": value.field_id,
                "value": type_to_json(value.type),
                "value-required": value.required,
            }
    return str(type_)


def _field_to_json(f: NestedField) -> dict[str, Any]:
    made = {"id": f.field_id, "name": f.name, "required": f.required, "type": type_to_json(f.type)}
    if f.doc is not None:
        made["doc"] = f.doc
    for key, default in (("initial-default", f.initial_default), ("write-default", f.write_default)):
        if default is not None:
            made[key] = value_to_json(f.type, default)
    return made


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """The JSON-ready form of a schema with its id."""
    made: dict[str, Any] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        made["identifier-field-ids"] = sorted(schema.identifier_field_ids)
    made["fields"] = [_field_to_json(f) for f in schema.fields]
    return made


def decode_schema(data: bytes, *, location: str | None = None) -> Schema:
    """The schema in a JSON text, as manifests carry it; errors as `schema_from_json`."""
    return schema_from_json(parse_json(data, location=location), path="schema", location=location)


def encode_schema(schema: Schema) -> bytes:
    """The JSON text of a schema."""
    return write_json(schema_to_json(schema))
