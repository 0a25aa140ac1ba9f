"""JSON form of metadata updates (REST catalog specification, `TableUpdate` and what `ViewUpdate` shares with it)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icebench.engine.codec.metadata_json.partitioning import (
    partition_spec_to_json,
    sort_order_to_json,
)
from icebench.engine.codec.metadata_json.schema import schema_to_json
from icebench.engine.codec.metadata_json.snapshots import (
    partition_statistics_to_json,
    ref_to_json,
    snapshot_to_json,
    statistics_to_json,
)
from icebench.engine.errors import Unsupported
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
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
)


def update_to_json(update: TableUpdate) -> dict[str, Any]:
    """The JSON-ready form of an update; sets are written in order, so that equal updates give equal bytes.

    Raises:
        Unsupported: An update that the REST specification has no name for.
    """
    encode = _ENCODERS.get(type(update))
    if encode is None:
        raise Unsupported(f"the update {type(update).__name__} in a REST catalog")
    action, members = encode(update)
    return {"action": action, **members}


def _snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    # The update does not say the table's format version; only v1 snapshots have no sequence number.
    return snapshot_to_json(snapshot, format_version=2 if snapshot.sequence_number else 1)


def _add_schema_to_json(update: AddSchema) -> tuple[str, dict[str, Any]]:
    members: dict[str, Any] = {"schema": schema_to_json(update.schema)}
    if update.last_column_id is not None:
        members["last-column-id"] = update.last_column_id
    return "add-schema", members


def _set_statistics_to_json(update: SetStatistics) -> tuple[str, dict[str, Any]]:
    # The snapshot id is redundant and deprecated, and servers before 1.8 require it.
    file = statistics_to_json(update.statistics)
    return "set-statistics", {"snapshot-id": update.statistics.snapshot_id, "statistics": file}


_ENCODERS: dict[type[TableUpdate], Callable[[Any], tuple[str, dict[str, Any]]]] = {
    AssignUuid: lambda u: ("assign-uuid", {"uuid": u.uuid}),
    UpgradeFormatVersion: lambda u: ("upgrade-format-version", {"format-version": u.format_version}),
    AddSchema: _add_schema_to_json,
    SetCurrentSchema: lambda u: ("set-current-schema", {"schema-id": u.schema_id}),
    AddPartitionSpec: lambda u: ("add-spec", {"spec": partition_spec_to_json(u.spec)}),
    SetDefaultSpec: lambda u: ("set-default-spec", {"spec-id": u.spec_id}),
    AddSortOrder: lambda u: ("add-sort-order", {"sort-order": sort_order_to_json(u.sort_order)}),
    SetDefaultSortOrder: lambda u: ("set-default-sort-order", {"sort-order-id": u.order_id}),
    AddSnapshot: lambda u: ("add-snapshot", {"snapshot": _snapshot_to_json(u.snapshot)}),
    RemoveSnapshots: lambda u: ("remove-snapshots", {"snapshot-ids": sorted(u.snapshot_ids)}),
    SetSnapshotRef: lambda u: ("set-snapshot-ref", {"ref-name": u.name, **ref_to_json(u.ref)}),
    RemoveSnapshotRef: lambda u: ("remove-snapshot-ref", {"ref-name": u.name}),
    SetLocation: lambda u: ("set-location", {"location": u.location}),
    SetProperties: lambda u: ("set-properties", {"updates": dict(u.updates)}),
    RemoveProperties: lambda u: ("remove-properties", {"removals": sorted(u.removals)}),
    SetStatistics: _set_statistics_to_json,
    RemoveStatistics: lambda u: ("remove-statistics", {"snapshot-id": u.snapshot_id}),
    SetPartitionStatistics: lambda u: (
        "set-partition-statistics",
        {"partition-statistics": partition_statistics_to_json(u.statistics)},
    ),
    RemovePartitionStatistics: lambda u: ("remove-partition-statistics", {"snapshot-id": u.snapshot_id}),
    RemovePartitionSpecs: lambda u: ("remove-partition-specs", {"spec-ids": sorted(u.spec_ids)}),
    RemoveSchemas: lambda u: ("remove-schemas", {"schema-ids": sorted(u.schema_ids)}),
}
