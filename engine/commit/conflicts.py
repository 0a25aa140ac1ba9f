"""Checks whether concurrent commits make a change wrong (spec: "Commit Conflict Resolution and Retry").

Each snapshot since the change was prepared is inspected by the manifests that it added, so a later rewrite of manifests
cannot hide its changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.file_refs import FileRef
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.commit.new_files import find_live, hashes_of
from icebench.engine.commit.removal import may_list
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import Invalid, Unsupported, ValidationFailed
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.expressions.predicate import Predicate
from icebench.engine.plan.manifests import LiveEntries, ManifestSource
from icebench.engine.plan.planner import Planner
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.locations import parts, same_place
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID
from icebench.engine.spec.partitioning import partition_key
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What must not have happened since the change was prepared.

    Args:
        starting_snapshot_id: The snapshot that the change was prepared from; None: the branch was empty.
        referenced: The data files that position deletes point into or that are rewritten, all of which must still be
            in the table.
        added_rows: No data file may have been added whose rows this filter may be true for: with it the isolation is
            serializable. None leaves them alone (snapshot isolation).
        schema: The schema that `added_rows` was meant for: its columns must still be there, by the same names. None:
            that of the table as it is.
        listed: Those of them of which it is not known that the branch had them when the change was prepared:
            it must have them now.
        refuse_deletes: Whether another commit's new deletes on `referenced` are a conflict: all of them (updates,
            rewritten files), those by position (rewritten files that keep their data sequence number, so that equality
            deletes still apply; deletion vectors), or none (two position deletes of the same row agree).
        own_snapshot_ids: Snapshots of the same transaction, which the change was prepared on top of.
    """

    starting_snapshot_id: int | None
    referenced: Sequence[FileRef] = ()
    added_rows: Predicate | None = None
    schema: Schema | None = None
    listed: Sequence[FileRef] = ()
    refuse_deletes: Literal["all", "positions", "none"] = "none"
    own_snapshot_ids: frozenset[int] = frozenset()

    def check(self, base: TableMetadata, head: Snapshot | None, staging: Staging) -> None:
        """Raise ValidationFailed if a concurrent commit conflicts.

        Args:
            base: The table as it is now.
            head: The newest snapshot of the branch.
            staging: Storage and threads.
        """
        since = snapshots_since(base, head, self.starting_snapshot_id)
        newer = [snapshot for snapshot in since if snapshot.snapshot_id not in self.own_snapshot_ids]
        check_still_there(newer, self.referenced, staging.store)
        check_listed(head, self.listed, base, staging)
        if self.added_rows is not None:
            bound = _bound_again(self.added_rows, self.schema, base.schema)
            check_nothing_added(newer, bound, base, staging)
        if self.refuse_deletes != "none":
            check_no_new_deletes(
                newer, self.referenced, base, staging.store, only_positions=self.refuse_deletes == "positions"
            )


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


def check_still_there(newer: Sequence[Snapshot], referenced: Sequence[FileRef], store: Store) -> None:
    """Raise ValidationFailed if one of the data files was removed."""
    if not referenced:
        return
    places = Places(referenced)
    for snapshot in newer:
        for file in changed_files(snapshot, store, ManifestContent.DATA, EntryStatus.DELETED):
            if file.file_path in places:
                raise ValidationFailed(
                    f"data file {file.file_path} was removed by snapshot {snapshot.snapshot_id} ({snapshot.operation}) "
                    "after the change was prepared; run the operation again"
                )


def check_listed(head: Snapshot | None, referenced: Sequence[FileRef], base: TableMetadata, staging: Staging) -> None:
    """Raise ValidationFailed if the newest snapshot of the branch does not list one of the data files."""
    if not referenced:
        return
    missing, places = {file.file_path for file in referenced}, Places(referenced)
    wanted = hashes_of(missing)

    def find(manifest: ManifestFile) -> list[tuple[int, str]]:
        return list(find_live(manifest.manifest_path, ManifestContent.DATA, wanted, staging, manifest))

    data = [each for each in load_manifests(head, staging.store) if each.content is ManifestContent.DATA]
    for found in staging.runner.map(find, may_list(data, referenced, base)):
        for _, location in found:
            missing.difference_update(places.at(location))
        if not missing:
            return
    raise ValidationFailed(f"the table has no data file {min(missing)}, which position deletes refer to")


def check_nothing_added(
    newer: Sequence[Snapshot], filter: BoundPredicate, base: TableMetadata, staging: Staging
) -> None:
    """Raise ValidationFailed if a data file was added that may have rows for which the filter is true."""
    planner = Planner(
        metadata=base,
        schema=base.schema,
        bound=filter,
        source=ManifestSource(store=staging.store, runner=staging.runner),
        counters=Counters(),
    )
    for snapshot in newer:
        # A replacement has the same rows in other files.
        if snapshot.operation == "replace":
            continue
        manifests = list(_own_manifests(snapshot, staging.store, ManifestContent.DATA, EntryStatus.ADDED))
        planned = planner.plan_data(manifests, [], admits=_added)
        if planned.data:
            raise ValidationFailed(
                f"snapshot {snapshot.snapshot_id} added {_first_path(planned.data[0].entries)}, which may hold rows "
                "that this change was meant for; run the operation again, or use snapshot isolation"
            )


def check_no_new_deletes(
    newer: Sequence[Snapshot],
    referenced: Sequence[FileRef],
    base: TableMetadata,
    store: Store,
    *,
    only_positions: bool = False,
) -> None:
    """Raise ValidationFailed if another commit may have deleted rows of the data files.

    Args:
        newer: The snapshots to check.
        referenced: The data files.
        base: The table as it is now.
        store: The table's storage.
        only_positions: Ignore equality deletes.
    """
    if not referenced:
        return
    places = Places(referenced)
    scopes = {each.scope for each in referenced}
    # A file of unknown partition may be in any.
    anywhere = None in scopes
    for snapshot in newer:
        for file in changed_files(snapshot, store, ManifestContent.DELETES, EntryStatus.ADDED):
            if only_positions and file.content is FileContent.EQUALITY_DELETES:
                continue
            only = _only_data_file(file)
            if only is not None:
                applies = only in places
            else:
                applies = anywhere or _is_global(file, base) or partition_key(file.spec_id, file.partition) in scopes
            if applies:
                raise ValidationFailed(
                    f"snapshot {snapshot.snapshot_id} added {file.file_path}, which may delete rows that this change "
                    "also changes; run the operation again"
                )


def _bound_again(filter: Predicate, prepared: Schema | None, now: Schema) -> BoundPredicate:
    """The filter over the columns that it was meant for; raises ValidationFailed where their names are not theirs any
    more: the same filter would find other rows by now, or none."""
    again = "after the change was prepared; run the operation again"
    try:
        bound = bind(filter, now)
    except (Invalid, Unsupported) as error:
        if prepared is None or prepared.fields == now.fields:
            raise
        raise ValidationFailed(f"another commit changed a column of the filter, {error}, {again}") from error
    if prepared is not None:
        for field_id in sorted(bound.field_ids):
            if prepared.name_of.get(field_id) != now.name_of[field_id]:
                raise ValidationFailed(f"another commit gave {now.name_of[field_id]!r} to another column {again}")
    return bound


class Places:
    """A set of files, in any spelling of their locations."""

    def __init__(self, files: Sequence[FileRef]) -> None:
        self._by_path: dict[str, list[str]] = {}
        for file in files:
            self._by_path.setdefault(parts(file.file_path)[2], []).append(file.file_path)

    def __contains__(self, location: str) -> bool:
        return bool(self.at(location))

    def at(self, location: str) -> list[str]:
        """Those that are at a location, as they are spelled here."""
        return [own for own in self._by_path.get(parts(location)[2], ()) if same_place(location, own)]


def _only_data_file(deletes: DataFile) -> str | None:
    """The only data file that position deletes refer to, if they name it."""
    if deletes.content is not FileContent.POSITION_DELETES:
        return None
    if deletes.referenced_data_file is not None:
        return deletes.referenced_data_file
    lower, upper = deletes.lower_bounds.get(DELETE_FILE_PATH_ID), deletes.upper_bounds.get(DELETE_FILE_PATH_ID)
    return lower.decode() if lower is not None and lower == upper else None


def _is_global(deletes: DataFile, metadata: TableMetadata) -> bool:
    """Whether a delete file applies to data files of any partition."""
    spec = metadata.spec_by_id.get(deletes.spec_id)
    return deletes.content is FileContent.EQUALITY_DELETES and (spec is None or spec.has_global_deletes)


def _added(entries: LiveEntries) -> LiveEntries:
    """The entries that the snapshot of their own manifest added."""
    added = entries.columns.numbers("status")[entries.rows] == EntryStatus.ADDED
    return entries.take(np.flatnonzero(added & (entries.snapshot_id == entries.manifest.added_snapshot_id)))


def _first_path(entries: LiveEntries) -> str:
    return str(entries.columns["file_path"][int(entries.rows[0])].as_py(), "utf-8")


def _own_manifests(
    snapshot: Snapshot, store: Store, content: ManifestContent, status: EntryStatus
) -> Iterator[ManifestFile]:
    """The manifests that this snapshot wrote, if they may have entries of that status."""
    for manifest in load_manifests(snapshot, store):
        count = manifest.deleted_files_count if status is EntryStatus.DELETED else manifest.added_files_count
        if manifest.content is content and manifest.added_snapshot_id == snapshot.snapshot_id and count != 0:
            yield manifest


def changed_files(
    snapshot: Snapshot, store: Store, content: ManifestContent, status: EntryStatus
) -> Iterator[DataFile]:
    """Files that this snapshot added or removed."""
    for manifest in _own_manifests(snapshot, store, content, status):
        data = store.read(manifest.manifest_path)
        for entry in decode_entries(data, location=manifest.manifest_path, listed=manifest, report=store.report):
            own = entry.snapshot_id is None or entry.snapshot_id == snapshot.snapshot_id
            if entry.status is status and own:
                yield entry.data_file
