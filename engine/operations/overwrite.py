"""Replaces rows: those for which a filter is true, or those of the same partitions."""

from __future__ import annotations

from collections.abc import Mapping

from icebench.engine.commit.changes.replace_partitions import ReplacePartitions
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.staged_snapshot import branch_head
from icebench.engine.commit.target import Target
from icebench.engine.commit.written_for import WrittenFor
from icebench.engine.operations.append import Prepare
from icebench.engine.operations.delete import ScanOf
from icebench.engine.operations.executor_changes import ExecutorChanges
from icebench.engine.operations.row_changes import RowChange
from icebench.engine.spec.properties import DELETE_ISOLATION
from icebench.engine.spec.snapshots import MAIN, Snapshot
from icebench.engine.write.data_files import remove_files


def overwrite(
    target: Target,
    scan_of: ScanOf,
    prepare: Prepare,
    *,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
    executors: ExecutorChanges | None = None,
) -> tuple[TableState, Snapshot | None]:
    """Replace the rows for which a scan's filter is true, in one snapshot.

    Data files whose rows all match are removed without being read; the remaining rows of others are rewritten
    (copy-on-write). With ``write.delete.isolation-level=serializable`` (the default) the commit fails
    if a concurrent one added rows that the filter may be true for.

    Args:
        target: The table.
        scan_of: Creates the scan of the branch whose filter selects the rows to remove; its columns are ignored.
        prepare: Writes the new rows; they need not match the filter.
        branch: The branch to change.
        properties: Entries for the snapshot summary.
        executors: Rewrite the remaining rows; None does so in this process.

    Returns:
        The table, and the snapshot; None if no row was removed or added.

    Raises:
        Invalid: Rows or filter do not fit the table.
        ValidationFailed: A concurrent commit conflicts with this one.
        CommitFailed: See `Target.commit`.
    """
    state = target.load()
    scan = scan_of(state.metadata)
    change = RowChange.of(
        target,
        scan,
        mode="copy-on-write",
        isolation=DELETE_ISOLATION,
        branch=branch,
        properties=properties,
        executors=executors,
    )
    files = prepare(state.metadata)
    try:
        changed = change.changed_by_filter(drop_whole=True)
    except BaseException:
        remove_files(target.store, list(files))
        raise
    if not changed and not files:
        change.leave()
        return state, None
    return change.commit(changed, added=files)


def overwrite_partitions(
    target: Target, prepare: Prepare, *, branch: str = MAIN, properties: Mapping[str, str] | None = None
) -> tuple[TableState, Snapshot | None]:
    """Replace the partitions of the given rows by these rows, in one snapshot (dynamic overwrite).

    In an unpartitioned table all rows are replaced. Files of former partition specs stay. With serializable isolation
    (``write.delete.isolation-level``, the default) the commit fails if a concurrent one added files to the partitions.

    Returns:
        The table, and the snapshot; None for no rows, which replace nothing.

    Raises:
        Invalid: The rows do not fit the table.
        ValidationFailed: See above.
        CommitFailed: See `Target.commit`.
    """
    state = target.load()
    files = prepare(state.metadata)
    if not files:
        return state, None
    head = branch_head(state.metadata, branch)
    serializable = DELETE_ISOLATION.of(state.metadata.properties) == "serializable"
    started = Validation(starting_snapshot_id=None if head is None else head.snapshot_id)
    change = ReplacePartitions(
        data_files=files,
        validation=started if serializable else None,
        written_for=WrittenFor(schema=state.metadata.schema),
        branch=branch,
        properties=dict(properties or {}),
    )
    committed = target.commit([change], files)
    return committed, change.snapshot_in(committed.metadata)
