"""JSON form of metadata updates (REST catalog specification, `TableUpdate` and what `ViewUpdate` shares with it)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.codec.metadata_json.objects import JsonObject
from engine.codec.metadata_json.partitioning import (
    partition_spec_from_json,
    partition_spec_to_json,
    sort_order_from_json,
    sort_order_to_json,
)
from engine.codec.metadata_json.schema import schema_from_json, schema_to_json
from engine.codec.metadata_json.snapshots import (
    partition_statistics_from_json,
    partition_statistics_to_json,
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_to_json,
    statistics_from_json,
    statistics_to_json,
)
from engine.errors import Unsupported
from engine.spec.snapshots import Snapshot
from engine.spec.updates import (
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


def update_from_json(node: JsonObject) -> TableUpdate:
    """The update that a JSON object describes.

    Raises:
        CorruptTable: A member is missing or malformed.
        Unsupported: An action that this engine does not know.
    """
    # As Iceberg Java, which writes lower case and reads any.
    action = node.text("action").lower()
    decode = _DECODERS.get(action)
    if decode is None:
        raise Unsupported(f"the metadata update {action!r}")
    return decode(node)


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


def _add_schema(node: JsonObject) -> AddSchema:
    schema = schema_from_json(node.value("schema"), path=node.path_of("schema"), location=node.location)
    return AddSchema(schema, node.int32_or_none("last-column-id"))


def _set_properties(node: JsonObject) -> SetProperties:
    # Java wrote "updated" and "removed" before the specification was settled, and reads both for good.
    return SetProperties(node.text_map("updates" if node.has("updates") else "updated"))


def _remove_properties(node: JsonObject) -> RemoveProperties:
    return RemoveProperties(frozenset(node.texts("removals" if node.has("removals") else "removed")))


_DECODERS: dict[str, Callable[[JsonObject], TableUpdate]] = {
    "assign-uuid": lambda n: AssignUuid(n.text("uuid")),
    "upgrade-format-version": lambda n: UpgradeFormatVersion(n.int32("format-version")),
    "add-schema": _add_schema,
    "set-current-schema": lambda n: SetCurrentSchema(n.int32("schema-id")),
    "add-spec": lambda n: AddPartitionSpec(partition_spec_from_json(n.child("spec"))),
    "set-default-spec": lambda n: SetDefaultSpec(n.int32("spec-id")),
    "add-sort-order": lambda n: AddSortOrder(sort_order_from_json(n.child("sort-order"))),
    "set-default-sort-order": lambda n: SetDefaultSortOrder(n.int32("sort-order-id")),
    "add-snapshot": lambda n: AddSnapshot(snapshot_from_json(n.child("snapshot"), format_version=1)),
    "remove-snapshots": lambda n: RemoveSnapshots(frozenset(n.int64s("snapshot-ids"))),
    "set-snapshot-ref": lambda n: SetSnapshotRef(n.text("ref-name"), ref_from_json(n)),
    "remove-snapshot-ref": lambda n: RemoveSnapshotRef(n.text("ref-name")),
    "set-location": lambda n: SetLocation(n.text("location")),
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "set-statistics": lambda n: SetStatistics(statistics_from_json(n.child("statistics"))),
    "remove-statistics": lambda n: RemoveStatistics(n.int64("snapshot-id")),
    "set-partition-statistics": lambda n: SetPartitionStatistics(
        partition_statistics_from_json(n.child("partition-statistics"))
    ),
    "remove-partition-statistics": lambda n: RemovePartitionStatistics(n.int64("snapshot-id")),
    "remove-partition-specs": lambda n: RemovePartitionSpecs(frozenset(n.int32s("spec-ids"))),
    "remove-schemas": lambda n: RemoveSchemas(frozenset(n.int32s("schema-ids"))),
}
