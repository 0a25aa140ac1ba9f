"""Converts Avro schemas of data files to Arrow schemas with field ids (spec: appendix A, "Avro")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.codec.avro.schema import AvroSchema
from icebench.engine.columnar.schemas import FIELD_ID_KEY, child_fields, field_id_of, is_list
from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.spec.values import decimal_of

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "null": pa.null(),
}
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""Errors of walking something that is no schema, and of pyarrow for impossible types."""


def arrow_schema(schema: AvroSchema, location: str) -> pa.Schema:
    """The columns of a record schema, under their Avro names, with its field ids.

    Raises:
        CorruptTable: Not an Avro schema.
        Unsupported: A type that tables do not have, or a schema that is no record.
    """
    made = _Types(location)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise Unsupported(f"{location}: an Avro file of something else than records")
    try:
        return pa.schema(made.fields(schema))
    except MALFORMED as error:
        reason = f"{type(error).__name__}: {error}"
        raise CorruptTable(f"the Avro schema is malformed: {reason:.300}", location=location) from error


class _Types:
    """Walks one schema. Named types are defined once and referred to afterwards."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._named: dict[str, dict[str, Any]] = {}

    def fields(self, record: Mapping[str, Any]) -> list[pa.Field]:
        return [_field(f["name"], self.of(f["type"]), f.get("field-id")) for f in record["fields"]]

    def of(self, schema: AvroSchema) -> pa.DataType:
        if isinstance(schema, list):
            others = [branch for branch in schema if branch != "null"]
            if len(others) != 1:
                raise Unsupported(f"{self._location}: an Avro union of {len(others)} types")
            return self.of(others[0])
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return _PRIMITIVES[schema]
            schema = self._named.get(schema)
        if not isinstance(schema, dict):
            raise Unsupported(f"{self._location}: the Avro type {schema!r}")
        if "name" in schema:
            space = schema.get("namespace")
            self._named[schema["name"]] = schema
            self._named[f"{space}.{schema['name']}"] = schema
        match schema.get("type"):
            case "record":
                return pa.struct(self.fields(schema))
            case "array":
                return self._array(schema)
            case "map":
                key = _field("key", pa.string(), schema.get("key-id")).with_nullable(False)
                return pa.map_(key, _field("value", self.of(schema["values"]), schema.get("value-id")))
            case "fixed":
                return self._fixed(schema)
            case str(kind) if kind in _PRIMITIVES:
                return self._logical(schema, kind)
            case inner:
                return self.of(inner)

    def _array(self, schema: Mapping[str, Any]) -> pa.DataType:
        if schema.get("logicalType") == "map":
            key, value = self.fields(schema["items"])
            return pa.map_(key.with_name("key").with_nullable(False), value.with_name("value"))
        if self._takes_no_bytes(schema["items"]):
            raise Unsupported(f"{self._location}: an Avro array of items without bytes, of which there is no end")
        return pa.list_(_field("element", self.of(schema["items"]), schema.get("element-id")))

    def _takes_no_bytes(self, schema: AvroSchema) -> bool:
        """Whether values of that type take no bytes."""
        if isinstance(schema, str):
            schema = self._named.get(schema, schema)
        if not isinstance(schema, dict):
            return schema == "null"
        match schema.get("type"):
            case "record":
                return all(self._takes_no_bytes(f["type"]) for f in schema["fields"])
            case "fixed":
                return bool(schema["size"] == 0)
        return self._takes_no_bytes(schema["type"]) if schema["type"] not in ("array", "map") else False

    def _fixed(self, schema: Mapping[str, Any]) -> pa.DataType:
        if schema.get("logicalType") == "decimal":
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        return pa.binary(schema["size"])

    def _logical(self, schema: Mapping[str, Any], kind: str) -> pa.DataType:
        match schema.get("logicalType"), kind:
            case "date", "int":
                return pa.date32()
            case "time-micros", "long":
                return pa.time64("us")
            case ("timestamp-micros" | "local-timestamp-micros") as name, "long":
                return pa.timestamp("us", _zone(schema, name))
            case ("timestamp-nanos" | "local-timestamp-nanos") as name, "long":
                return pa.timestamp("ns", _zone(schema, name))
            case ("timestamp-millis" | "local-timestamp-millis") as name, "long":
                return pa.timestamp("ms", _zone(schema, name))
            case "decimal", "bytes":
                return pa.decimal128(schema["precision"], schema.get("scale", 0))
        return _PRIMITIVES[kind]


def _zone(schema: Mapping[str, Any], name: str) -> str | None:
    """The time zone of a timestamp: UTC unless the schema says otherwise; none for Avro's local timestamps."""
    return None if name.startswith("local") or schema.get("adjust-to-utc") is False else "UTC"


def _field(name: Any, type_: pa.DataType, field_id: Any) -> pa.Field:  # noqa: ANN401 - JSON
    if not isinstance(name, str) or not (field_id is None or type(field_id) is int):
        raise TypeError(f"a field with the name {name!r} and the id {field_id!r}")
    return pa.field(name, type_, metadata=None if field_id is None else {FIELD_ID_KEY: str(field_id)})


def is_plain(field: pa.Field, stored: AvroSchema) -> bool:
    """Whether the columnar decoder supports the field: it has an id, is no nested type and, if a decimal, has a fixed
    length."""
    if field_id_of(field) is None or child_fields(field.type) or pat.is_null(field.type):
        return False
    return not pat.is_decimal(field.type) or _is_fixed(stored)


def _is_fixed(stored: AvroSchema) -> bool:
    if isinstance(stored, list):
        return any(_is_fixed(branch) for branch in stored)
    return isinstance(stored, dict) and (stored.get("type") == "fixed" or _is_fixed(stored.get("type")))


def plain_schema(schema: AvroSchema) -> Any:  # noqa: ANN401 - JSON
    """The schema without logical types, so that fastavro returns numbers and bytes as they are stored."""
    if isinstance(schema, list):
        return [plain_schema(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name not in ("logicalType", "default")}
    if "fields" in kept:
        kept["fields"] = [
            {**{k: v for k, v in f.items() if k != "default"}, "type": plain_schema(f["type"])} for f in kept["fields"]
        ]
    return {name: plain_schema(value) if name in ("type", "items", "values") else value for name, value in kept.items()}


def converter(type_: pa.DataType) -> Callable[[Any], Any]:
    """A function that converts values that fastavro reads with `plain_schema` to values that Arrow takes for the
    type."""
    if pat.is_decimal(type_):
        scale = type_.scale
        return lambda raw: decimal_of(int.from_bytes(raw, "big", signed=True), scale)
    inner = [_optional(converter(f.type)) for f in child_fields(type_)]
    if pat.is_struct(type_):
        named = dict(zip([f.name for f in child_fields(type_)], inner, strict=True))
        return lambda record: {name: convert(record[name]) for name, convert in named.items()}
    if pat.is_map(type_):
        key, value = inner
        return lambda entries: [(key(k), value(v)) for k, v in _entries(entries)]
    if is_list(type_):
        return lambda items: [inner[0](item) for item in items]
    return lambda raw: raw


def _optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _entries(stored: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401 - a map or an array of records
    if isinstance(stored, dict):
        return list(stored.items())
    return [tuple(entry.values()) for entry in stored]
