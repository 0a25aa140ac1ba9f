"""Settles the outcome of a commit attempt whose answer was lost, from the table and never by a guess.

The snapshot's id in the table proves the commit. Its absence proves nothing: the snapshot may have expired since, and
later snapshots have its files, perhaps in other manifests. So one of these is required:

* where the catalog names metadata files: the file of the attempt, with its content if names are not unique, or what
  else followed its base;
* from version 2 on, the sequence number of the attempt: no snapshot has taken it yet, or another one has;
* in version 1, the history of the branch, back to where the attempt began, without a gap in which an expired snapshot
  was;
* an entry of the snapshot in a branch or tag: entries keep their snapshot's id when manifests are written again.

A change without a snapshot is looked for in the metadata files since its base: where none of them shows it, it has not
happened. Where one does, it may be another writer's, and what came later may have undone it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.commit.committer import TableState, Unknown
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.commit.staged_snapshot import Staged
from icebench.engine.errors import EngineError, FileNotFound
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.updates import RemoveSnapshotRef, SetSnapshotRef, TableUpdate, apply_updates
from icebench.engine.storage.store import Store

_VOLATILE = frozenset({"last_updated_ms", "metadata_log", "snapshot_log"})
"""Fields of metadata that every commit may change."""


@dataclass(frozen=True, slots=True)
class LostAttempt:
    """An attempt, the table that it was staged on, and what is known of its outcome."""

    staged: Staged
    base: TableState
    answer: Unknown

    def happened(self, state: TableState, store: Store) -> bool | None:
        """Whether the attempt was carried out before the table was loaded; None if unknown.

        Args:
            state: The table, loaded after the attempt.
            store: Its storage; raises StorageFailed and FileNotFound if it is needed and fails.
        """
        if state == self.base:
            return False
        metadata, added = state.metadata, self.staged.snapshot_ids
        if added & metadata.snapshot_by_id.keys():
            return True
        if self.answer.metadata_location is not None:
            history = _history(state)
            if self.answer.metadata_location in history:
                is_own = self._wrote(self.answer.metadata_location, store)
                if is_own is not None:
                    return is_own
            elif self.answer.base_location in history:
                return False
        if not added:
            return None if self.answer.metadata_location is not None else self._is_in_metadata(state, store)
        if _is_absent(self.staged, self.base.metadata, metadata):
            return False
        return True if _has_entries(added, metadata, store) else None

    def _wrote(self, location: str, store: Store) -> bool | None:
        """Whether a metadata file of the table is the attempt's own; None if it is gone and its name does not say."""
        if self.answer.metadata is None:
            return True
        try:
            return store.read(location) == self.answer.metadata
        except FileNotFound:
            return None

    def _is_in_metadata(self, state: TableState, store: Store) -> bool | None:
        """Whether a change without a snapshot is in the table, by the metadata files since its base."""
        files = [*(entry.metadata_file for entry in state.metadata.metadata_log), state.metadata_location]
        if self.base.metadata_location not in files:
            return None
        newer = files[files.index(self.base.metadata_location) + 1 : -1]
        versions = [decode_metadata(store.read(location), location=location) for location in newer]
        if files[-1] != self.base.metadata_location:
            versions.append(state.metadata)
        updates = self.staged.updates
        if not any(_shows(updates, *pair) for pair in pairwise([self.base.metadata, *versions])):
            return False
        if any(isinstance(update, SetSnapshotRef | RemoveSnapshotRef) for update in updates):
            # Whoever makes or removes a branch or tag may rely on being the only one who does.
            return None
        return True if _changed_by(updates, state.metadata) == {} else None

    def is_dead(self, state: TableState) -> bool:
        """Whether an attempt that was not carried out never will be: another file followed the one it compares with."""
        log = {entry.metadata_file for entry in state.metadata.metadata_log}
        return self.answer.metadata_location is not None and self.answer.base_location in log


def _history(state: TableState) -> frozenset[str]:
    return frozenset([state.metadata_location, *(entry.metadata_file for entry in state.metadata.metadata_log)])


def _changed_by(updates: Sequence[TableUpdate], metadata: TableMetadata) -> dict[str, object] | None:
    """The fields of the metadata that updates would change, with their new values; None where they do not fit."""
    try:
        after = apply_updates(metadata, updates, now_ms=metadata.last_updated_ms)
    except EngineError:
        return None
    names = {field.name for field in fields(metadata)} - _VOLATILE
    return {name: getattr(after, name) for name in names if getattr(after, name) != getattr(metadata, name)}


def _shows(updates: Sequence[TableUpdate], before: TableMetadata, after: TableMetadata) -> bool:
    """Whether one version of the metadata may have become the next one by these updates."""
    changed = _changed_by(updates, before)
    if not changed:
        return False
    return all(getattr(after, name) == value for name, value in changed.items())


def _is_absent(staged: Staged, base: TableMetadata, metadata: TableMetadata) -> bool:
    """Whether an attempt that was staged on the base was certainly not carried out; its snapshots are not there."""
    moved = {update.name for update in staged.updates if isinstance(update, SetSnapshotRef)}
    # A snapshot that waits for publication is in no branch, so it may be made again.
    if not moved:
        return True
    first = min(snapshot.sequence_number for snapshot in staged.snapshots)
    if first > 0:
        # The attempt would have taken this number.
        return metadata.last_sequence_number < first or any(s.sequence_number == first for s in metadata.snapshots)
    return any(_goes_back_to(base, metadata, branch) for branch in moved)


def _goes_back_to(base: TableMetadata, metadata: TableMetadata, branch: str) -> bool:
    """Whether the snapshots of a branch that came after the base are all there. In version 1 they have no numbers."""
    ref = metadata.refs.get(branch)
    snapshot_id = None if ref is None else ref.snapshot_id
    while snapshot_id is not None and snapshot_id not in base.snapshot_by_id:
        snapshot = metadata.snapshot_by_id.get(snapshot_id)
        snapshot_id = None if snapshot is None else snapshot.parent_snapshot_id
    return snapshot_id is not None


def _has_entries(snapshot_ids: frozenset[int], metadata: TableMetadata, store: Store) -> bool:
    heads = {ref.snapshot_id for ref in metadata.refs.values()}
    for manifest in {m for head in heads for m in load_manifests(metadata.snapshot(head), store)}:
        data = store.read(manifest.manifest_path)
        found = decode_entries(data, location=manifest.manifest_path, listed=manifest, report=store.report)
        entries = apply_inheritance(found, manifest)
        if any(entry.snapshot_id in snapshot_ids for entry in entries):
            return True
    return False
