"""What appends added between two snapshots: the increment that consumers of a table read.

Only snapshots of operation ``append`` count: a rewrite brings no new rows, and what overwrites and deletes add or
remove is not an append. Nothing that was deleted later is taken out of the increment.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.errors import Invalid, NotFound
from engine.plan.manifests import LiveEntries
from engine.plan.scan import ScanPlan, TableScan
from engine.plan.snapshots import Selected
from engine.runtime.counters import Counters
from engine.spec.manifest import EntryStatus, ManifestContent
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import Snapshot


def plan_appends(scan: TableScan, *, after: int | None, until: int | None = None) -> ScanPlan:
    """The data files that appends added, oldest snapshot first, which may hold rows that match the scan's filter.

    Args:
        scan: Gives table, filter, columns and what to plan with.
        after: The last snapshot that the consumer has seen; None for everything since the table was made.
        until: The last snapshot of the increment; None for the scan's own.

    Raises:
        NotFound: No such snapshot, or part of the history between the two was expired.
        Invalid: `after` is not an ancestor of the last snapshot.
    """
    last = scan.snapshot if until is None else scan.metadata.snapshot(until)
    ranged = replace(scan, selected=Selected(last, scan.schema))
    counters = Counters()
    planner = ranged.planner(counters)
    manifests = [
        manifest
        for snapshot in snapshots_between(scan.metadata, after, last)
        if snapshot.operation == "append"
        for manifest in planner.source.manifests_of(snapshot)
        if manifest.content == ManifestContent.DATA and manifest.added_snapshot_id == snapshot.snapshot_id
    ]
    return ranged.assembled(planner.plan_data(planner.select(manifests), [], admits=added_by_own_snapshot), counters)


def snapshots_between(metadata: TableMetadata, after: int | None, last: Snapshot | None) -> list[Snapshot]:
    """The snapshots after `after` up to `last`, oldest first; errors as `plan_appends`."""
    found: list[Snapshot] = []
    current = last
    while current is not None and current.snapshot_id != after:
        found.append(current)
        parent = current.parent_snapshot_id
        if parent is not None and parent not in metadata.snapshot_by_id:
            raise NotFound(f"snapshot {parent}, between {after} and {found[0].snapshot_id}, was expired")
        current = None if parent is None else metadata.snapshot_by_id[parent]
    if after is not None and current is None:
        metadata.snapshot(after)
        raise Invalid(f"snapshot {after} is not an ancestor of {None if last is None else last.snapshot_id}")
    return found[::-1]


def added_by_own_snapshot(entries: LiveEntries) -> LiveEntries:
    """The entries that the snapshot of their own manifest added."""
    added = entries.columns.status.values[entries.rows] == EntryStatus.ADDED
    return entries.take(np.flatnonzero(added & (entries.snapshot_id == entries.manifest.added_snapshot_id)))
