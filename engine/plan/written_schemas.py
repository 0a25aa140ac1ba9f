"""Finds columns that a file lacks because they were added to the table later (spec: "Column Projection").

An entry has the id of the snapshot that added its file, and a snapshot has the id of its schema. A column of a later
schema is missing in the file, and reads as its initial default or null. Without this, a filter on a new column would
read every old file, as none has metrics of the column.

A snapshot's schema id is for information, so it alone decides nothing: the manifest must have been written when the
table had no such column, either. Ids of columns are given in order, so the highest in the manifest's header is lower
then. The manifest list does not say that, so manifests are read. Entries that were rewritten after the column was added
are not skipped.

Nothing is known if the snapshot was expired or has no schema id, or one of no schema; if the table has a name mapping
(files may have had the column before the table did); or if the file has metrics of the column after all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from icebench.engine.codec.array_views import BoolArray, Int64Array, ManifestColumns, valid_of
from icebench.engine.expressions.bounds import ColumnBounds, Evidence, Presence
from icebench.engine.expressions.vectors import vector_of
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import NAME_MAPPING
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import PrimitiveType


class WrittenSchemas:
    """For some columns of a schema, the snapshots that are older than the column."""

    def __init__(self, metadata: TableMetadata, schema: Schema, field_ids: Collection[int]) -> None:
        self._schema = schema
        self._older: dict[int, Int64Array] = {}
        if NAME_MAPPING.of(metadata.properties) is not None:
            return
        known = {s.schema_id for s in metadata.schemas}
        written = [(s.snapshot_id, s.schema_id) for s in metadata.snapshots if s.schema_id in known]
        for field_id in field_ids:
            first = min((s.schema_id for s in metadata.schemas if field_id in s.by_id), default=0)
            older = [snapshot_id for snapshot_id, schema_id in written if schema_id < first]
            if older:
                self._older[field_id] = np.array(older, np.int64)

    @property
    def has_newer_columns(self) -> bool:
        """Whether any column is newer than any snapshot."""
        return bool(self._older)

    def evidence(self, field_id: int, snapshot_ids: Int64Array, columns: ManifestColumns) -> Sequence[Evidence]:
        """Evidence about a column in the files of a manifest, which these snapshots added."""
        older, highest = self._older.get(field_id), columns.highest_field_id
        if older is None or highest is None or field_id <= highest:
            return ()
        missing: BoolArray = np.isin(snapshot_ids, older) & ~has_metrics(columns, field_id)
        return (self._missing(field_id, missing),)

    def _missing(self, field_id: int, missing: BoolArray) -> Evidence:
        field = self._schema.by_id[field_id]
        default = field.initial_default
        if not isinstance(field.type, PrimitiveType):
            return ColumnBounds(len(missing))  # a struct may be there for the defaults of its fields
        if default is None:
            return ColumnBounds(len(missing), presence=Presence(null=True, nan=~missing, value=~missing))
        bound = vector_of(field.type, [default if each else None for each in missing.tolist()])
        # In a struct that is null, a field with a default is null all the same.
        null = True if field_id in self._schema.parent_of else ~missing
        is_nan = default != default  # noqa: PLR0124 - NaN
        return ColumnBounds(
            len(missing), bound, bound, Presence(null=null, nan=~missing | is_nan, value=~missing | (not is_nan))
        )


def columns_of_all_snapshots(metadata: TableMetadata) -> frozenset[int]:
    """Ids of columns that no snapshot is older than."""
    oldest = min((s.schema_id for s in metadata.snapshots if s.schema_id is not None), default=None)
    known = sorted(metadata.schemas, key=lambda s: s.schema_id)
    return frozenset(i for s in known if oldest is None or s.schema_id <= oldest for i in s.by_id)


def has_metrics(columns: ManifestColumns, field_id: int) -> BoolArray:
    """Whether each entry has any metrics of a column."""
    found = np.zeros(columns.count, np.bool_)
    for metric in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        column = columns.get(metric, field_id)
        if column is not None:
            valid = valid_of(column)
            found |= True if valid is None else valid
    return found
