"""Metadata updates as the REST specification writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.codec.metadata_json.updates import update_to_json
from icebench.engine.spec import updates
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot, SnapshotRef
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from icebench.engine.spec.transforms import parse_transform
from icebench.engine.spec.types import LONG, NestedField
from icebench.engine.spec.updates import TableUpdate
from icebench.errors import CorruptTable, Unsupported
from tests.services.commit_requests import update_from_json

LARGE = 2**62 + 1
SCHEMA = Schema((NestedField(field_id=1, name="id", type=LONG, required=True),), 3, frozenset({1}))
SCHEMA_JSON = {
    "type": "struct",
    "schema-id": 3,
    "identifier-field-ids": [1],
    "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
}
SNAPSHOT = Snapshot(
    snapshot_id=LARGE,
    parent_snapshot_id=7,
    sequence_number=9,
    timestamp_ms=1_700_000_000_000,
    manifest_list="s3://b/t/metadata/snap.avro",
    operation="append",
    summary={"added-records": "5"},
    schema_id=3,
)
SNAPSHOT_JSON = {
    "sequence-number": 9,
    "snapshot-id": LARGE,
    "parent-snapshot-id": 7,
    "timestamp-ms": 1_700_000_000_000,
    "summary": {"operation": "append", "added-records": "5"},
    "manifest-list": "s3://b/t/metadata/snap.avro",
    "schema-id": 3,
}
SPEC = PartitionSpec(
    (PartitionField(source_ids=(1,), field_id=1000, name="id_bucket", transform=parse_transform("bucket[16]")),), 2
)
ORDER = SortOrder(
    (SortField(source_ids=(1,), transform=parse_transform("identity"), direction="desc", null_order="nulls-last"),), 1
)
STATISTICS = StatisticsFile(
    snapshot_id=LARGE,
    statistics_path="s3://b/t/metadata/stats.puffin",
    file_size_in_bytes=100,
    file_footer_size_in_bytes=20,
    blob_metadata=(
        BlobMetadata(type="apache-datasketches-theta-v1", snapshot_id=LARGE, sequence_number=9, fields=(1,)),
    ),
)
PARTITION_STATISTICS = PartitionStatisticsFile(
    snapshot_id=LARGE, statistics_path="s3://b/t/metadata/p.parquet", file_size_in_bytes=42
)
BRANCH = SnapshotRef(
    snapshot_id=LARGE, type="branch", min_snapshots_to_keep=3, max_snapshot_age_ms=2**40, max_ref_age_ms=2**41
)

CASES: list[tuple[TableUpdate, dict[str, Any]]] = [
    (updates.AssignUuid("9510c070"), {"action": "assign-uuid", "uuid": "9510c070"}),
    (updates.UpgradeFormatVersion(3), {"action": "upgrade-format-version", "format-version": 3}),
    (updates.AddSchema(SCHEMA), {"action": "add-schema", "schema": SCHEMA_JSON}),
    (updates.AddSchema(SCHEMA, 8), {"action": "add-schema", "schema": SCHEMA_JSON, "last-column-id": 8}),
    (updates.SetCurrentSchema(), {"action": "set-current-schema", "schema-id": -1}),
    (
        updates.AddPartitionSpec(SPEC),
        {
            "action": "add-spec",
            "spec": {
                "spec-id": 2,
                "fields": [{"name": "id_bucket", "transform": "bucket[16]", "source-id": 1, "field-id": 1000}],
            },
        },
    ),
    (updates.SetDefaultSpec(2), {"action": "set-default-spec", "spec-id": 2}),
    (
        updates.AddSortOrder(ORDER),
        {
            "action": "add-sort-order",
            "sort-order": {
                "order-id": 1,
                "fields": [{"transform": "identity", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}],
            },
        },
    ),
    (updates.SetDefaultSortOrder(1), {"action": "set-default-sort-order", "sort-order-id": 1}),
    (updates.AddSnapshot(SNAPSHOT), {"action": "add-snapshot", "snapshot": SNAPSHOT_JSON}),
    (
        updates.RemoveSnapshots(frozenset({LARGE, 3})),
        {"action": "remove-snapshots", "snapshot-ids": [3, LARGE]},
    ),
    (
        updates.SetSnapshotRef("main", BRANCH),
        {
            "action": "set-snapshot-ref",
            "ref-name": "main",
            "snapshot-id": LARGE,
            "type": "branch",
            "min-snapshots-to-keep": 3,
            "max-snapshot-age-ms": 2**40,
            "max-ref-age-ms": 2**41,
        },
    ),
    (updates.RemoveSnapshotRef("old"), {"action": "remove-snapshot-ref", "ref-name": "old"}),
    (updates.SetLocation("s3://b/t2"), {"action": "set-location", "location": "s3://b/t2"}),
    (updates.SetProperties({"a": "1"}), {"action": "set-properties", "updates": {"a": "1"}}),
    (updates.RemoveProperties(frozenset("ba")), {"action": "remove-properties", "removals": ["a", "b"]}),
    (
        updates.SetStatistics(STATISTICS),
        {
            "action": "set-statistics",
            "snapshot-id": LARGE,
            "statistics": {
                "snapshot-id": LARGE,
                "statistics-path": "s3://b/t/metadata/stats.puffin",
                "file-size-in-bytes": 100,
                "file-footer-size-in-bytes": 20,
                "blob-metadata": [
                    {
                        "type": "apache-datasketches-theta-v1",
                        "snapshot-id": LARGE,
                        "sequence-number": 9,
                        "fields": [1],
                    }
                ],
            },
        },
    ),
    (updates.RemoveStatistics(LARGE), {"action": "remove-statistics", "snapshot-id": LARGE}),
    (
        updates.SetPartitionStatistics(PARTITION_STATISTICS),
        {
            "action": "set-partition-statistics",
            "partition-statistics": {
                "snapshot-id": LARGE,
                "statistics-path": "s3://b/t/metadata/p.parquet",
                "file-size-in-bytes": 42,
            },
        },
    ),
    (
        updates.RemovePartitionStatistics(LARGE),
        {"action": "remove-partition-statistics", "snapshot-id": LARGE},
    ),
    (updates.RemovePartitionSpecs(frozenset({2, 1})), {"action": "remove-partition-specs", "spec-ids": [1, 2]}),
    (updates.RemoveSchemas(frozenset({2, 1})), {"action": "remove-schemas", "schema-ids": [1, 2]}),
]


@pytest.mark.parametrize(("update", "document"), CASES, ids=[case[1]["action"] for case in CASES])
def test_an_update_is_written_and_read(update: TableUpdate, document: dict[str, Any]) -> None:
    assert update_to_json(update) == document
    # Through text, so that no integer becomes a float on the way.
    assert update_from_json(JsonObject(json.loads(json.dumps(document)))) == update


def test_every_update_of_the_engine_has_a_case() -> None:
    known = {kind for kind in vars(updates).values() if isinstance(kind, type) and TableUpdate in kind.__bases__}
    assert {type(update) for update, _ in CASES} == known


def test_a_snapshot_of_a_v1_table_has_no_sequence_number() -> None:
    update = updates.AddSnapshot(Snapshot(snapshot_id=1, timestamp_ms=5, manifest_list="m", operation="append"))
    document = update_to_json(update)
    assert "sequence-number" not in document["snapshot"]
    assert update_from_json(JsonObject(document)) == update


def test_the_old_names_of_properties_are_read() -> None:
    old = {"action": "SET-PROPERTIES", "updated": {"a": "1"}}
    assert update_from_json(JsonObject(old)) == updates.SetProperties({"a": "1"})
    old = {"action": "remove-properties", "removed": ["a"]}
    assert update_from_json(JsonObject(old)) == updates.RemoveProperties(frozenset("a"))


def test_what_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="add-encryption-key"):
        update_from_json(JsonObject({"action": "add-encryption-key", "encryption-key": {}}))
    with pytest.raises(Unsupported, match="TableUpdate"):
        update_to_json(TableUpdate())


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}, "updates[2].snapshot-id"),
        ({"action": "remove-snapshots", "snapshot-ids": [1, "2"]}, r"updates[2].snapshot-ids[1]"),
        ({"action": "remove-snapshots", "snapshot-ids": [2**63]}, r"updates[2].snapshot-ids[0]"),
        ({"action": "remove-schemas", "schema-ids": [2**31]}, r"updates[2].schema-ids[0]"),
        ({"action": "add-schema", "schema": {"type": "struct"}}, "updates[2].schema.fields"),
        ({}, "updates[2].action"),
    ],
)
def test_a_malformed_update_names_its_place(document: dict[str, Any], path: str) -> None:
    with pytest.raises(CorruptTable) as raised:
        update_from_json(JsonObject(document, path="updates[2]"))
    assert raised.value.path == path
