"""JSON form of snapshots, references, logs and statistics (spec appendix C: "Table Metadata and Snapshots")."""

from __future__ import annotations

from typing import Any, cast

from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.spec.snapshots import MetadataLogEntry, Operation, Snapshot, SnapshotLogEntry, SnapshotRef
from icebench.engine.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile

_OPERATIONS = ("append", "replace", "overwrite", "delete")
_TWO_31, _TWO_63 = 1 << 31, 1 << 63


def snapshot_from_json(node: JsonObject, *, format_version: int) -> Snapshot:
    """Decode a snapshot. `operation` is not part of the summary; a summary without one means overwrite, as in Iceberg
    Java.

    Raises:
        CorruptTable: A member is missing or malformed, or a v2 or v3 snapshot has no manifest list.
    """
    manifest_list = node.text_or_none("manifest-list")
    manifests: tuple[str, ...] = ()
    if manifest_list is None:
        if format_version > 1:
            raise node.error("manifest-list", f"is required in format version {format_version}")
        manifests = node.texts("manifests")
    summary = node.text_map("summary")
    operation = summary.pop("operation", "overwrite" if summary else None)
    if operation is not None and operation not in _OPERATIONS:
        raise node.error("summary.operation", f"{operation!r} is not one of {', '.join(_OPERATIONS)}")
    return Snapshot(
        snapshot_id=node.snapshot_id("snapshot-id"),
        parent_snapshot_id=node.snapshot_id_or_none("parent-snapshot-id"),
        sequence_number=node.int64_or_none("sequence-number") or 0,
        timestamp_ms=node.int64("timestamp-ms"),
        manifest_list=manifest_list,
        manifests=manifests,
        operation=cast("Operation | None", operation),
        summary=summary,
        schema_id=node.int32_or_none("schema-id"),
        first_row_id=node.int64_or_none("first-row-id"),
        added_rows=node.int64_or_none("added-rows"),
        key_id=node.text_or_none("key-id"),
    )


def plain_snapshot(value: object) -> Snapshot | None:
    """Decode a snapshot that has all members with the right types, as nearly all do; None for any other, which
    `snapshot_from_json` decodes or refuses. Each commit decodes all snapshots, of which a table may have thousands."""
    if type(value) is not dict:
        return None
    get = value.get
    manifest_list, summary, schema_id = get("manifest-list"), get("summary"), get("schema-id", 0)
    numbers: Any = (
        get("snapshot-id"),
        get("timestamp-ms"),
        get("parent-snapshot-id", 0),
        get("sequence-number", 0),
        get("first-row-id", 0),
        get("added-rows", 0),
    )
    if type(manifest_list) is not str or type(summary) is not dict or type(schema_id) is not int or "key-id" in value:
        return None
    if set(map(type, numbers)) != {int} or set(map(type, summary.values())) != {str}:
        return None
    if min(numbers) < 0 or max(numbers) >= _TWO_63 or not 0 <= schema_id < _TWO_31:
        return None
    if summary.get("operation") not in _OPERATIONS:
        return None
    summary = dict(summary)
    operation = summary.pop("operation")
    return Snapshot(
        snapshot_id=numbers[0],
        parent_snapshot_id=get("parent-snapshot-id"),
        sequence_number=numbers[3],
        timestamp_ms=numbers[1],
        manifest_list=manifest_list,
        operation=operation,
        summary=summary,
        schema_id=get("schema-id"),
        first_row_id=get("first-row-id"),
        added_rows=get("added-rows"),
    )


def snapshot_to_json(snapshot: Snapshot, *, format_version: int) -> dict[str, Any]:
    """The JSON-ready form of a snapshot; v1 has no sequence number."""
    made: dict[str, Any] = {}
    if format_version > 1:
        made["sequence-number"] = snapshot.sequence_number
    made["snapshot-id"] = snapshot.snapshot_id
    _put(made, "parent-snapshot-id", snapshot.parent_snapshot_id)
    made["timestamp-ms"] = snapshot.timestamp_ms
    if snapshot.operation is not None:
        made["summary"] = {"operation": snapshot.operation, **snapshot.summary}
    if snapshot.manifest_list is not None:
        made["manifest-list"] = snapshot.manifest_list
    else:
        made["manifests"] = list(snapshot.manifests)
    _put(made, "schema-id", snapshot.schema_id)
    _put(made, "first-row-id", snapshot.first_row_id)
    _put(made, "added-rows", snapshot.added_rows)
    _put(made, "key-id", snapshot.key_id)
    return made


def ref_from_json(node: JsonObject) -> SnapshotRef:
    """A branch or tag; raises CorruptTable."""
    kind = node.text("type").lower()
    if kind not in ("branch", "tag"):
        raise node.error("type", f"{kind!r} is neither branch nor tag")
    return SnapshotRef(
        snapshot_id=node.snapshot_id("snapshot-id"),
        type="branch" if kind == "branch" else "tag",
        min_snapshots_to_keep=node.int32_or_none("min-snapshots-to-keep"),
        max_snapshot_age_ms=node.int64_or_none("max-snapshot-age-ms"),
        max_ref_age_ms=node.int64_or_none("max-ref-age-ms"),
    )


def ref_to_json(ref: SnapshotRef) -> dict[str, Any]:
    """The JSON-ready form of a branch or tag."""
    made: dict[str, Any] = {"snapshot-id": ref.snapshot_id, "type": ref.type}
    _put(made, "min-snapshots-to-keep", ref.min_snapshots_to_keep)
    _put(made, "max-snapshot-age-ms", ref.max_snapshot_age_ms)
    _put(made, "max-ref-age-ms", ref.max_ref_age_ms)
    return made


def plain_snapshot_log(value: object) -> SnapshotLogEntry | None:
    """Decode an entry of the snapshot log as `plain_snapshot` decodes snapshots."""
    if type(value) is not dict:
        return None
    timestamp_ms, snapshot_id = value.get("timestamp-ms"), value.get("snapshot-id")
    if type(timestamp_ms) is not int or type(snapshot_id) is not int:
        return None
    if not (0 <= timestamp_ms < _TWO_63 and 0 <= snapshot_id < _TWO_63):
        return None
    return SnapshotLogEntry(timestamp_ms=timestamp_ms, snapshot_id=snapshot_id)


def snapshot_log_from_json(node: JsonObject) -> SnapshotLogEntry:
    """An entry of the snapshot log; raises CorruptTable."""
    return SnapshotLogEntry(timestamp_ms=node.int64("timestamp-ms"), snapshot_id=node.snapshot_id("snapshot-id"))


def metadata_log_from_json(node: JsonObject) -> MetadataLogEntry:
    """An entry of the metadata log; raises CorruptTable."""
    return MetadataLogEntry(timestamp_ms=node.int64("timestamp-ms"), metadata_file=node.text("metadata-file"))


def statistics_from_json(node: JsonObject) -> StatisticsFile:
    """A statistics file; raises CorruptTable."""
    return StatisticsFile(
        snapshot_id=node.snapshot_id("snapshot-id"),
        statistics_path=node.text("statistics-path"),
        file_size_in_bytes=node.int64("file-size-in-bytes"),
        file_footer_size_in_bytes=node.int64("file-footer-size-in-bytes"),
        key_metadata=node.text_or_none("key-metadata"),
        blob_metadata=tuple(
            BlobMetadata(
                type=blob.text("type"),
                snapshot_id=blob.snapshot_id("snapshot-id"),
                sequence_number=blob.int64("sequence-number"),
                fields=blob.int32s("fields"),
                properties=blob.text_map("properties"),
            )
            for blob in node.children("blob-metadata")
        ),
    )


def statistics_to_json(file: StatisticsFile) -> dict[str, Any]:
    """The JSON-ready form of a statistics file."""
    made: dict[str, Any] = {
        "snapshot-id": file.snapshot_id,
        "statistics-path": file.statistics_path,
        "file-size-in-bytes": file.file_size_in_bytes,
        "file-footer-size-in-bytes": file.file_footer_size_in_bytes,
        "blob-metadata": [],
    }
    _put(made, "key-metadata", file.key_metadata)
    for blob in file.blob_metadata:
        one: dict[str, Any] = {
            "type": blob.type,
            "snapshot-id": blob.snapshot_id,
            "sequence-number": blob.sequence_number,
            "fields": list(blob.fields),
        }
        if blob.properties:
            one["properties"] = dict(blob.properties)
        made["blob-metadata"].append(one)
    return made


def partition_statistics_from_json(node: JsonObject) -> PartitionStatisticsFile:
    """A partition statistics file; raises CorruptTable."""
    return PartitionStatisticsFile(
        snapshot_id=node.snapshot_id("snapshot-id"),
        statistics_path=node.text("statistics-path"),
        file_size_in_bytes=node.int64("file-size-in-bytes"),
    )


def partition_statistics_to_json(file: PartitionStatisticsFile) -> dict[str, Any]:
    """The JSON-ready form of a partition statistics file."""
    return {
        "snapshot-id": file.snapshot_id,
        "statistics-path": file.statistics_path,
        "file-size-in-bytes": file.file_size_in_bytes,
    }


def _put(target: dict[str, Any], key: str, value: object) -> None:
    if value is not None:
        target[key] = value
