"""Appending rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.commit.changes.merge_append import MergeAppend
from engine.commit.committer import TableState
from engine.operations.target import Target
from engine.spec.data_file import DataFile
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import MAIN, Snapshot

Prepare = Callable[[TableMetadata], list[DataFile]]
"""Writes rows as data files of a table; leaves nothing behind when it fails."""


def append(
    target: Target,
    prepare: Prepare,
    *,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
    is_visible: bool = True,
) -> tuple[TableState, Snapshot]:
    """Write rows as new data files and commit them in one snapshot .

    Manifests are read only when there are so many that they are merged; see `engine.commit.changes.merge_append`.

    Args:
        target: The table.
        prepare: Writes the rows, once, for the table as it is now; commits that come in between do not matter.
        branch: Where to; made when it does not exist.
        properties: Entries for the snapshot summary.
        is_visible: False leaves the branch where it is: the snapshot waits to be published.

    Returns:
        The table with the rows, and the snapshot that brought them.

    Raises:
        Invalid: The rows do not fit the table, or `branch` is a tag.
        CommitFailed: See `Target.commit`; without `CommitStateUnknown` the written files are gone.
        StorageFailed: The storage refused.
    """
    state = target.load()
    files = prepare(state.metadata)
    change = MergeAppend(data_files=files, branch=branch, properties=properties or {}, is_visible=is_visible)
    committed = target.commit([change], files)
    return committed, committed.metadata.snapshot(change.added_snapshot_id)
