"""Field ids for files that carry none (spec: "Column Projection", rule 2)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pat

from engine.columnar.schemas import FIELD_ID_KEY, child_fields, field_id_of, is_list
from engine.errors import Unsupported
from engine.spec.name_mapping import NameMapping
from engine.spec.properties import NAME_MAPPING


def has_field_ids(schema: pa.Schema) -> bool:
    """Whether any field, at any depth, carries an id."""
    return any(_carries_id(f) for f in schema)


def _carries_id(field_: pa.Field) -> bool:
    return field_id_of(field_) is not None or any(_carries_id(child) for child in child_fields(field_.type))


def assign_field_ids(schema: pa.Schema, mapping: NameMapping | None, location: str) -> pa.Schema:
    """The schema of a file with field ids: its own, else those of the table's name mapping.

    Raises:
        Unsupported: The file has no ids and the table no mapping.
    """
    if has_field_ids(schema):
        return schema
    if mapping is None:
        raise Unsupported(f"{location} has no field ids and the table has no property {NAME_MAPPING.name}")
    return pa.schema(_with_ids(tuple(schema), mapping, ()))


def _with_ids(fields: Sequence[pa.Field], mapping: NameMapping, above: tuple[str, ...]) -> list[pa.Field]:
    made = []
    for f in fields:
        path = (*above, f.name)
        field_id = mapping.id_of(*path)
        plain = f.with_type(_type_with_ids(f.type, mapping, path)).remove_metadata()
        made.append(plain if field_id is None else plain.with_metadata({FIELD_ID_KEY: str(field_id)}))
    return made


def _type_with_ids(type_: pa.DataType, mapping: NameMapping, path: tuple[str, ...]) -> pa.DataType:
    if pat.is_struct(type_):
        return pa.struct(_with_ids(child_fields(type_), mapping, path))
    if pat.is_map(type_):
        key, value = type_.key_field.with_name("key"), type_.item_field.with_name("value")
        return pa.map_(*_with_ids((key, value), mapping, path))
    if is_list(type_):
        (element,) = _with_ids((type_.value_field.with_name("element"),), mapping, path)
        return pa.list_(element)
    return type_
