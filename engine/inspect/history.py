"""Metadata table ``history``: which snapshot was current when."""

from __future__ import annotations

import pyarrow as pa

from engine.inspect.instants import instants
from engine.inspect.snapshot_ids import snapshot_ids
from engine.spec.metadata import TableMetadata


def history(metadata: TableMetadata) -> pa.Table:
    """One row per entry of the snapshot log: made_current_at, snapshot_id, parent_id, is_current_ancestor.

    A snapshot that was rolled back is not an ancestor of the current one.
    """
    log = metadata.snapshot_log
    known = metadata.snapshot_by_id
    ancestors = set(metadata.ancestors(metadata.current_snapshot_id))
    parents = [known[e.snapshot_id].parent_snapshot_id if e.snapshot_id in known else None for e in log]
    return pa.table(
        {
            "made_current_at": instants(e.timestamp_ms for e in log),
            "snapshot_id": snapshot_ids(e.snapshot_id for e in log),
            "parent_id": snapshot_ids(parents),
            "is_current_ancestor": pa.array([e.snapshot_id in ancestors for e in log], pa.bool_()),
        }
    )
