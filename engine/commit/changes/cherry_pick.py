"""Publishes a snapshot that was staged outside the branch (write, audit, publish)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.conflicts import changed_files
from icebench.engine.commit.staged_snapshot import Staged, branch_head, move_branch, requires_ref
from icebench.engine.commit.staging_context import Staging
from icebench.engine.commit.written_for import WrittenFor
from icebench.engine.errors import Invalid, NotFound, Unsupported
from icebench.engine.spec.manifest import EntryStatus, ManifestContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.requirements import AssertTableUuid
from icebench.engine.spec.snapshots import MAIN, Snapshot, SnapshotRef
from icebench.engine.spec.updates import RemoveSnapshotRef, SetSnapshotRef

WAP_ID = "wap.id"
"""Summary entry of a snapshot that waits for publication."""
PUBLISHED_WAP_ID = "published-wap-id"
"""Summary entry of the snapshot that published it."""
SOURCE_SNAPSHOT_ID = "source-snapshot-id"
"""Summary entry of a snapshot with the changes of another one."""


@dataclass(kw_only=True)
class CherryPick:
    """Applies the changes of a snapshot outside main's history to main.

    A snapshot whose parent is main's head becomes main's head. Otherwise a new snapshot adds its files, which is
    possible for appends only.

    Args:
        snapshot_id: The snapshot; None to name it by `wap_id`.
        wap_id: The ``wap.id`` in the snapshot's summary.
    """

    snapshot_id: int | None = None
    wap_id: str | None = None
    _appends: dict[int, Append] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if (self.snapshot_id is None) == (self.wap_id is None):
            raise Invalid("name the snapshot to publish by its id or by its wap.id, one of them")

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `icebench.engine.commit.changes.change.Change`.

        Raises:
            NotFound: No such snapshot.
            Invalid: It is already in main's history, itself or under another id.
            Unsupported: It is not an append, and main has moved on.
        """
        picked = self._find_picked(base)
        head = branch_head(base, MAIN)
        _check_new(base, head, picked)
        if (None if head is None else head.snapshot_id) == picked.parent_snapshot_id:
            return Staged(
                requirements=(AssertTableUuid(base.table_uuid), requires_ref(base, MAIN)),
                updates=(move_branch(base, MAIN, picked.snapshot_id),),
            )
        if picked.operation != "append":
            raise Unsupported(
                f"cherry-picking snapshot {picked.snapshot_id} ({picked.operation}): main has moved on since, and only "
                "appends can be brought to another state of the table"
            )
        # A `wap_id` may refer to another snapshot at the next attempt.
        if picked.snapshot_id not in self._appends:
            files = list(changed_files(picked, staging.store, ManifestContent.DATA, EntryStatus.ADDED))
            properties = {SOURCE_SNAPSHOT_ID: str(picked.snapshot_id)}
            if WAP_ID in picked.summary:
                properties[PUBLISHED_WAP_ID] = picked.summary[WAP_ID]
            schema = None if picked.schema_id is None else base.schema_by_id.get(picked.schema_id)
            # Unlike a change that can be made again, it goes without the values of dropped columns.
            written_for = None if schema is None else WrittenFor(schema=schema, may_lose_columns=True)
            self._appends[picked.snapshot_id] = Append(data_files=files, properties=properties, written_for=written_for)
        staged = self._appends[picked.snapshot_id].stage(base, staging)
        # No requirement asserts that the picked snapshot still exists, and its files with it; putting a tag on it does.
        pin = f"cherry-pick-{picked.snapshot_id}-{self._appends[picked.snapshot_id].added_snapshot_id}"
        tag = SetSnapshotRef(pin, SnapshotRef(snapshot_id=picked.snapshot_id, type="tag"))
        return replace(staged, updates=(tag, *staged.updates, RemoveSnapshotRef(pin)))

    def _find_picked(self, base: TableMetadata) -> Snapshot:
        if self.snapshot_id is not None:
            return base.snapshot(self.snapshot_id)
        found = [s for s in base.snapshots if s.summary.get(WAP_ID) == self.wap_id]
        if not found:
            raise NotFound(f"no snapshot has {WAP_ID} {self.wap_id!r}")
        if len(found) > 1:
            raise Invalid(f"{len(found)} snapshots have {WAP_ID} {self.wap_id!r}; cherry-pick one by its id")
        return found[0]


def _check_new(base: TableMetadata, head: Snapshot | None, picked: Snapshot) -> None:
    wap_id = picked.summary.get(WAP_ID)
    oldest = None
    for snapshot_id in base.ancestors(None if head is None else head.snapshot_id):
        oldest = base.snapshot(snapshot_id)
        summary = oldest.summary
        if snapshot_id == picked.snapshot_id or summary.get(SOURCE_SNAPSHOT_ID) == str(picked.snapshot_id):
            raise Invalid(f"snapshot {picked.snapshot_id} is in main already, as snapshot {snapshot_id}")
        if wap_id is not None and wap_id in (summary.get(WAP_ID), summary.get(PUBLISHED_WAP_ID)):
            raise Invalid(f"{WAP_ID} {wap_id!r} was published already, by snapshot {snapshot_id}")
    expired = None if oldest is None else oldest.parent_snapshot_id
    # What was made on the expired snapshot is younger than that, and so would be a copy of it.
    if oldest is not None and expired not in (None, picked.parent_snapshot_id) and _age(picked) <= _age(oldest):
        raise Invalid(
            f"whether snapshot {picked.snapshot_id} is in main already is not known: it is older than snapshot "
            f"{oldest.snapshot_id}, before which main's history was expired"
        )


def _age(snapshot: Snapshot) -> tuple[int, int]:
    """Orders snapshots by when they were made; in format version 1 by the clock alone."""
    return snapshot.sequence_number, snapshot.timestamp_ms
