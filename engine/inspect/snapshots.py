"""Metadata table ``snapshots``: every snapshot in the metadata."""

from __future__ import annotations

import pyarrow as pa

from engine.inspect.instants import instants
from engine.inspect.snapshot_ids import snapshot_ids
from engine.spec.metadata import TableMetadata


def snapshots(metadata: TableMetadata) -> pa.Table:
    """One row per snapshot, in the order of the metadata: committed_at, snapshot_id, parent_id, operation,
    manifest_list, summary (a map of strings, without the operation)."""
    rows = metadata.snapshots
    return pa.table(
        {
            "committed_at": instants(s.timestamp_ms for s in rows),
            "snapshot_id": snapshot_ids(s.snapshot_id for s in rows),
            "parent_id": snapshot_ids(s.parent_snapshot_id for s in rows),
            "operation": pa.array([s.operation for s in rows], pa.string()),
            "manifest_list": pa.array([s.manifest_list for s in rows], pa.string()),
            "summary": pa.array([list(s.summary.items()) for s in rows], pa.map_(pa.string(), pa.string())),
        }
    )
