"""Whether commits that came in between make a change wrong (spec: "Commit Conflict Resolution and Retry").

Each snapshot since the change was prepared is looked at in its own manifests, those that it added: a later rewrite of
manifests cannot hide what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from engine.codec.manifest import decode_entries
from engine.commit.manifests import load_manifests
from engine.errors import ValidationFailed
from engine.spec.data_file import DataFile, FileContent
from engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import Snapshot
from engine.spec.values import Value
from engine.storage.store import Store

DELETE_FILE_PATH_ID = 2147483546
"""Field id of the ``file_path`` column of position-delete files (spec: "Reserved Field IDs")."""


def snapshots_since(metadata: TableMetadata, head: Snapshot | None, start: int | None) -> list[Snapshot]:
    """The snapshots after `start` up to `head`, oldest first.

    Args:
        metadata: The table.
        head: The newest snapshot of the branch; None for an empty branch.
        start: A snapshot id, or None for all of the branch.

    Raises:
        ValidationFailed: `start` is not an ancestor of `head`: the branch was rolled back or the history expired, so
            what happened since cannot be known.
    """
    newer: list[Snapshot] = []
    current = head
    while current is not None and current.snapshot_id != start:
        newer.append(current)
        parent = current.parent_snapshot_id
        current = None if parent is None else metadata.snapshot_by_id.get(parent)
        if parent is not None and current is None:
            raise ValidationFailed(f"the history since snapshot {start} is incomplete: snapshot {parent} was expired")
    if start is not None and current is None:
        raise ValidationFailed(f"snapshot {start}, from which the change was prepared, is no longer in the branch")
    return newer[::-1]


def check_still_there(newer: Sequence[Snapshot], referenced: Sequence[DataFile], store: Store) -> None:
    """Raise ValidationFailed where one of the data files was removed."""
    paths = {file.file_path for file in referenced}
    if not paths:
        return
    for snapshot in newer:
        for file in _changed(snapshot, store, ManifestContent.DATA, EntryStatus.DELETED):
            if file.file_path in paths:
                raise ValidationFailed(
                    f"data file {file.file_path} was removed by snapshot {snapshot.snapshot_id} ({snapshot.operation}) "
                    "after the change was prepared; run the operation again"
                )


def check_nothing_added(newer: Sequence[Snapshot], may_match: Callable[[DataFile], bool], store: Store) -> None:
    """Raise ValidationFailed where a data file was added that may hold rows the change was meant for."""
    for snapshot in newer:
        if snapshot.operation == "replace":
            # The same rows in other files.
            continue
        for file in _changed(snapshot, store, ManifestContent.DATA, EntryStatus.ADDED):
            if may_match(file):
                raise ValidationFailed(
                    f"snapshot {snapshot.snapshot_id} added {file.file_path}, which may hold rows that this change was "
                    "meant for; run the operation again, or use snapshot isolation"
                )


def check_no_new_deletes(newer: Sequence[Snapshot], referenced: Sequence[DataFile], store: Store) -> None:
    """Raise ValidationFailed where rows of the data files may have been deleted by another commit."""
    paths = {file.file_path for file in referenced}
    partitions = {(file.spec_id, file.partition) for file in referenced}
    for snapshot in newer:
        for file in _changed(snapshot, store, ManifestContent.DELETES, EntryStatus.ADDED):
            only = _only_data_file(file)
            if only in paths if only is not None else _may_apply(file, partitions):
                raise ValidationFailed(
                    f"snapshot {snapshot.snapshot_id} added {file.file_path}, which may delete rows that this change "
                    "also changes; run the operation again"
                )


def _may_apply(deletes: DataFile, partitions: set[tuple[int, tuple[Value | None, ...]]]) -> bool:
    # An unpartitioned equality delete is global (spec: "Scan Planning").
    is_global = deletes.content is FileContent.EQUALITY_DELETES and not deletes.partition
    return is_global or (deletes.spec_id, deletes.partition) in partitions


def _only_data_file(deletes: DataFile) -> str | None:
    """The one data file that position deletes point into, where they say so."""
    if deletes.content is not FileContent.POSITION_DELETES:
        return None
    if deletes.referenced_data_file is not None:
        return deletes.referenced_data_file
    lower, upper = deletes.lower_bounds.get(DELETE_FILE_PATH_ID), deletes.upper_bounds.get(DELETE_FILE_PATH_ID)
    return lower.decode() if lower is not None and lower == upper else None


def _changed(snapshot: Snapshot, store: Store, content: ManifestContent, status: EntryStatus) -> Iterator[DataFile]:
    """Files that this snapshot itself added or removed."""
    for manifest in load_manifests(snapshot, store):
        if manifest.content is not content or manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        if not _count(manifest, status):
            continue
        for entry in decode_entries(store.read(manifest.manifest_path), location=manifest.manifest_path):
            own = entry.snapshot_id is None or entry.snapshot_id == snapshot.snapshot_id
            if entry.status is status and own:
                yield entry.data_file


def _count(manifest: ManifestFile, status: EntryStatus) -> bool:
    count = manifest.deleted_files_count if status is EntryStatus.DELETED else manifest.added_files_count
    return count != 0
