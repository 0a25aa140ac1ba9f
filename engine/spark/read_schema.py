"""The names under which Spark reads columns.

Spark finds columns by field id, but pushes filters into Parquet by name. Where a file may have another column of that
name (a column was renamed or dropped, and its name given to a new one), a pushed filter drops row groups that hold
matching rows; observed on Spark 4.1. So a column is read under its own name only if no file can have another column of
that name, inside structs too; otherwise under a name that no file has, without Spark's pruning by row group.

A query of some fields of a nested column makes Spark forget ids of it, of fields in it, and of other nested columns:
they are null in files that have them under other names; observed on Spark 4.1, too. So `are_found_by_name` is required.

DataFusion Comet takes the setting that columns are found by id from the session that runs a query, where it is off
unless the user turned it on, and not from that of the relation: renamed columns came as nulls, observed with Comet 1.2.
So in a session with Comet it is required of all columns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from icebench.engine.spark.file_chunks import PREFIX, ROW
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import FIRST_METADATA_COLUMN_ID, Schema
from icebench.engine.spec.types import NestedField, PrimitiveType

_RESERVED = frozenset({"_metadata", ROW})
"""Names that mean something else to Spark's file sources."""


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A top-level column of the table, pruned to the nested fields that are needed, and the name that Spark reads it
    under."""

    field: NestedField
    name: str


def read_columns(fields: Sequence[NestedField], metadata: TableMetadata) -> list[ReadColumn]:
    """The names under which to read top-level fields, which may include metadata columns that files store."""
    unsafe = _unsafe_ids(metadata)
    return [
        ReadColumn(
            f, f"{PREFIX}{f.field_id}" if f.field_id in unsafe or f.field_id >= FIRST_METADATA_COLUMN_ID else f.name
        )
        for f in fields
    ]


def are_found_by_name(columns: Sequence[ReadColumn], metadata: TableMetadata, *, all_columns: bool) -> bool:
    """Whether all files have the columns, and the fields in them, under the names that they are read under; of nested
    columns alone unless `all_columns`."""
    read = [
        replace(c.field, name=c.name) for c in columns if all_columns or not isinstance(c.field.type, PrimitiveType)
    ]
    names = {f.field_id: f.name for f in Schema(tuple(read)).walk()}
    return all(f.name == names.get(f.field_id, f.name) for schema in metadata.schemas for f in schema.walk())


def _unsafe_ids(metadata: TableMetadata) -> Collection[int]:
    """Ids of top-level fields that have a name, or a nested field of a name, under which a file may have another
    column."""
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
        if len(ids_of_name[name.lower()]) > 1 or name.lower() in _RESERVED or name.lower().startswith(PREFIX)
    }
    return frozenset(unsafe)


def _is_complete(metadata: TableMetadata) -> bool:
    """Whether the metadata has every schema that files may have been written with: none was removed."""
    schema_ids = {s.schema_id for s in metadata.schemas}
    column_ids = {field_id for s in metadata.schemas for field_id in s.by_id}
    return schema_ids == set(range(max(schema_ids) + 1)) and column_ids >= set(range(1, metadata.last_column_id + 1))


def _top(schema: Schema, field_id: int) -> int:
    while field_id in schema.parent_of:
        field_id = schema.parent_of[field_id]
    return field_id
