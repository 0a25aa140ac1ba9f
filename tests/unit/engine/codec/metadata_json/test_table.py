"""Table metadata files of every version; the v1 and v2 documents are the examples that Iceberg's own tests use."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from icebench.engine.codec.metadata_json.objects import parse_json
from icebench.engine.codec.metadata_json.table import decode_metadata, encode_metadata
from icebench.engine.spec.snapshots import SnapshotRef
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.transforms import Bucket, Identity, UnknownTransform
from icebench.engine.spec.types import LONG
from icebench.errors import CorruptTable, Invalid, TooLarge, Unsupported

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "x", "required": True, "type": "long"},
        {"id": 2, "name": "y", "required": True, "type": "long", "doc": "comment"},
        {"id": 3, "name": "z", "required": True, "type": "long"},
    ],
}
V1: dict[str, Any] = {
    "format-version": 1,
    "location": "s3://bucket/test/location",
    "last-updated-ms": 1602638573874,
    "last-column-id": 3,
    "schema": SCHEMA,
    "partition-spec": [{"name": "x", "transform": "identity", "source-id": 1}],
    "properties": {},
    "current-snapshot-id": -1,
    "snapshots": [],
}
SNAPSHOT = {
    "snapshot-id": 3051729675574597004,
    "timestamp-ms": 1515100955770,
    "sequence-number": 1,
    "summary": {"operation": "append", "added-data-files": "1"},
    "manifest-list": "s3://a/b/1.avro",
    "schema-id": 1,
}
V2: dict[str, Any] = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://bucket/test/location",
    "last-sequence-number": 34,
    "last-updated-ms": 1602638573590,
    "last-column-id": 3,
    "current-schema-id": 1,
    "schemas": [{**SCHEMA, "schema-id": 0}, {**SCHEMA, "schema-id": 1, "identifier-field-ids": [1, 2]}],
    "default-spec-id": 0,
    "partition-specs": [
        {"spec-id": 0, "fields": [{"name": "x", "transform": "identity", "source-id": 1, "field-id": 1000}]}
    ],
    "last-partition-id": 1000,
    "default-sort-order-id": 3,
    "sort-orders": [
        {
            "order-id": 3,
            "fields": [
                {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"},
                {"transform": "bucket[4]", "source-id": 3, "direction": "desc", "null-order": "nulls-last"},
            ],
        }
    ],
    "properties": {"read.split.target.size": "134217728"},
    "current-snapshot-id": 3051729675574597004,
    "snapshots": [SNAPSHOT],
    "snapshot-log": [{"snapshot-id": 3051729675574597004, "timestamp-ms": 1515100955770}],
    "metadata-log": [{"metadata-file": "s3://bucket/.../v1.json", "timestamp-ms": 1515100}],
    "refs": {"test": {"snapshot-id": 3051729675574597004, "type": "tag", "max-ref-age-ms": 10000000}},
}
V3: dict[str, Any] = {
    **V2,
    "format-version": 3,
    "next-row-id": 50,
    "snapshots": [{**SNAPSHOT, "first-row-id": 10, "added-rows": 40, "key-id": "k1"}],
    "encryption-keys": [{"key-id": "k1", "encrypted-key-metadata": "aWNlYmVyZwo=", "encrypted-by-id": "root"}],
    "statistics": [
        {
            "snapshot-id": 3051729675574597004,
            "statistics-path": "s3://a/b/stats.puffin",
            "file-size-in-bytes": 413,
            "file-footer-size-in-bytes": 42,
            "key-metadata": "a2V5",
            "blob-metadata": [
                {
                    "type": "apache-datasketches-theta-v1",
                    "snapshot-id": 3051729675574597004,
                    "sequence-number": 1,
                    "fields": [1],
                    "properties": {"ndv": "7"},
                }
            ],
        }
    ],
    "partition-statistics": [
        {"snapshot-id": 3051729675574597004, "statistics-path": "s3://a/b/p.parquet", "file-size-in-bytes": 43}
    ],
}


def decoded(document: dict[str, Any], **changes: Any) -> Any:
    return decode_metadata(json.dumps({**document, **changes}).encode(), location="s3://b/v3.metadata.json")


def without(document: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in keys}


def test_v1_of_an_old_writer_gets_what_later_versions_have():
    metadata = decoded(V1)
    assert metadata.table_uuid == ""
    assert metadata.current_snapshot_id is None
    assert metadata.refs == {}
    assert metadata.schema.by_id[1].type == LONG
    assert metadata.spec.fields[0].field_id == 1000
    assert metadata.last_partition_id == 1000
    assert metadata.sort_orders == (SortOrder(),)
    assert metadata.last_sequence_number == 0
    assert metadata.next_row_id is None


def test_v3_of_an_early_writer_has_no_next_row_id():
    assert decoded(V3).next_row_id == 50
    assert (
        decoded(without(V3, "next-row-id"), snapshots=[{**SNAPSHOT, "first-row-id": 10, "added-rows": 25}]).next_row_id
        == 35
    )
    assert decoded(without(V3, "next-row-id"), snapshots=[SNAPSHOT]).next_row_id == 0


def test_v1_snapshots_may_list_manifests_inline_and_have_no_summary():
    snapshot = {"snapshot-id": 5, "timestamp-ms": 1, "manifests": ["a.avro", "b.avro"]}
    metadata = decoded(V1, snapshots=[snapshot], **{"current-snapshot-id": 5})
    assert metadata.current_snapshot.manifests == ("a.avro", "b.avro")
    assert metadata.current_snapshot.manifest_list is None
    assert metadata.current_snapshot.operation is None
    assert metadata.refs == {"main": SnapshotRef(snapshot_id=5, type="branch")}


def test_v2_members():
    metadata = decoded(V2)
    assert metadata.current_schema_id == 1
    assert metadata.schema.identifier_field_ids == {1, 2}
    assert metadata.spec.fields[0].transform == Identity()
    assert metadata.sort_order.fields[1].transform == Bucket(4)
    assert metadata.sort_order.fields[1].null_order == "nulls-last"
    assert metadata.current_snapshot.operation == "append"
    assert metadata.current_snapshot.summary == {"added-data-files": "1"}
    assert metadata.refs["test"].max_ref_age_ms == 10000000
    assert metadata.refs["main"].snapshot_id == metadata.current_snapshot_id
    assert metadata.metadata_log[0].metadata_file == "s3://bucket/.../v1.json"


def test_v3_members():
    metadata = decoded(V3)
    assert metadata.next_row_id == 50
    assert metadata.current_snapshot.first_row_id == 10
    assert metadata.current_snapshot.added_rows == 40
    assert metadata.current_snapshot.key_id == "k1"
    assert metadata.encryption_keys[0]["encrypted-by-id"] == "root"
    assert metadata.statistics[0].blob_metadata[0].properties == {"ndv": "7"}
    assert metadata.partition_statistics[0].file_size_in_bytes == 43


def test_multi_argument_transforms_are_unknown_and_keep_their_sources():
    field = {"name": "b", "transform": "bucketV2[4]", "source-ids": [1, 2], "field-id": 1000}
    metadata = decoded(V3, **{"partition-specs": [{"spec-id": 0, "fields": [field]}]})
    assert metadata.spec.fields[0].source_ids == (1, 2)
    assert metadata.spec.fields[0].transform == UnknownTransform("bucketV2[4]")
    assert json.loads(encode_metadata(metadata))["partition-specs"][0]["fields"] == [field]


@pytest.mark.parametrize("document", [V1, V2, V3], ids=["v1", "v2", "v3"])
@pytest.mark.parametrize("compress", [False, True])
def test_what_is_written_is_read_back(document: dict[str, Any], compress: bool):
    metadata = decoded(document)
    data = encode_metadata(metadata, compress=compress)
    assert data == encode_metadata(metadata, compress=compress)
    assert data.startswith(b"\x1f\x8b") == compress
    assert decode_metadata(data) == metadata


def test_v1_is_written_with_the_members_of_old_readers():
    written = json.loads(encode_metadata(decoded(V1)))
    assert [f["id"] for f in written["schema"]["fields"]] == [1, 2, 3]
    assert written["partition-spec"] == [{"name": "x", "transform": "identity", "source-id": 1, "field-id": 1000}]
    assert written["partition-specs"][0]["fields"] == written["partition-spec"]
    assert written["current-snapshot-id"] == -1
    assert "table-uuid" not in written
    assert "last-sequence-number" not in written


def test_v1_snapshots_are_written_without_sequence_numbers():
    snapshot = {"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": "s3://b/l", "summary": {"operation": "append"}}
    metadata = decoded({**V1, "snapshots": [snapshot], "current-snapshot-id": 7})
    assert json.loads(encode_metadata(metadata))["snapshots"] == [snapshot]


def test_no_snapshot_is_minus_one_until_v3_writes_null():
    for document, expected in ((V2, -1), (V3, None)):
        empty = without(document, "snapshots", "refs", "current-snapshot-id", "snapshot-log")
        assert json.loads(encode_metadata(decoded(empty)))["current-snapshot-id"] == expected


def test_gzip_is_recognised_by_its_bytes():
    assert decode_metadata(gzip.compress(json.dumps(V2).encode())) == decoded(V2)


def test_unknown_members_are_ignored():
    assert decoded(V2, **{"some-new-member": {"a": [1]}}) == decoded(V2)


def test_a_summary_without_operation_means_overwrite():
    snapshot = {**SNAPSHOT, "summary": {"added-data-files": "1"}}
    assert decoded(V2, snapshots=[snapshot]).current_snapshot.operation == "overwrite"


@pytest.mark.parametrize("key", ["table-uuid", "last-sequence-number", "schemas", "partition-specs", "sort-orders",
                                 "current-schema-id", "default-spec-id", "last-partition-id", "location",
                                 "last-updated-ms", "last-column-id", "format-version"])  # fmt: skip
def test_v2_requires(key: str):
    with pytest.raises(CorruptTable) as caught:
        decoded(without(V2, key))
    assert caught.value.path == key
    assert caught.value.location == "s3://b/v3.metadata.json"


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"current-schema-id": 9}, "current-schema-id"),
        ({"default-spec-id": 9}, "default-spec-id"),
        ({"default-sort-order-id": 9}, "default-sort-order-id"),
        ({"current-snapshot-id": 9}, "current-snapshot-id"),
        ({"refs": {"tag": {"snapshot-id": 9, "type": "tag"}}}, "refs.tag.snapshot-id"),
        ({"refs": {"t": {"snapshot-id": 3051729675574597004, "type": "x"}}}, "refs.t.type"),
        ({"snapshots": [SNAPSHOT, SNAPSHOT]}, "snapshots[1]"),
        ({"snapshots": [{**SNAPSHOT, "sequence-number": 35}]}, "snapshots[0].sequence-number"),
        ({"snapshots": [{**SNAPSHOT, "summary": {"operation": "append", "n": 1}}]}, "snapshots[0].summary.n"),
        ({"snapshots": [{**SNAPSHOT, "summary": {"operation": "merge"}}]}, "snapshots[0].summary.operation"),
        ({"snapshots": [without(SNAPSHOT, "manifest-list")]}, "snapshots[0].manifest-list"),
        ({"snapshots": {}}, "snapshots"),
        ({"last-column-id": 1 << 31}, "last-column-id"),
        ({"last-column-id": True}, "last-column-id"),
        ({"location": 5}, "location"),
        ({"schemas": [{**SCHEMA, "schema-id": 1, "identifier-field-ids": [7]}]}, "schemas[0].identifier-field-ids"),
        ({"schemas": [{**SCHEMA, "schema-id": 1}, {**SCHEMA, "schema-id": 1}]}, "schemas[1]"),
    ],
)
def test_contradictions_name_their_place(changes: dict[str, Any], path: str):
    with pytest.raises(CorruptTable) as caught:
        decoded(V2, **changes)
    assert caught.value.path == path


def test_main_is_the_current_snapshot():
    other = {**SNAPSHOT, "snapshot-id": 5}
    with pytest.raises(CorruptTable, match=r"refs\.main"):
        decoded(V2, snapshots=[SNAPSHOT, other], refs={"main": {"snapshot-id": 5, "type": "branch"}})


def test_only_the_default_spec_needs_its_columns():
    old = {"spec-id": 1, "fields": [{"name": "g", "transform": "identity", "source-id": 99, "field-id": 1001}]}
    assert len(decoded(V2, **{"partition-specs": [*V2["partition-specs"], old]}).partition_specs) == 2
    with pytest.raises(CorruptTable, match="column 99"):
        decoded(V2, **{"partition-specs": [{**old, "spec-id": 0}]})


@pytest.mark.parametrize("version", [4, 17])
def test_later_versions_are_unsupported(version: int):
    with pytest.raises(Unsupported, match=str(version)):
        decoded(V3, **{"format-version": version})


def test_v2_cannot_be_written_without_uuid_or_manifest_list():
    metadata = decoded(V2)
    with pytest.raises(Invalid, match="UUID"):
        encode_metadata(replace(metadata, table_uuid=""))
    snapshot = replace(metadata.snapshots[0], manifest_list=None)
    with pytest.raises(Invalid, match="manifest list"):
        encode_metadata(replace(metadata, snapshots=(snapshot,)))


def test_gzip_inflates_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(json.dumps({**V2, "properties": {"comment": "x" * 1_000_000}}).encode())
    assert len(packed) < 3000
    monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "3100000")
    assert len(decode_metadata(packed).properties["comment"]) == 1_000_000
    monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "2900000")
    with pytest.raises(TooLarge, match=r"v1.gz.metadata.json: gzip of \d+ bytes takes more than 966666 bytes decoded"):
        decode_metadata(packed, location="v1.gz.metadata.json")
    monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "1GB")
    with pytest.raises(Invalid, match="ICEBENCH_DECODE_BYTES='1GB' is not a number of bytes"):
        decode_metadata(packed)


@pytest.mark.parametrize(("text", "is_good"), [("\\ud83d\\ude00", True), ("\\ud83d", False), ("\\uDE00", False)])
def test_text_is_text(text: str, is_good: bool) -> None:
    data = f'{{"a": "{text}"}}'.encode()
    if is_good:
        assert parse_json(data) == {"a": "\U0001f600"}
    else:
        with pytest.raises(CorruptTable, match="surrogates not allowed"):
            parse_json(data)


def snapshot_chain(parents: dict[int, int | None]) -> dict[str, Any]:
    """Metadata of snapshots with these parents, in this order; the last one is current."""
    snapshots = [
        {**SNAPSHOT, "snapshot-id": i} | ({} if parent is None else {"parent-snapshot-id": parent})
        for i, parent in parents.items()
    ]
    return {**V2, "snapshots": snapshots, "current-snapshot-id": list(parents)[-1], "refs": {}, "snapshot-log": []}


@pytest.mark.parametrize(
    ("parents", "wrong"),
    [
        ({1: 1}, 0),
        ({1: 2, 2: 1}, 0),
        ({1: None, 2: 1, 3: 4, 4: 5, 5: 3}, 2),
        ({9: None, 1: 2, 2: 3, 3: 2, 4: 9}, 1),  # not of the current snapshot's line
    ],
)
def test_snapshots_that_descend_from_themselves(parents: dict[int, int | None], wrong: int):
    with pytest.raises(CorruptTable, match=rf"snapshots\[{wrong}\].parent-snapshot-id: .* is its own ancestor"):
        decoded(snapshot_chain(parents))


@pytest.mark.parametrize("parents", [{3: 2, 2: 1, 1: None}, {3: 2, 1: 7, 2: 1}, {1: None, 2: 1, 3: 1, 4: 3}])
def test_parents_may_stand_after_their_children_or_be_expired(parents: dict[int, int | None]):
    metadata = decoded(snapshot_chain(parents))
    for snapshot_id in parents:
        line = list(metadata.ancestors(snapshot_id))
        assert line[0] == snapshot_id
        assert [parents[i] for i in line[:-1]] == line[1:]
        assert parents[line[-1]] not in parents
    assert list(metadata.ancestors(None)) == []
