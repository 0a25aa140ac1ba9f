"""Table metadata files (spec: "Table Metadata", appendix C: "Table Metadata and Snapshots").

Versions 1, 2 and 3 are read, and written in the version that the metadata has, as Iceberg Java writes them: v1 keeps
the deprecated ``schema`` and ``partition-spec`` beside the lists. Members that the specification does not know are
ignored, and not kept when the metadata is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from engine.codec.metadata_json.files import gzip_text, parse_json_file
from engine.codec.metadata_json.objects import JsonObject, write_json
from engine.codec.metadata_json.partitioning import (
    partition_fields_from_json,
    partition_fields_to_json,
    partition_spec_from_json,
    partition_spec_to_json,
    sort_order_from_json,
    sort_order_to_json,
)
from engine.codec.metadata_json.schema import schema_from_json, schema_to_json
from engine.codec.metadata_json.snapshots import (
    metadata_log_from_json,
    partition_statistics_from_json,
    partition_statistics_to_json,
    plain_snapshot,
    plain_snapshot_log,
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_log_from_json,
    snapshot_to_json,
    statistics_from_json,
    statistics_to_json,
)
from engine.errors import Invalid, Unsupported
from engine.spec.metadata import LATEST_FORMAT_VERSION, TableMetadata
from engine.spec.partitioning import FIRST_PARTITION_FIELD_ID, PartitionSpec
from engine.spec.schema import Schema
from engine.spec.snapshots import MAIN, Snapshot, SnapshotRef
from engine.spec.sorting import UNSORTED, SortOrder
from engine.spec.transforms import UnknownTransform, Void

T = TypeVar("T")

_NO_SNAPSHOT = -1


def decode_metadata(data: bytes, *, location: str | None = None) -> TableMetadata:
    """Decode a metadata file; gzip is recognised by its first bytes.

    `table_uuid` is empty where a v1 file has none. References of a file without ``refs`` are ``main`` alone.

    Raises:
        CorruptTable: The bytes contradict the specification; `path` is the member, such as ``snapshots[3].summary``.
        Unsupported: A format version above 3, or a type of such a version.
    """
    return metadata_from_json(parse_json_file(data, location=location), location=location)


def metadata_from_json(document: object, *, location: str | None = None) -> TableMetadata:
    """Decode a parsed document, as REST catalogs return; raises as `decode_metadata`."""
    node = JsonObject(document, location=location)
    version = node.int32("format-version")
    if version < 1:
        raise node.error("format-version", f"{version} is not a format version")
    if version > LATEST_FORMAT_VERSION:
        raise Unsupported(f"format version {version} of the table at {location or 'an unnamed place'}")
    metadata = _decode(node, version)
    _check(node, metadata)
    return metadata


def _decode(node: JsonObject, version: int) -> TableMetadata:
    schemas, current_schema_id = _schemas(node, version)
    specs, default_spec_id = _specs(node, version)
    orders, default_order_id = _sort_orders(node, version)
    snapshots = node.decoded("snapshots", plain_snapshot, partial(snapshot_from_json, format_version=version))
    current = node.snapshot_id_or_none("current-snapshot-id")
    current_snapshot_id = None if current == _NO_SNAPSHOT else current
    return TableMetadata(
        format_version=version,
        table_uuid=(node.text_or_none("table-uuid") or "") if version == 1 else node.text("table-uuid"),
        location=node.text("location"),
        last_sequence_number=0 if version == 1 else node.int64("last-sequence-number"),
        last_updated_ms=node.int64("last-updated-ms"),
        last_column_id=node.int32("last-column-id"),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=_last_partition_id(node, version, specs),
        properties=node.text_map("properties"),
        current_snapshot_id=current_snapshot_id,
        snapshots=snapshots,
        snapshot_log=node.decoded("snapshot-log", plain_snapshot_log, snapshot_log_from_json),
        metadata_log=tuple(map(metadata_log_from_json, node.children_or_empty("metadata-log"))),
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        refs=_refs(node, current_snapshot_id),
        statistics=tuple(map(statistics_from_json, node.children_or_empty("statistics"))),
        partition_statistics=tuple(map(partition_statistics_from_json, node.children_or_empty("partition-statistics"))),
        next_row_id=_next_row_id(node, snapshots) if version >= 3 else None,
        encryption_keys=tuple(map(_encryption_key, node.children_or_empty("encryption-keys"))),
    )


def _next_row_id(node: JsonObject, snapshots: Sequence[Snapshot]) -> int:
    """The next row id. Early writers of v3 left it out: as after an upgrade, rows without ids get theirs with the next
    commit, above those that snapshots have taken."""
    if node.has("next-row-id"):
        return node.int64("next-row-id")
    return max((s.first_row_id + (s.added_rows or 0) for s in snapshots if s.first_row_id is not None), default=0)


def _schemas(node: JsonObject, version: int) -> tuple[tuple[Schema, ...], int]:
    if version == 1 and not node.has("schemas"):
        schema = schema_from_json(node.value("schema"), path="schema", location=node.location)
        return (schema,), schema.schema_id
    schemas = tuple(
        schema_from_json(child.members, path=child.path, location=node.location) for child in node.children("schemas")
    )
    return schemas, node.int32("current-schema-id")


def _specs(node: JsonObject, version: int) -> tuple[tuple[PartitionSpec, ...], int]:
    if version == 1 and not node.has("partition-specs"):
        return (PartitionSpec(partition_fields_from_json(node.children("partition-spec"))),), 0
    return tuple(map(partition_spec_from_json, node.children("partition-specs"))), node.int32("default-spec-id")


def _sort_orders(node: JsonObject, version: int) -> tuple[tuple[SortOrder, ...], int]:
    if version == 1 and not node.has("sort-orders"):
        return (UNSORTED,), UNSORTED.order_id
    return tuple(map(sort_order_from_json, node.children("sort-orders"))), node.int32("default-sort-order-id")


def _last_partition_id(node: JsonObject, version: int, specs: Iterable[PartitionSpec]) -> int:
    if version == 1 and not node.has("last-partition-id"):
        return max((f.field_id for spec in specs for f in spec.fields), default=FIRST_PARTITION_FIELD_ID - 1)
    return node.int32("last-partition-id")


def _refs(node: JsonObject, current_snapshot_id: int | None) -> dict[str, SnapshotRef]:
    refs = node.child_or_empty("refs")
    found = {name: ref_from_json(refs.child(name)) for name in refs.members}
    if current_snapshot_id is not None:
        # The specification promises main even where the map leaves it out or is missing.
        found.setdefault(MAIN, SnapshotRef(snapshot_id=current_snapshot_id, type="branch"))
    return found


def _encryption_key(node: JsonObject) -> dict[str, Any]:
    made: dict[str, Any] = {
        "key-id": node.text("key-id"),
        "encrypted-key-metadata": node.text("encrypted-key-metadata"),
    }
    if node.has("encrypted-by-id"):
        made["encrypted-by-id"] = node.text("encrypted-by-id")
    if node.has("properties"):
        made["properties"] = node.text_map("properties")
    return made


def _check(node: JsonObject, metadata: TableMetadata) -> None:
    """Check that every id that the metadata refers to exists, and that ids are unique."""
    _check_unique(node, "schemas", metadata.schemas, lambda s: s.schema_id)
    _check_unique(node, "partition-specs", metadata.partition_specs, lambda s: s.spec_id)
    _check_unique(node, "sort-orders", metadata.sort_orders, lambda s: s.order_id)
    _check_unique(node, "snapshots", metadata.snapshots, lambda s: s.snapshot_id)
    _check_known(node, "current-schema-id", metadata.current_schema_id, metadata.schema_by_id)
    _check_known(node, "default-spec-id", metadata.default_spec_id, metadata.spec_by_id)
    orders = {order.order_id for order in metadata.sort_orders}
    _check_known(node, "default-sort-order-id", metadata.default_sort_order_id, orders)
    _check_sources(node, metadata)
    _check_snapshots(node, metadata)


def _check_unique(node: JsonObject, key: str, nouns: Sequence[T], id_of: Callable[[T], int]) -> None:
    seen: set[int] = set()
    for index, noun in enumerate(nouns):
        if id_of(noun) in seen:
            raise node.error(f"{key}[{index}]", f"id {id_of(noun)} is used twice")
        seen.add(id_of(noun))


def _check_known(node: JsonObject, key: str, wanted: int, known: Iterable[int]) -> None:
    if wanted not in known:
        raise node.error(key, f"refers to id {wanted}, which is not in the metadata")


def _check_sources(node: JsonObject, metadata: TableMetadata) -> None:
    # Only the defaults: an older spec or order may name a column that was dropped since.
    columns = metadata.schema.by_id
    used = [
        *(("partition-specs", f.transform, f.source_ids) for f in metadata.spec.fields),
        *(("sort-orders", f.transform, f.source_ids) for f in metadata.sort_order.fields),
    ]
    for key, transform, source_ids in used:
        if isinstance(transform, (Void, UnknownTransform)):
            continue
        for source_id in source_ids:
            if source_id not in columns:
                raise node.error(key, f"the default refers to column {source_id}, which is not in the current schema")


def _check_snapshots(node: JsonObject, metadata: TableMetadata) -> None:
    known = metadata.snapshot_by_id
    if metadata.current_snapshot_id is not None:
        _check_known(node, "current-snapshot-id", metadata.current_snapshot_id, known)
    for name, ref in metadata.refs.items():
        _check_known(node, f"refs.{name}.snapshot-id", ref.snapshot_id, known)
    main = metadata.refs.get(MAIN)
    if main is not None and main.snapshot_id != metadata.current_snapshot_id:
        raise node.error("refs.main", f"is snapshot {main.snapshot_id}, not current-snapshot-id")
    _check_acyclic(node, metadata)
    if metadata.format_version > 1:
        for index, snapshot in enumerate(metadata.snapshots):
            if snapshot.sequence_number > metadata.last_sequence_number:
                path = f"snapshots[{index}].sequence-number"
                raise node.error(path, f"{snapshot.sequence_number} is above last-sequence-number")


def _check_acyclic(node: JsonObject, metadata: TableMetadata) -> None:
    """Check that no snapshot is its own ancestor, so that walks over ancestors need no check."""
    known, ends = metadata.snapshot_by_id, set[int]()
    for index, snapshot in enumerate(metadata.snapshots):
        parent = snapshot.parent_snapshot_id
        if parent is None or parent in ends or parent not in known:
            ends.add(snapshot.snapshot_id)  # the usual order: parents before children
            continue
        line = {snapshot.snapshot_id}
        while parent is not None and parent not in ends and parent in known:
            if parent in line:
                raise node.error(f"snapshots[{index}].parent-snapshot-id", f"snapshot {parent} is its own ancestor")
            line.add(parent)
            parent = known[parent].parent_snapshot_id
        ends |= line


def encode_metadata(metadata: TableMetadata, *, compress: bool = False) -> bytes:
    """Encode a metadata file, by gzip if `compress`; the same metadata gives the same bytes.

    Raises:
        Invalid: The metadata has no table UUID, which format versions 2 and 3 require, or a default is not JSON.
    """
    try:
        text = write_json(_encode(metadata))
    except ValueError as error:
        raise Invalid(f"the metadata of {metadata.location} has a value that JSON cannot hold: {error}") from error
    return gzip_text(text) if compress else text


def _encode(metadata: TableMetadata) -> dict[str, Any]:
    version = metadata.format_version
    made: dict[str, Any] = {"format-version": version}
    if metadata.table_uuid:
        made["table-uuid"] = metadata.table_uuid
    elif version > 1:
        raise Invalid(f"format version {version} requires a table UUID")
    made["location"] = metadata.location
    if version > 1:
        made["last-sequence-number"] = metadata.last_sequence_number
    made["last-updated-ms"] = metadata.last_updated_ms
    made["last-column-id"] = metadata.last_column_id
    if version == 1:
        made["schema"] = schema_to_json(metadata.schema)
        made["partition-spec"] = partition_fields_to_json(metadata.spec)
    made["current-schema-id"] = metadata.current_schema_id
    made["schemas"] = [schema_to_json(schema) for schema in metadata.schemas]
    made["default-spec-id"] = metadata.default_spec_id
    made["partition-specs"] = [partition_spec_to_json(spec) for spec in metadata.partition_specs]
    made["last-partition-id"] = metadata.last_partition_id
    made["default-sort-order-id"] = metadata.default_sort_order_id
    made["sort-orders"] = [sort_order_to_json(order) for order in metadata.sort_orders]
    made["properties"] = dict(metadata.properties)
    made["current-snapshot-id"] = _current_snapshot_to_json(metadata)
    if version >= 3:
        made["next-row-id"] = metadata.next_row_id or 0
    if metadata.encryption_keys:
        made["encryption-keys"] = [dict(key) for key in metadata.encryption_keys]
    made["refs"] = {name: ref_to_json(ref) for name, ref in metadata.refs.items()}
    made["snapshots"] = [_snapshot_to_json(snapshot, version) for snapshot in metadata.snapshots]
    made["statistics"] = [statistics_to_json(file) for file in metadata.statistics]
    made["partition-statistics"] = [partition_statistics_to_json(file) for file in metadata.partition_statistics]
    made["snapshot-log"] = [
        {"timestamp-ms": entry.timestamp_ms, "snapshot-id": entry.snapshot_id} for entry in metadata.snapshot_log
    ]
    made["metadata-log"] = [
        {"timestamp-ms": entry.timestamp_ms, "metadata-file": entry.metadata_file} for entry in metadata.metadata_log
    ]
    return made


def _current_snapshot_to_json(metadata: TableMetadata) -> int | None:
    if metadata.current_snapshot_id is None and metadata.format_version < 3:
        return _NO_SNAPSHOT
    return metadata.current_snapshot_id


def _snapshot_to_json(snapshot: Snapshot, format_version: int) -> dict[str, Any]:
    if snapshot.manifest_list is None and format_version > 1:
        raise Invalid(f"snapshot {snapshot.snapshot_id} has no manifest list, which format version 2 requires")
    return snapshot_to_json(snapshot, format_version=format_version)
