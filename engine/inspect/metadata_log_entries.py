"""Metadata table ``metadata_log_entries``: former metadata files and the current one."""

from __future__ import annotations

import pyarrow as pa

from engine.inspect.instants import instants
from engine.inspect.snapshot_ids import snapshot_ids
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import Snapshot


def metadata_log_entries(metadata: TableMetadata, metadata_location: str) -> pa.Table:
    """One row per metadata file, oldest first and the current one last: timestamp, file, latest_snapshot_id,
    latest_schema_id, latest_sequence_number (of the snapshot that was current then; null before the first)."""
    entries = [(e.timestamp_ms, e.metadata_file) for e in metadata.metadata_log]
    entries.append((metadata.last_updated_ms, metadata_location))
    latest = [_current_at(metadata, timestamp_ms) for timestamp_ms, _ in entries]
    return pa.table(
        {
            "timestamp": instants(timestamp_ms for timestamp_ms, _ in entries),
            "file": pa.array([file for _, file in entries], pa.string()),
            "latest_snapshot_id": snapshot_ids(None if s is None else s.snapshot_id for s in latest),
            "latest_schema_id": pa.array([s and s.schema_id for s in latest], pa.int32()),
            "latest_sequence_number": pa.array([s and s.sequence_number for s in latest], pa.int64()),
        }
    )


def _current_at(metadata: TableMetadata, timestamp_ms: int) -> Snapshot | None:
    past = [e.snapshot_id for e in metadata.snapshot_log if e.timestamp_ms <= timestamp_ms]
    return metadata.snapshot_by_id.get(past[-1]) if past else None
