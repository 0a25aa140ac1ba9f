"""Expires snapshots in the metadata (spec: "Snapshot Retention Policy")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from icebench.engine.commit.committed_batches import entries_to_keep, updates_to_entries
from icebench.engine.commit.staged_snapshot import Staged, requires_ref
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import Invalid
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import GC_ENABLED, MAX_REF_AGE_MS, MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP
from icebench.engine.spec.requirements import AssertTableUuid
from icebench.engine.spec.snapshots import MAIN, SnapshotRef
from icebench.engine.spec.updates import RemoveSnapshotRef, RemoveSnapshots, TableUpdate


@dataclass(kw_only=True)
class ExpireSnapshots:
    """Removes snapshots, and branches and tags that are too old, from the metadata; no file is touched.

    Each attempt decides what expires, from the current table:

    * A branch or tag other than main expires if its snapshot is older than its ``max-ref-age-ms``.
    * Of a kept branch, the newest ``min-snapshots-to-keep`` snapshots are kept, and those before them until the first
      that is older than ``max-snapshot-age-ms``. Of a kept tag, its snapshot is kept.
    * A snapshot in no branch or tag, such as one that waits for publication, expires when it is old.

    The last batches of streams stay known (`icebench.engine.commit.committed_batches`).

    Settings of a branch or tag override those given here, which override the table's properties ``history.expire.*``.

    Args:
        older_than_ms: Snapshots from before this time are old; None means by the table's ``max-snapshot-age-ms``.
        retain_last: The number of snapshots of a branch to keep; None means the table's ``min-snapshots-to-keep``.
        snapshot_ids: Snapshots to expire whatever their age.
    """

    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()
    _expired: frozenset[int] = field(default=frozenset(), init=False)
    _base: TableMetadata | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.retain_last is not None and self.retain_last < 1:
            raise Invalid(f"a branch keeps at least one snapshot, not {self.retain_last}")

    @property
    def base(self) -> TableMetadata:
        """The table before the last attempt."""
        assert self._base is not None
        return self._base

    @property
    def expired(self) -> frozenset[int]:
        """The ids of the snapshots that the last attempt removes."""
        return self._expired

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `icebench.engine.commit.changes.change.Change`.

        Raises:
            Invalid: ``gc.enabled`` is false, or a branch or tag still needs one of `snapshot_ids`.
            NotFound: There is no snapshot of one of `snapshot_ids`.
        """
        if not GC_ENABLED.of(base.properties):
            raise Invalid(f"snapshots may not expire: {GC_ENABLED.name} is false, other tables may need their files")
        now = staging.now_ms()
        refs = self._kept_refs(base, now)
        kept = self._kept_snapshots(base, refs, now)
        for snapshot_id in self.snapshot_ids:
            base.snapshot(snapshot_id)
            needed_by = sorted(name for name, ref in refs.items() if ref.snapshot_id == snapshot_id)
            if needed_by:
                raise Invalid(f"snapshot {snapshot_id} can not expire, {', '.join(needed_by)} points at it")
        self._base = base
        self._expired = frozenset(base.snapshot_by_id.keys() - kept) | self.snapshot_ids
        gone = sorted(base.refs.keys() - refs.keys())
        updates: list[TableUpdate] = [RemoveSnapshotRef(name) for name in gone]
        if self._expired:
            updates.append(RemoveSnapshots(self._expired))
        if not updates:
            return Staged()
        branches = sorted({MAIN, *(name for name, ref in refs.items() if ref.type == "branch")})
        entries = entries_to_keep(base, branches, base.snapshot_by_id.keys() - self._expired, staging.store, now)
        noted, requirements = updates_to_entries(base, entries, now)
        updates += noted
        # A branch that moves to a snapshot which is to go makes this wrong. Other new branches and tags cannot be ruled
        # out by requirements: see `engine.maintenance.expire_snapshots`.
        heads = (requires_ref(base, name) for name in sorted({MAIN, *base.refs}))
        return Staged(requirements=(AssertTableUuid(base.table_uuid), *heads, *requirements), updates=tuple(updates))

    def _kept_refs(self, base: TableMetadata, now: int) -> dict[str, SnapshotRef]:
        default = MAX_REF_AGE_MS.of(base.properties)

        def stays(name: str, ref: SnapshotRef) -> bool:
            snapshot = base.snapshot_by_id.get(ref.snapshot_id)
            limit = default if ref.max_ref_age_ms is None else ref.max_ref_age_ms
            return name == MAIN or (snapshot is not None and now - snapshot.timestamp_ms <= limit)

        return {name: ref for name, ref in base.refs.items() if stays(name, ref)}

    def _kept_snapshots(self, base: TableMetadata, refs: dict[str, SnapshotRef], now: int) -> set[int]:
        oldest = self.older_than_ms
        if oldest is None:
            oldest = now - MAX_SNAPSHOT_AGE_MS.of(base.properties)
        count = self.retain_last or MIN_SNAPSHOTS_TO_KEEP.of(base.properties)
        kept: set[int] = set()
        reached: set[int] = set()
        for ref in refs.values():
            line = list(base.ancestors(ref.snapshot_id)) if ref.type == "branch" else [ref.snapshot_id]
            reached.update(line)
            if ref.type == "tag":
                kept.add(ref.snapshot_id)
                continue
            own_oldest = oldest if ref.max_snapshot_age_ms is None else now - ref.max_snapshot_age_ms
            kept.update(_newest(base, line, ref.min_snapshots_to_keep or count, own_oldest))
        for snapshot in base.snapshots:
            if snapshot.snapshot_id not in reached and snapshot.timestamp_ms >= oldest:
                kept.add(snapshot.snapshot_id)
        return kept


def _newest(base: TableMetadata, line: Iterable[int], count: int, oldest_ms: int) -> set[int]:
    """The newest `count` snapshots of a branch, and those after them up to the first that is too old."""
    kept: set[int] = set()
    for snapshot_id in line:
        if len(kept) >= count and base.snapshot_by_id[snapshot_id].timestamp_ms < oldest_ms:
            break
        kept.add(snapshot_id)
    return kept
