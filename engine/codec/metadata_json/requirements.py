"""JSON form of commit requirements (REST catalog specification, `TableRequirement`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icebench.engine.errors import Unsupported
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


def requirement_to_json(requirement: TableRequirement) -> dict[str, Any]:
    """The JSON-ready form of a requirement.

    Raises:
        Unsupported: A requirement that the REST specification has no name for.
    """
    encode = _ENCODERS.get(type(requirement))
    if encode is None:
        raise Unsupported(f"the requirement {type(requirement).__name__} in a REST catalog")
    kind, members = encode(requirement)
    return {"type": kind, **members}


_ENCODERS: dict[type[TableRequirement], Callable[[Any], tuple[str, dict[str, Any]]]] = {
    AssertCreate: lambda _: ("assert-create", {}),
    AssertTableUuid: lambda r: ("assert-table-uuid", {"uuid": r.uuid}),
    # The snapshot id is a required member, null for a reference that must not exist.
    AssertRefSnapshotId: lambda r: ("assert-ref-snapshot-id", {"ref": r.ref, "snapshot-id": r.snapshot_id}),
    AssertLastAssignedFieldId: lambda r: (
        "assert-last-assigned-field-id",
        {"last-assigned-field-id": r.last_assigned_field_id},
    ),
    AssertCurrentSchemaId: lambda r: ("assert-current-schema-id", {"current-schema-id": r.current_schema_id}),
    AssertLastAssignedPartitionId: lambda r: (
        "assert-last-assigned-partition-id",
        {"last-assigned-partition-id": r.last_assigned_partition_id},
    ),
    AssertDefaultSpecId: lambda r: ("assert-default-spec-id", {"default-spec-id": r.default_spec_id}),
    AssertDefaultSortOrderId: lambda r: (
        "assert-default-sort-order-id",
        {"default-sort-order-id": r.default_sort_order_id},
    ),
}
