"""Appends rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from icebench.engine.commit.changes.evolution import UpdateSchema
from icebench.engine.commit.changes.merge_append import MergeAppend
from icebench.engine.commit.changes.stream_batch import BatchExists, SetLastBatch, StreamBatch
from icebench.engine.commit.committed_batches import check_batch_id, has_batch, is_unknown
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.commit.written_for import WrittenFor
from icebench.engine.errors import Invalid
from icebench.engine.operations.staged_table import StagedTarget
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import ACCEPT_ANY_SCHEMA
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN, Snapshot

Prepare = Callable[[TableMetadata], Sequence[DataFile]]
"""Writes rows as data files of a table; leaves no files if it fails."""


def append(
    target: Target,
    prepare: Prepare,
    *,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
    is_visible: bool = True,
) -> tuple[TableState, Snapshot]:
    """Write rows as new data files and commit them in one snapshot.

    Manifests are read only when there are enough of them to be merged; see
    `icebench.engine.commit.changes.merge_append`.

    Args:
        target: The table.
        prepare: Writes the rows, once, for the current table.
        branch: The branch to change, created if it does not exist.
        properties: Entries for the snapshot summary.
        is_visible: False leaves the branch unchanged: the snapshot waits for publication.

    Returns:
        The table with the rows, and the snapshot that added them.

    Raises:
        Invalid: The rows do not fit the table, or `branch` is a tag.
        ValidationFailed: Another commit replaced the table, or a column, by what the rows do not fit.
        CommitFailed: See `Target.commit`; except for `CommitStateUnknown`, the written files are deleted.
        StorageFailed: The storage refused.
    """
    state = target.load()
    files = prepare(state.metadata)
    change = MergeAppend(
        data_files=files,
        branch=branch,
        properties=properties or {},
        is_visible=is_visible,
        written_for=WrittenFor(schema=state.metadata.schema),
    )
    committed = target.commit([change], files)
    return committed, change.snapshot_in(committed.metadata)


def append_batch(
    target: Target,
    prepare: Prepare,
    *,
    stream_id: str,
    batch_id: int,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableState, Snapshot | None]:
    """Append a numbered batch of a stream, unless the branch already has it or a later one of the stream.

    Every commit attempt looks up again which batches the branch has, so that a batch is also found if the answer to its
    commit was lost, or after its snapshot expired; see `icebench.engine.commit.committed_batches`.

    Args:
        target: The table.
        prepare: Writes the rows; not called for a batch that the branch has.
        stream_id: Identifies the stream across restarts of its writer.
        batch_id: The batch's number, greater than those before.
        branch: The branch to change.
        properties: Entries for the snapshot summary.

    Returns:
        The table, and the snapshot; None where there was nothing to commit.

    Raises:
        Invalid: The number is negative, or has more than 19 digits.
        ValidationFailed: Whether the branch has the batch is unknown; or as `append`.
        CommitFailed: As `append`.
    """
    check_batch_id(batch_id)
    state = target.load()
    if has_batch(state.metadata, branch, stream_id, batch_id, target.store):
        return state, None
    files = prepare(state.metadata)
    if not files:
        return note_empty_batch(target, state, stream_id, batch_id, branch), None
    change = StreamBatch(
        data_files=files,
        branch=branch,
        properties=dict(properties or {}),
        stream_id=stream_id,
        batch_id=batch_id,
        written_for=WrittenFor(schema=state.metadata.schema),
    )
    try:
        committed = target.commit([change], files)
    except BatchExists:
        return target.load(), None
    return committed, change.snapshot_in(committed.metadata)


def note_empty_batch(target: Target, state: TableState, stream_id: str, batch_id: int, branch: str) -> TableState:
    """Record a batch without rows where the next one could not be distinguished from one that was committed before the
    branch's history was expired; returns the table."""
    if not is_unknown(state.metadata, branch, stream_id):
        return state
    return target.commit([SetLastBatch(stream_id=stream_id, batch_id=batch_id, branch=branch)])


def append_merging(
    target: Target,
    prepare: Prepare,
    incoming: Schema,
    *,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableState, Snapshot]:
    """Append rows and, in the same commit, add their new columns to the schema (see `SchemaUpdate.union_by_name`).

    If it fails in a transaction, neither is part of it.

    Args:
        target: The table.
        prepare: Writes the rows for the table as it is with the new columns.
        incoming: The columns of the rows; their ids do not matter.
        branch: The branch to change.
        properties: Entries for the snapshot summary.

    Returns:
        The table with the columns and the rows, and the snapshot that added the rows.

    Raises:
        Invalid: ``write.spark.accept-any-schema`` is not set, or a column's type cannot become the other's.
        ValidationFailed: Another commit changed the schema concurrently.
        CommitFailed: As `append`.
    """
    if not ACCEPT_ANY_SCHEMA.of(target.load().metadata.properties):
        raise Invalid(f"merging schemas needs table property {ACCEPT_ANY_SCHEMA.name}=true")
    staged = target if isinstance(target, StagedTarget) else StagedTarget.of(target)
    try:
        with staged.as_one():
            staged.commit([UpdateSchema(lambda update: update.union_by_name(incoming))])
            state, snapshot = append(staged, prepare, branch=branch, properties=properties)
    except BaseException:
        if staged is not target:
            staged.abandon()
        raise
    if staged is target:
        return state, snapshot
    committed = staged.finish()
    return committed, committed.metadata.snapshot_by_id.get(snapshot.snapshot_id, snapshot)
