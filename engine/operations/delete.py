"""Deletes rows by a filter: merge-on-read or copy-on-write (see `icebench.engine.operations.row_changes`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.operations.executor_changes import ExecutorChanges
from icebench.engine.operations.row_changes import Mode, RowChange, chosen_mode
from icebench.engine.plan.scan import TableScan
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import DELETE_ISOLATION, DELETE_MODE
from icebench.engine.spec.snapshots import MAIN, Snapshot

ScanOf = Callable[[TableMetadata], TableScan]
"""Creates the scan of a branch whose filter selects the rows of an operation."""


def delete(
    target: Target,
    scan_of: ScanOf,
    *,
    mode: Mode | None = None,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
    executors: ExecutorChanges | None = None,
) -> tuple[TableState, Snapshot | None]:
    """Delete the rows that a scan's filter is true for, in one snapshot.

    A row for which the filter is null stays. With ``write.delete.isolation-level=serializable`` (the default) the
    commit fails if a concurrent one added rows that the filter may be true for; with ``snapshot`` such rows stay.

    Args:
        target: The table.
        scan_of: Creates the scan of the branch whose filter selects the rows to delete; its columns are ignored.
        mode: How; None means the table property ``write.delete.mode``, ``copy-on-write`` by default.
        branch: The branch to change.
        properties: Entries for the snapshot summary.
        executors: Do the work; None does it in this process.

    Returns:
        The table without the rows, and the snapshot that deleted them; None if no row matched.

    Raises:
        Invalid: No such mode, or the filter does not fit the table.
        Unsupported: The mode is not possible in the table's format version.
        ValidationFailed: A concurrent commit conflicts with this one.
        CommitFailed: See `Target.commit`.
    """
    state = target.load()
    chosen = chosen_mode(mode, state.metadata, DELETE_MODE)
    scan = scan_of(state.metadata)
    change = RowChange.of(
        target, scan, mode=chosen, isolation=DELETE_ISOLATION, branch=branch, properties=properties, executors=executors
    )
    changed = change.changed_by_filter()
    if not changed:
        change.leave()
        return state, None
    return change.commit(changed)
