"""The first metadata of a table (spec: "Table Metadata")."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping
from dataclasses import replace

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.spec.checked_properties import check_table_properties
from icebench.engine.spec.metadata import DEFAULT_FORMAT_VERSION, LATEST_FORMAT_VERSION, TableMetadata
from icebench.engine.spec.metadata_columns import check_column_names
from icebench.engine.spec.partitioning import FIRST_PARTITION_FIELD_ID, UNPARTITIONED, PartitionSpec
from icebench.engine.spec.properties import RESERVED
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.schema_evolution import assign_fresh_ids
from icebench.engine.spec.sorting import UNSORTED, SortOrder
from icebench.engine.spec.transforms import UnknownTransform
from icebench.engine.spec.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableUpdate,
    UpgradeFormatVersion,
    check_types,
)


def new_table_metadata(
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    *,
    location: str,
    properties: Mapping[str, str] | None = None,
    format_version: int = DEFAULT_FORMAT_VERSION,
    uuid: uuids.UUID,
    now_ms: int,
) -> TableMetadata:
    """Metadata of a new, empty table.

    Every id is given afresh, as Iceberg Java does: columns from 1, partition fields from 1000, schema 0, spec 0, sort
    order 1 (0 when unsorted). `spec` and `sort_order` refer to the columns by the ids that `schema` has.

    Raises:
        Invalid: A source column is missing or of the wrong type, a type needs a later format version, a partition name
            is also a column's, a column or property has a reserved name, or a property no value of its kind.
        Unsupported: The format version, or an unknown transform.
    """
    check_definition(schema, spec, sort_order, properties or {}, format_version)
    fresh, new_ids = assign_fresh_ids(schema)
    fresh = replace(fresh, schema_id=0)
    fresh_spec = _fresh_spec(spec, new_ids)
    fresh_order = renumbered_order(sort_order, new_ids)
    return TableMetadata(
        format_version=format_version,
        table_uuid=str(uuid),
        location=location.rstrip("/"),
        last_updated_ms=now_ms,
        last_column_id=fresh.highest_field_id,
        schemas=(fresh,),
        current_schema_id=0,
        partition_specs=(fresh_spec,),
        default_spec_id=0,
        last_partition_id=FIRST_PARTITION_FIELD_ID - 1 + len(fresh_spec.fields),
        properties=dict(properties or {}),
        sort_orders=(fresh_order,),
        default_sort_order_id=fresh_order.order_id,
        next_row_id=0 if format_version >= 3 else None,
    )


def check_definition(
    schema: Schema, spec: PartitionSpec, order: SortOrder, properties: Mapping[str, str], format_version: int
) -> None:
    """Check what the user says of a new table; raises as `new_table_metadata`."""
    if not 1 <= format_version <= LATEST_FORMAT_VERSION:
        raise Unsupported(f"format version {format_version}; supported are 1 to {LATEST_FORMAT_VERSION}")
    reserved = sorted(RESERVED & properties.keys())
    if reserved:
        raise Invalid(f"{reserved[0]!r} is a reserved name and cannot be set as a table property")
    check_table_properties(properties)
    check_types(schema, format_version)
    check_column_names(f.name for f in schema.fields)
    _check_transforms(spec, order)
    spec.check(schema, voids=True)
    order.check(schema)
    spec.check_names(schema)


def creation_updates(metadata: TableMetadata) -> tuple[TableUpdate, ...]:
    """The updates that make this table out of nothing."""
    return (
        AssignUuid(metadata.table_uuid),
        UpgradeFormatVersion(metadata.format_version),
        *(AddSchema(schema, metadata.last_column_id) for schema in metadata.schemas),
        SetCurrentSchema(metadata.current_schema_id),
        *map(AddPartitionSpec, metadata.partition_specs),
        SetDefaultSpec(metadata.default_spec_id),
        *map(AddSortOrder, metadata.sort_orders),
        SetDefaultSortOrder(metadata.default_sort_order_id),
        SetLocation(metadata.location),
        SetProperties(metadata.properties),
        *map(AddSnapshot, metadata.snapshots),
        *(SetSnapshotRef(name, ref) for name, ref in metadata.refs.items()),
        *map(SetStatistics, metadata.statistics),
        *map(SetPartitionStatistics, metadata.partition_statistics),
    )


def renumbered_spec(spec: PartitionSpec, new_ids: Mapping[int, int]) -> PartitionSpec:
    """A spec with the new ids of its source columns."""
    return replace(
        spec, fields=tuple(replace(f, source_ids=tuple(new_ids[i] for i in f.source_ids)) for f in spec.fields)
    )


def renumbered_order(order: SortOrder, new_ids: Mapping[int, int]) -> SortOrder:
    """A table's first sort order, with the new ids of its source columns."""
    if order.is_unsorted:
        return UNSORTED
    fields = tuple(replace(f, source_ids=tuple(new_ids[i] for i in f.source_ids)) for f in order.fields)
    return SortOrder(fields, 1)


def _fresh_spec(spec: PartitionSpec, new_ids: Mapping[int, int]) -> PartitionSpec:
    fields = renumbered_spec(spec, new_ids).fields
    return PartitionSpec(tuple(replace(f, field_id=FIRST_PARTITION_FIELD_ID + i) for i, f in enumerate(fields)), 0)


def _check_transforms(spec: PartitionSpec, order: SortOrder) -> None:
    used = [(f.transform, f.source_ids) for f in spec.fields] + [(f.transform, f.source_ids) for f in order.fields]
    for transform, source_ids in used:
        if isinstance(transform, UnknownTransform):
            raise Unsupported(f"writing with the transform {transform}")
        if len(source_ids) > 1:
            raise Unsupported(f"writing with the transform {transform} of several columns")
