"""Adding files that were written elsewhere, by their descriptions alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.commit.changes.append import Append
from engine.commit.changes.row_delta import RowDelta
from engine.commit.committer import TableState
from engine.commit.conflicts import Validation
from engine.commit.file_changes import FileChanges
from engine.commit.file_refs import FileRef
from engine.errors import Invalid, Unsupported
from engine.operations.target import Target
from engine.spec.data_file import DataFile, FileContent
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import MAIN, Snapshot


def add_files(
    target: Target, files: Sequence[DataFile], *, branch: str = MAIN, properties: Mapping[str, str] | None = None
) -> tuple[TableState, Snapshot]:
    """Commit data and delete files in one snapshot. No file is opened, checked or, if the commit fails, deleted.

    Args:
        target: The table.
        files: At least one; what they say of themselves is written into manifests as it is.
        branch: Where to; made when it does not exist.
        properties: Entries for the snapshot summary.

    Returns:
        The table with the files, and the snapshot that brought them.

    Raises:
        Invalid: No files, or a description does not fit the table.
        Unsupported: A position-delete file that does not name its one data file.
        ValidationFailed: A data file that position deletes point into was removed meanwhile.
        CommitFailed: See `Target.commit`.
    """
    if not files:
        raise Invalid("no files to add")
    state = target.load()
    data = [file for file in files if file.content is FileContent.DATA]
    deletes = [file for file in files if file.content is not FileContent.DATA]
    change: FileChanges
    if deletes:
        validation = _validation(deletes, state.metadata, branch)
        change = RowDelta(
            data_files=data, delete_files=deletes, validation=validation, branch=branch, properties=properties or {}
        )
    else:
        change = Append(data_files=data, branch=branch, properties=properties or {})
    committed = target.commit([change])
    return committed, committed.metadata.snapshot(change.added_snapshot_id)


def _validation(deletes: Sequence[DataFile], metadata: TableMetadata, branch: str) -> Validation | None:
    """Data files that position deletes point into must stay; None for equality deletes, which are right on any base."""
    referenced = []
    for file in deletes:
        if file.content is FileContent.POSITION_DELETES:
            if file.referenced_data_file is None:
                raise Unsupported(f"{file.file_path}: adding position deletes that do not name their one data file")
            referenced.append(
                FileRef(file_path=file.referenced_data_file, spec_id=file.spec_id, partition=file.partition)
            )
    if not referenced:
        return None
    ref = metadata.refs.get(branch)
    head = metadata.current_snapshot if ref is None else metadata.snapshot(ref.snapshot_id)
    return Validation(starting_snapshot_id=None if head is None else head.snapshot_id, referenced=referenced)
