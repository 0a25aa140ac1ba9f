"""Field ids for files that carry none (spec: "Name Mapping Serialization", "Column Projection")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as pat

from engine.columnar.schemas import FIELD_ID_KEY, child_fields, field_id_of, is_list
from engine.errors import Invalid, Unsupported

PROPERTY = "schema.name-mapping.default"
"""The table property that holds the mapping as JSON."""


@dataclass(frozen=True)
class MappedField:
    """What one name stands for: a field id (None: the name is ignored) and the names inside it."""

    field_id: int | None
    fields: Mapping[str, MappedField] = field(default_factory=dict)


NameMapping = Mapping[str, MappedField]
"""Name -> field, one level; nested levels are in `MappedField.fields`."""


def parse_name_mapping(text: str) -> NameMapping:
    """Parse the JSON of the property; raises Invalid naming the place that is wrong."""
    try:
        entries = json.loads(text)
    except json.JSONDecodeError as error:
        raise Invalid(f"{PROPERTY} is not JSON: {error}") from error
    return _level(entries, PROPERTY)


def _level(entries: object, path: str) -> NameMapping:
    if not isinstance(entries, list):
        raise Invalid(f"{path} must be a list of mapped fields")
    found: dict[str, MappedField] = {}
    for index, entry in enumerate(entries):
        here = f"{path}[{index}]"
        match entry:
            case {"names": list(names)}:
                field_id = entry.get("field-id")
                if field_id is not None and type(field_id) is not int:
                    raise Invalid(f"{here}.field-id must be an integer")
                mapped = MappedField(field_id, _level(entry.get("fields") or [], f"{here}.fields"))
            case _:
                raise Invalid(f"{here} must have a list of names")
        for name in names:
            if name in found:
                raise Invalid(f"{here}: the name {name!r} is mapped twice")
            found[name] = mapped
    return found


def has_field_ids(schema: pa.Schema) -> bool:
    """Whether any field, at any depth, carries an id."""
    return any(_carries_id(f) for f in schema)


def _carries_id(field_: pa.Field) -> bool:
    return field_id_of(field_) is not None or any(_carries_id(child) for child in child_fields(field_.type))


def identified(schema: pa.Schema, mapping: NameMapping | None, location: str) -> pa.Schema:
    """The schema of a file with field ids: its own, or else those that the table's name mapping gives.

    Raises:
        Unsupported: The file has no ids and the table no mapping.
    """
    if has_field_ids(schema):
        return schema
    if mapping is None:
        raise Unsupported(f"{location} has no field ids and the table has no property {PROPERTY}")
    return pa.schema(_with_ids(tuple(schema), mapping))


def _with_ids(fields: Sequence[pa.Field], mapping: NameMapping) -> list[pa.Field]:
    made = []
    for f in fields:
        mapped = mapping.get(f.name)
        inner = mapped.fields if mapped is not None else {}
        plain = f.with_type(_type_with_ids(f.type, inner)).remove_metadata()
        known = mapped is not None and mapped.field_id is not None
        made.append(plain.with_metadata({FIELD_ID_KEY: str(mapped.field_id)}) if mapped and known else plain)
    return made


def _type_with_ids(type_: pa.DataType, mapping: NameMapping) -> pa.DataType:
    if pat.is_struct(type_):
        return pa.struct(_with_ids(child_fields(type_), mapping))
    if pat.is_map(type_):
        key, value = type_.key_field.with_name("key"), type_.item_field.with_name("value")
        return pa.map_(*_with_ids((key, value), mapping))
    if is_list(type_):
        (element,) = _with_ids((type_.value_field.with_name("element"),), mapping)
        return pa.list_(element)
    return type_
