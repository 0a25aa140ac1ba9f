"""Under which names Spark reads columns.

Spark finds columns by field id but pushes filters into Parquet by name. Where a file may know a name as another column
(a column was renamed or dropped and its name was given anew) such a filter drops row groups that hold matching rows: on
Spark 4.1 it was seen to. A column is therefore read under its own name only if no file can know the name as another
column; otherwise under one that no file has, and Spark's pruning by row group is lost for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from engine.spec.metadata import TableMetadata
from engine.spec.schema import Schema
from engine.spec.types import NestedField

_RESERVED = frozenset({"_metadata"})
"""Names that mean something else to Spark's file sources."""


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A top-level column of the table, pruned to what is wanted of it, and the name that Spark reads it under."""

    field: NestedField
    name: str


def read_columns(fields: Sequence[NestedField], metadata: TableMetadata) -> list[ReadColumn]:
    """The names under which to read top-level fields."""
    unsafe = _unsafe_ids(metadata)
    return [ReadColumn(f, _other_name(f) if f.field_id in unsafe else f.name) for f in fields]


def _other_name(field: NestedField) -> str:
    return f"_icebench_{field.field_id}"


def _unsafe_ids(metadata: TableMetadata) -> Collection[int]:
    """Ids of top-level fields whose name, or the name of a field inside, files may know as another column."""
    if not _is_complete(metadata):
        return frozenset(f.field_id for schema in metadata.schemas for f in schema.fields)
    ids_of_name: dict[str, set[int]] = {}
    for schema in metadata.schemas:
        for field_id, name in schema.name_of.items():
            ids_of_name.setdefault(name.lower(), set()).add(field_id)
    unsafe = {
        _top(schema, field_id)
        for schema in metadata.schemas
        for field_id, name in schema.name_of.items()
        if len(ids_of_name[name.lower()]) > 1 or name.lower() in _RESERVED
    }
    return frozenset(unsafe)


def _is_complete(metadata: TableMetadata) -> bool:
    """Whether the metadata shows every schema that files may have been written with: none was removed."""
    schema_ids = {s.schema_id for s in metadata.schemas}
    column_ids = {field_id for s in metadata.schemas for field_id in s.by_id}
    return schema_ids == set(range(max(schema_ids) + 1)) and column_ids >= set(range(1, metadata.last_column_id + 1))


def _top(schema: Schema, field_id: int) -> int:
    while field_id in schema.parent_of:
        field_id = schema.parent_of[field_id]
    return field_id
