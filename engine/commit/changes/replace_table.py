"""Replacing a table: another schema, spec and sort order, and no rows; its history stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from icebench.engine.commit.changes.evolution import mapping_update
from icebench.engine.commit.staged_snapshot import Staged, requires_ref
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import ValidationFailed
from icebench.engine.spec.creation import check_definition, renumbered_order, renumbered_spec
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertTableUuid,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.schema_evolution import assign_replacement_ids
from icebench.engine.spec.snapshots import MAIN
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.transforms import Void
from icebench.engine.spec.updates import (
    RemoveSnapshotRef,
    SetLocation,
    SetProperties,
    TableUpdate,
    updates_to_format,
    updates_to_order,
    updates_to_schema,
    updates_to_spec,
)


@dataclass
class ReplaceTable:
    """Replaces a table's definition, as Iceberg Java does: main has no snapshot until rows are written. Snapshots,
    branches, tags, and properties that are not given stay; main's retention settings stay if rows are written in the
    same commit.

    It depends on nothing but names and ids of columns and partition fields: concurrent commits are replaced, too.

    Args:
        schema: Columns get ids by `assign_replacement_ids`.
        spec: Refers to the ids of `schema`. A field of a column and transform that the table has had before keeps its
            id; in format version 1 the fields of the former spec stay, void where they are not among the new.
        order: Refers to the ids of `schema`.
        location: Of new files; None keeps the table's.
        properties: To set.
        format_version: None keeps the table's.
    """

    schema: Schema
    spec: PartitionSpec
    order: SortOrder
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    format_version: int | None = None
    _written_for: tuple[object, ...] | None = field(default=None, init=False)

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `icebench.engine.commit.changes.change.Change`; raises Invalid for an earlier format version."""
        version = base.format_version if self.format_version is None else self.format_version
        check_definition(self.schema, self.spec, self.order, self.properties, version)
        schema, new_ids = assign_replacement_ids(self.schema, base.schema, base.highest_column_id)
        spec = replacement_spec(renumbered_spec(self.spec, new_ids), base)
        order = renumbered_order(self.order, new_ids)
        self._check_written_for(schema, spec, order)
        updates: list[TableUpdate] = [
            *updates_to_format(base, version, str(staging.commit_id)),
            *([RemoveSnapshotRef(MAIN)] if MAIN in base.refs else []),
            *updates_to_schema(base, schema, max(base.highest_column_id, schema.highest_field_id)),
            *updates_to_spec(base, spec),
            *updates_to_order(base, order),
            SetProperties(self.properties),
            *mapping_update(base, schema),
        ]
        if self.location is not None:
            updates.append(SetLocation(self.location))
        return Staged(
            requirements=(
                AssertTableUuid(base.table_uuid),
                requires_ref(base, MAIN),
                AssertLastAssignedFieldId(base.last_column_id),
                AssertCurrentSchemaId(base.current_schema_id),
                AssertLastAssignedPartitionId(base.last_partition_id),
                AssertDefaultSpecId(base.default_spec_id),
                AssertDefaultSortOrderId(base.default_sort_order_id),
            ),
            updates=tuple(updates),
        )

    def _check_written_for(self, schema: Schema, spec: PartitionSpec, order: SortOrder) -> None:
        """Refuse other ids than those of the first attempt: files were written for these."""
        ids = (schema.fields, spec.fields, order.fields)
        if self._written_for not in (None, ids):
            raise ValidationFailed(
                "another commit changed the schema or partition spec while this transaction replaced the table and "
                "wrote files; run the operation again"
            )
        self._written_for = ids


def replacement_spec(wanted: PartitionSpec, base: TableMetadata) -> PartitionSpec:
    """The partition spec with its field ids in a table that it is new to."""
    numbers = count(base.highest_partition_id + 1)
    if base.format_version > 1:
        known = _by_source(each for spec in base.partition_specs for each in spec.fields)
        return PartitionSpec(
            tuple(
                replace(f, field_id=known[_source(f)].field_id if _source(f) in known else next(numbers))
                for f in wanted.fields
            )
        )
    new = _by_source(wanted.fields)
    names = {f.name for f in wanted.fields}
    made = []
    for former in base.spec.fields:
        kept = new.pop(_source(former), None)
        name = f"{former.name}_{former.field_id}" if former.name in names else former.name
        void = replace(former, name=name, transform=Void())
        made.append(void if kept is None else replace(kept, field_id=former.field_id))
    return PartitionSpec((*made, *(replace(f, field_id=next(numbers)) for f in new.values())))


def _source(f: PartitionField) -> tuple[tuple[int, ...], str]:
    return f.source_ids, str(f.transform)


def _by_source(fields: Iterable[PartitionField]) -> dict[tuple[tuple[int, ...], str], PartitionField]:
    """Fields by what they are of; of several, the one with the highest id."""
    return {_source(f): f for f in sorted(fields, key=lambda f: f.field_id)}
