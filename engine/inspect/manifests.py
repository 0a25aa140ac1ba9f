"""Metadata tables ``manifests`` and ``all_manifests``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from icebench.engine.inspect.contents import Contents
from icebench.engine.inspect.snapshot_ids import snapshot_ids
from icebench.engine.spec.manifest import ManifestContent, ManifestFile, PartitionFieldSummary
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partition_paths import human_string
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.transforms import UnknownTransform
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.spec.values import decode_value

_SUMMARY = pa.struct(
    [
        pa.field("contains_null", pa.bool_(), nullable=False),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.string()),
        pa.field("upper_bound", pa.string()),
    ]
)


def manifests(contents: Contents, snapshot: Snapshot | None) -> pa.Table:
    """One row per manifest of the snapshot: content (0 data, 1 deletes), path, length, partition_spec_id,
    added_snapshot_id, counts of its files (added_data_files_count, existing_data_files_count, deleted_data_files_count,
    added_delete_files_count, existing_delete_files_count, deleted_delete_files_count), partition_summaries.

    Bounds in ``partition_summaries`` are human-readable, as in partition paths.
    """
    rows = () if snapshot is None else contents.manifests(snapshot)
    return _table(contents.metadata, rows)


def all_manifests(contents: Contents) -> pa.Table:
    """One row per manifest and snapshot that lists it: as `manifests`, with ``reference_snapshot_id`` and
    ``key_metadata``."""
    pairs = [(s.snapshot_id, m) for s in contents.metadata.snapshots for m in contents.manifests(s)]
    table = _table(contents.metadata, [m for _, m in pairs])
    table = table.append_column("reference_snapshot_id", snapshot_ids(s for s, _ in pairs))
    return table.append_column("key_metadata", pa.array([m.key_metadata for _, m in pairs], pa.binary()))


def _table(metadata: TableMetadata, rows: Sequence[ManifestFile]) -> pa.Table:
    columns = {
        "content": pa.array([int(m.content) for m in rows], pa.int32()),
        "path": pa.array([m.manifest_path for m in rows], pa.string()),
        "length": pa.array([m.manifest_length for m in rows], pa.int64()),
        "partition_spec_id": pa.array([m.partition_spec_id for m in rows], pa.int32()),
        "added_snapshot_id": pa.array([m.added_snapshot_id for m in rows], pa.int64()),
    }
    for content, kind in ((ManifestContent.DATA, "data"), (ManifestContent.DELETES, "delete")):
        for change in ("added", "existing", "deleted"):
            counts = [getattr(m, f"{change}_files_count") if m.content == content else 0 for m in rows]
            columns[f"{change}_{kind}_files_count"] = pa.array(counts, pa.int32())
    summaries = [[_summary(metadata, m, i, p) for i, p in enumerate(m.partitions or ())] for m in rows]
    columns["partition_summaries"] = pa.array(summaries, pa.list_(_SUMMARY))
    return pa.table(columns)


def _summary(
    metadata: TableMetadata, manifest: ManifestFile, index: int, summary: PartitionFieldSummary
) -> dict[str, bool | str | None]:
    field = metadata.spec_by_id[manifest.partition_spec_id].fields[index]
    source = next((s.by_id[field.source_id].type for s in _newest_first(metadata) if field.source_id in s.by_id), None)

    def human(bound: bytes | None) -> str | None:
        if bound is None:
            return "null"  # as Iceberg Java's transforms have it
        if not isinstance(source, PrimitiveType):
            return None
        if isinstance(field.transform, UnknownTransform):
            return bound.hex()  # its type is unknown
        return human_string(field.transform, source, decode_value(field.transform.result_type(source), bound))

    return {
        "contains_null": summary.contains_null,
        "contains_nan": summary.contains_nan,
        "lower_bound": human(summary.lower_bound),
        "upper_bound": human(summary.upper_bound),
    }


def _newest_first(metadata: TableMetadata) -> tuple[Schema, ...]:
    return (metadata.schema, *reversed(metadata.schemas))
