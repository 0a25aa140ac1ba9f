"""Metadata table ``history``: which snapshot was current when."""

from __future__ import annotations

import pyarrow as pa

from engine.inspect.instants import instants
from engine.spec.metadata import TableMetadata


def history(metadata: TableMetadata) -> pa.Table:
    """One row an entry of the snapshot log: made_current_at, snapshot_id, parent_id, is_current_ancestor.

    A snapshot that was rolled back is not an ancestor of the current one.
    """
    log = metadata.snapshot_log
    known = metadata.snapshot_by_id
    ancestors = ancestor_ids(metadata, metadata.current_snapshot_id)
    parents = [known[e.snapshot_id].parent_snapshot_id if e.snapshot_id in known else None for e in log]
    return pa.table(
        {
            "made_current_at": instants(e.timestamp_ms for e in log),
            "snapshot_id": pa.array([e.snapshot_id for e in log], pa.int64()),
            "parent_id": pa.array(parents, pa.int64()),
            "is_current_ancestor": pa.array([e.snapshot_id in ancestors for e in log], pa.bool_()),
        }
    )


def ancestor_ids(metadata: TableMetadata, snapshot_id: int | None) -> set[int]:
    """A snapshot and those it was built on, as far back as the metadata goes."""
    found: set[int] = set()
    while snapshot_id is not None and snapshot_id in metadata.snapshot_by_id and snapshot_id not in found:
        found.add(snapshot_id)
        snapshot_id = metadata.snapshot_by_id[snapshot_id].parent_snapshot_id
    return found
