"""Metadata table ``refs``: branches and tags."""

from __future__ import annotations

import pyarrow as pa

from engine.inspect.snapshot_ids import snapshot_ids
from engine.spec.metadata import TableMetadata


def refs(metadata: TableMetadata) -> pa.Table:
    """One row per reference: name, type (BRANCH or TAG), snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep,
    max_snapshot_age_in_ms; null means the table's default."""
    rows = list(metadata.refs.items())
    return pa.table(
        {
            "name": pa.array([name for name, _ in rows], pa.string()),
            "type": pa.array([ref.type.upper() for _, ref in rows], pa.string()),
            "snapshot_id": snapshot_ids(ref.snapshot_id for _, ref in rows),
            "max_reference_age_in_ms": pa.array([ref.max_ref_age_ms for _, ref in rows], pa.int64()),
            "min_snapshots_to_keep": pa.array([ref.min_snapshots_to_keep for _, ref in rows], pa.int32()),
            "max_snapshot_age_in_ms": pa.array([ref.max_snapshot_age_ms for _, ref in rows], pa.int64()),
        }
    )
