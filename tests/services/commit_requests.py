"""What a REST catalog's server does with a commit request: updates and requirements from their JSON."""

from __future__ import annotations

from collections.abc import Callable

from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.codec.metadata_json.partitioning import (
    partition_spec_from_json,
    sort_order_from_json,
)
from icebench.engine.codec.metadata_json.schema import schema_from_json
from icebench.engine.codec.metadata_json.snapshots import (
    partition_statistics_from_json,
    ref_from_json,
    snapshot_from_json,
    statistics_from_json,
)
from icebench.engine.spec.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
)
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
from icebench.errors import Unsupported


def update_from_json(node: JsonObject) -> TableUpdate:
    """The update that a JSON object describes.

    Raises:
        CorruptTable: A member is missing or malformed.
        Unsupported: An action that this engine does not know.
    """
    # As Iceberg Java, which writes lower case and reads any.
    action = node.text("action").lower()
    decode = _UPDATES.get(action)
    if decode is None:
        raise Unsupported(f"the metadata update {action!r}")
    return decode(node)


def _add_schema(node: JsonObject) -> AddSchema:
    schema = schema_from_json(node.value("schema"), path=node.path_of("schema"), location=node.location)
    return AddSchema(schema, node.int32_or_none("last-column-id"))


def _set_properties(node: JsonObject) -> SetProperties:
    # Java wrote "updated" and "removed" before the specification was settled, and reads both for good.
    return SetProperties(node.text_map("updates" if node.has("updates") else "updated"))


def _remove_properties(node: JsonObject) -> RemoveProperties:
    return RemoveProperties(frozenset(node.texts("removals" if node.has("removals") else "removed")))


_UPDATES: dict[str, Callable[[JsonObject], TableUpdate]] = {
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


def requirement_from_json(node: JsonObject) -> TableRequirement:
    """The requirement that a JSON object describes.

    Raises:
        CorruptTable: A member is missing or malformed.
        Unsupported: A type that this engine does not know.
    """
    kind = node.text("type").lower()
    decode = _REQUIREMENTS.get(kind)
    if decode is None:
        raise Unsupported(f"the commit requirement {kind!r}")
    return decode(node)


_REQUIREMENTS: dict[str, Callable[[JsonObject], TableRequirement]] = {
    "assert-create": lambda _: AssertCreate(),
    "assert-table-uuid": lambda n: AssertTableUuid(n.text("uuid")),
    "assert-ref-snapshot-id": lambda n: AssertRefSnapshotId(n.text("ref"), n.int64_or_none("snapshot-id")),
    "assert-last-assigned-field-id": lambda n: AssertLastAssignedFieldId(n.int32("last-assigned-field-id")),
    "assert-current-schema-id": lambda n: AssertCurrentSchemaId(n.int32("current-schema-id")),
    "assert-last-assigned-partition-id": lambda n: AssertLastAssignedPartitionId(n.int32("last-assigned-partition-id")),
    "assert-default-spec-id": lambda n: AssertDefaultSpecId(n.int32("default-spec-id")),
    "assert-default-sort-order-id": lambda n: AssertDefaultSortOrderId(n.int32("default-sort-order-id")),
}
