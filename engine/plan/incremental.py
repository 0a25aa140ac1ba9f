"""Incremental scans: the data files that appends added between two snapshots.

Only snapshots of operation ``append`` count: rewrites add no new rows, and overwrites and deletes are not appends. Rows
that were deleted later are included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from icebench.engine.errors import Invalid, NotFound
from icebench.engine.plan.manifests import LiveEntries
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.plan.snapshots import Selected
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.manifest import EntryStatus, ManifestContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot, check_snapshot_ids


@dataclass(frozen=True, kw_only=True)
class IncrementalAppendScan(TableScan):
    """A scan of the rows that the appends in `span` added; created by `incremental_append_scan`.

    Args:
        span: Snapshots in a line, oldest first.
    """

    span: tuple[Snapshot, ...] = ()

    def plan(self) -> ScanPlan:
        """Plan the data files with matching rows that appends added, oldest snapshot first; none has deletes.

        Raises:
            As `TableScan.plan`.
        """
        _ = self.projection  # reports a wrong column before any file is read
        return planned_appends(self, [snapshot for snapshot in self.span if snapshot.operation == "append"])


def incremental_append_scan(
    scan: TableScan,
    *,
    from_snapshot_id: int | None,
    from_inclusive: bool = False,
    to_snapshot_id: int | None = None,
) -> IncrementalAppendScan:
    """A scan of what appends added.

    Args:
        scan: Gives table, filter, columns and what to plan with.
        from_snapshot_id: The last snapshot that the consumer has seen; None for everything since the table was created.
        from_inclusive: Whether that snapshot is the first of the increment instead.
        to_snapshot_id: The last snapshot of the increment; None for the scan's own.

    Raises:
        NotFound: No such snapshot, or part of the history between the two was expired.
        Invalid: The first is not an ancestor of the last.
    """
    last = scan.snapshot if to_snapshot_id is None else scan.metadata.snapshot(to_snapshot_id)
    own = {field.name: getattr(scan, field.name) for field in fields(TableScan)}
    own["selected"] = Selected(last, scan.schema)
    span = snapshots_between(scan.metadata, from_snapshot_id, last, inclusive=from_inclusive)
    return IncrementalAppendScan(**own, span=tuple(span))


def planned_appends(scan: TableScan, snapshots: Sequence[Snapshot]) -> ScanPlan:
    """Plan the data files that these snapshots added, in order, as filtered by the scan."""
    counters = Counters()
    planner = scan.planner(counters)
    manifests = [
        manifest
        for snapshot in snapshots
        for manifest in planner.source.manifests_of(snapshot)
        if manifest.content == ManifestContent.DATA and manifest.added_snapshot_id == snapshot.snapshot_id
    ]
    return scan.assembled(planner.plan_data(planner.select(manifests), [], admits=added_by_own_snapshot), counters)


def snapshots_between(
    metadata: TableMetadata, first: int | None, last: Snapshot | None, *, inclusive: bool = False
) -> list[Snapshot]:
    """The snapshots after `first` (from it, if inclusive) up to `last`, oldest first; the whole line for None.

    An exclusive start may itself be expired, as long as everything after it is there.

    Raises:
        NotFound: No such snapshot, or part of the line was expired.
        Invalid: `first` is not an ancestor of `last`.
        Unsupported: See `icebench.engine.spec.snapshots.check_snapshot_ids`.
    """
    found = _line(metadata, first, last, inclusive=inclusive)
    check_snapshot_ids(found, "what was added in a line")
    return found


def _line(metadata: TableMetadata, first: int | None, last: Snapshot | None, *, inclusive: bool) -> list[Snapshot]:
    found: list[Snapshot] = []
    current = last
    while current is not None:
        if current.snapshot_id == first and not inclusive:
            return found[::-1]
        found.append(current)
        parent = current.parent_snapshot_id
        if (current.snapshot_id == first) or (parent is not None and parent == first and not inclusive):
            return found[::-1]
        if parent is not None and parent not in metadata.snapshot_by_id:
            start = "the first one" if first is None else f"snapshot {first}"
            raise NotFound(
                f"snapshot {parent}, between {start} and {found[0].snapshot_id}, was expired; the oldest that is left "
                f"of this line is {current.snapshot_id}"
            )
        current = None if parent is None else metadata.snapshot_by_id[parent]
    if first is not None:
        metadata.snapshot(first)
        raise Invalid(f"snapshot {first} is not an ancestor of {None if last is None else last.snapshot_id}")
    return found[::-1]


def added_by_own_snapshot(entries: LiveEntries) -> LiveEntries:
    """The entries that the snapshot of their own manifest added."""
    added = entries.columns.numbers("status")[entries.rows] == EntryStatus.ADDED
    return entries.take(np.flatnonzero(added & (entries.snapshot_id == entries.manifest.added_snapshot_id)))
