"""Commit requirements as the REST specification writes them."""

from __future__ import annotations

from typing import Any

import pytest

from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.codec.metadata_json.requirements import requirement_to_json
from icebench.engine.spec import requirements
from icebench.engine.spec.requirements import TableRequirement
from icebench.errors import CorruptTable, Unsupported
from tests.services.commit_requests import requirement_from_json

CASES: list[tuple[TableRequirement, dict[str, Any]]] = [
    (requirements.AssertCreate(), {"type": "assert-create"}),
    (requirements.AssertTableUuid("u-1"), {"type": "assert-table-uuid", "uuid": "u-1"}),
    (
        requirements.AssertRefSnapshotId("main", 2**62),
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2**62},
    ),
    (
        requirements.AssertRefSnapshotId("new", None),
        {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": None},
    ),
    (
        requirements.AssertLastAssignedFieldId(4),
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 4},
    ),
    (requirements.AssertCurrentSchemaId(1), {"type": "assert-current-schema-id", "current-schema-id": 1}),
    (
        requirements.AssertLastAssignedPartitionId(1000),
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    ),
    (requirements.AssertDefaultSpecId(0), {"type": "assert-default-spec-id", "default-spec-id": 0}),
    (
        requirements.AssertDefaultSortOrderId(0),
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ),
]


@pytest.mark.parametrize(("requirement", "document"), CASES, ids=[case[1]["type"] for case in CASES])
def test_a_requirement_is_written_and_read(requirement: TableRequirement, document: dict[str, Any]) -> None:
    assert requirement_to_json(requirement) == document
    assert requirement_from_json(JsonObject(document)) == requirement


def test_every_requirement_of_the_engine_has_a_case() -> None:
    known = {
        kind for kind in vars(requirements).values() if isinstance(kind, type) and TableRequirement in kind.__bases__
    }
    assert {type(requirement) for requirement, _ in CASES} == known


def test_what_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="assert-weather"):
        requirement_from_json(JsonObject({"type": "assert-weather"}))
    with pytest.raises(Unsupported, match="TableRequirement"):
        requirement_to_json(TableRequirement())
    with pytest.raises(CorruptTable, match="current-schema-id"):
        requirement_from_json(JsonObject({"type": "assert-current-schema-id"}))
