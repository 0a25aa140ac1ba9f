from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from icebench.engine.spec.creation import new_table_metadata
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
    check_requirements,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import SnapshotRef
from icebench.engine.spec.types import LONG, NestedField
from icebench.errors import CommitConflict

SCHEMA = Schema((NestedField(field_id=1, name="id", type=LONG),))
EMPTY = new_table_metadata(SCHEMA, location="/t", uuid=uuid.UUID(int=7), now_ms=1)
TABLE = replace(EMPTY, refs={"main": SnapshotRef(snapshot_id=5, type="branch")})


@pytest.mark.parametrize(
    ("holds", "fails", "message"),
    [
        (AssertTableUuid(str(uuid.UUID(int=7))), AssertTableUuid("x"), "uuid"),
        (AssertRefSnapshotId("main", 5), AssertRefSnapshotId("main", 4), "branch 'main'"),
        (AssertRefSnapshotId("audit", None), AssertRefSnapshotId("main", None), "expected None, found 5"),
        (AssertLastAssignedFieldId(1), AssertLastAssignedFieldId(2), "column id"),
        (AssertCurrentSchemaId(0), AssertCurrentSchemaId(1), "current schema id"),
        (AssertLastAssignedPartitionId(999), AssertLastAssignedPartitionId(1000), "partition field id"),
        (AssertDefaultSpecId(0), AssertDefaultSpecId(1), "partition spec"),
        (AssertDefaultSortOrderId(0), AssertDefaultSortOrderId(1), "sort order"),
    ],
)
def test_requirements(holds: TableRequirement, fails: TableRequirement, message: str) -> None:
    check_requirements(TABLE, [holds])
    with pytest.raises(CommitConflict, match=message):
        check_requirements(TABLE, [holds, fails])
    with pytest.raises(CommitConflict, match="does not exist"):
        check_requirements(None, [holds])


def test_creation_needs_an_absent_table() -> None:
    check_requirements(None, [AssertCreate()])
    with pytest.raises(CommitConflict, match="created by another"):
        check_requirements(TABLE, [AssertCreate()])
