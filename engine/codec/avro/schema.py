"""Iceberg types as Avro schemas with field ids (spec appendix A: "Avro")."""

from __future__ import annotations

from typing import Any, TypeAlias

from icebench.engine.errors import Unsupported
from icebench.engine.spec.types import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
)

AvroSchema: TypeAlias = Any
"""A parsed Avro schema: a type name, an object with ``type``, or a list of union branches."""

_SIMPLE: dict[str, AvroSchema] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "geometry": "bytes",
    "geography": "bytes",
    "unknown": "null",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
}


def decimal_width(precision: int) -> int:
    """The fewest bytes that hold every unscaled value of that many digits in two's complement."""
    return ((10**precision - 1).bit_length() // 8) + 1


def valid_avro_name(name: str) -> bool:
    """Whether Iceberg Java takes the name as it is: a letter or underscore, then letters, digits and underscores."""
    return bool(name) and (name[0].isalpha() or name[0] == "_") and all(c.isalnum() or c == "_" for c in name)


def avro_name(name: str) -> str:
    """The name with what Avro refuses replaced as Iceberg Java does: a leading digit by ``_`` and the digit, any other
    character by ``_x`` and its UTF-16 code in upper-case hexadecimal."""
    if valid_avro_name(name):
        return name
    made = []
    for index, character in enumerate(name):
        if character == "_" or character.isalpha() or (index > 0 and character.isalnum()):
            made.append(character)
        elif character.isdigit():
            made.append(f"_{character}")
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            made.extend(f"_x{int.from_bytes(units[i : i + 2], 'big'):X}" for i in range(0, len(units), 2))
    return "".join(made)


def record_schema(struct: StructType, name: str) -> AvroSchema:
    """The Avro record of a struct; nested structs are named ``r<field id>``, as Iceberg Java names them.

    Raises:
        Unsupported: A type that Avro manifests cannot hold, or two fields with one name in Avro.
    """
    return _Converter().record(struct, name)


class _Converter:
    """One conversion. Avro allows one definition of a name, so the second use of a fixed type is a reference."""

    def __init__(self) -> None:
        self._defined: set[str] = set()

    def record(self, struct: StructType, name: str) -> AvroSchema:
        fields = [self._field(f) for f in struct.fields]
        known: dict[str, str] = {}
        for f, made in zip(struct.fields, fields, strict=True):
            other = known.setdefault(made["name"], f.name)
            if other != f.name:
                raise Unsupported(f"{other!r} and {f.name!r}, which have one name in Avro")
        return {"type": "record", "name": name, "fields": fields}

    def _field(self, f: NestedField) -> AvroSchema:
        made: dict[str, Any] = {"name": avro_name(f.name), "type": self._child(f)}
        if f.doc is not None:
            made["doc"] = f.doc
        if not f.required:
            made["default"] = None
        if made["name"] != f.name:
            made["iceberg-field-name"] = f.name
        made["field-id"] = f.field_id
        return made

    def _child(self, f: NestedField) -> AvroSchema:
        converted = self._type(f.type, f.field_id)
        return converted if f.required or converted == "null" else ["null", converted]

    def _type(self, type_: Type, field_id: int) -> AvroSchema:
        match type_:
            case StructType():
                return self.record(type_, f"r{field_id}")
            case ListType(element):
                return {"type": "array", "items": self._child(element), "element-id": element.field_id}
            case MapType(key, value):
                fields = [
                    {"name": "key", "type": self._type(key.type, key.field_id), "field-id": key.field_id},
                    {"name": "value", "type": self._child(value), "field-id": value.field_id},
                ]
                items = {"type": "record", "name": f"k{key.field_id}_v{value.field_id}", "fields": fields}
                return {"type": "array", "items": items, "logicalType": "map"}
            case DecimalType(precision=precision, scale=scale):
                logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
                return self._fixed(f"decimal_{precision}_{scale}", decimal_width(precision), logical)
            case FixedType(length=length):
                return self._fixed(f"fixed_{length}", length, {})
            case PrimitiveType(name) if name == "uuid":
                return self._fixed("uuid_fixed", 16, {"logicalType": "uuid"})
            case PrimitiveType(name) if name in _SIMPLE:
                return _SIMPLE[name]
        raise Unsupported(f"{type_} in an Avro manifest")

    def _fixed(self, name: str, size: int, logical: dict[str, Any]) -> AvroSchema:
        if name in self._defined:
            return name
        self._defined.add(name)
        return {"type": "fixed", "name": name, "size": size, **logical}
