"""Expires snapshots, and deletes the files that only they needed.

A commit first removes the snapshots from the metadata. Files are deleted only after that commit is known to have
succeeded, and only if nothing in the committed metadata references them; in doubt a file is kept. A crash in between
leaves orphan files, which `remove_orphan_files` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.commit.changes.expire_snapshots import ExpireSnapshots
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.errors import EngineError, FileNotFound, ValidationFailed
from icebench.engine.plan.reachable_files import Reach, SnapshotFiles, statistics_paths
from icebench.engine.runtime.progress import Counted, OnStep
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.updates import apply_updates
from icebench.engine.storage.canonical_paths import CanonicalPaths
from icebench.engine.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class ExpiredSnapshots:
    """The result of an expiry.

    Args:
        snapshot_ids: Expired snapshots.
        refs: Expired branches and tags.
        deleted_data_files: How many data files were deleted; likewise for the next ones.
        deleted_position_delete_files: Position-delete files, and Puffin files with deletion vectors.
        deleted_equality_delete_files: See above.
        deleted_manifests: See above.
        deleted_manifest_lists: See above.
        deleted_statistics_files: See above.
        outside: Locations of files that were kept because they are outside the table's own locations
            (`TableMetadata.own_locations`), such as files from `add_files`.
        not_deleted: Locations of files that storage refused to delete; they are orphan files now.
        error: Why no file was deleted: the remaining snapshots could not be read completely, or a branch or tag was
            created while snapshots expired, in a catalog that could reject neither of the two.
    """

    snapshot_ids: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()
    deleted_data_files: int = 0
    deleted_position_delete_files: int = 0
    deleted_equality_delete_files: int = 0
    deleted_manifests: int = 0
    deleted_manifest_lists: int = 0
    deleted_statistics_files: int = 0
    outside: tuple[str, ...] = ()
    not_deleted: tuple[str, ...] = ()
    error: EngineError | None = None


def commit_expiry(table: Target, change: ExpireSnapshots) -> TableState:
    """Expire snapshots in the metadata; returns the unchanged table if there are none.

    Raises:
        CommitFailed: See `Target.commit`; after `CommitStateUnknown` no file may be deleted.
        Invalid, NotFound: See `ExpireSnapshots.stage`.
    """
    state = table.load()
    if not change.stage(state.metadata, table.staging()).updates:
        return state
    return table.commit([change])


def preview_expiry(table: Target, change: ExpireSnapshots) -> ExpiredSnapshots:
    """Return the snapshots that an expiry would remove, without removing them. Raises as `commit_expiry`."""
    state, staging = table.load(), table.staging()
    updates = change.stage(state.metadata, staging).updates
    after = replace(state, metadata=apply_updates(state.metadata, updates, now_ms=staging.now_ms()))
    return delete_expired(table, change, after, delete_files=False)


def delete_expired(
    table: Target,
    change: ExpireSnapshots,
    state: TableState,
    *,
    delete_files: bool,
    progress: OnStep = lambda _: None,
) -> ExpiredSnapshots:
    """Delete the files that only the expired snapshots referenced.

    Args:
        table: The table.
        change: The expiry, committed.
        state: The table after it.
        delete_files: Whether to delete them; otherwise the result only has the expired snapshots.
        progress: Called after each file.

    The snapshots are expired whatever happens here, so this raises nothing but what `progress` does.
    """
    before, now = change.base, state.metadata
    gone = [before.snapshot(i) for i in sorted(change.expired) if i not in now.snapshot_by_id]
    refs = tuple(sorted(before.refs.keys() - now.refs.keys()))
    result = ExpiredSnapshots(snapshot_ids=tuple(each.snapshot_id for each in gone), refs=refs)
    if not gone or not delete_files:
        return result
    canonical = CanonicalPaths(now.location)
    try:
        _check_references(table, change, now, gone)
        files = Reach(store=table.store, runner=table.runner, canonical=canonical).only_of(gone, now.snapshots)
    except EngineError as error:
        return replace(result, error=error)
    kept_statistics = statistics_paths(now, canonical)
    statistics = {at: path for at, path in statistics_paths(before, canonical).items() if at not in kept_statistics}
    groups = [*files, statistics]
    outside = [each for group in groups for each in group.values() if not canonical.is_inside(each, now.own_locations)]
    result = replace(result, outside=tuple(sorted(outside)))
    steps = _Steps(sum(map(len, groups)) - len(outside), progress)
    return _deleted(table, files, statistics, result, steps)


def _check_references(table: Target, change: ExpireSnapshots, now: TableMetadata, gone: Sequence[Snapshot]) -> None:
    """Raise if a branch or tag created concurrently with the expiry may have referenced an expired snapshot.

    A REST catalog applies the change to whatever metadata is current. No requirement of the protocol excludes a new
    reference, which the catalog then drops together with its snapshot. Other processes may have expired some of the
    snapshots before, and likewise dropped their references. So the metadata log is read back to the newest entry that
    still has all of the snapshots, which is no older than the base of the change.

    Raises:
        ValidationFailed: There was such a reference, or that entry is not in the log.
        FileNotFound, CorruptTable, StorageFailed: Former metadata cannot be read.
    """
    ids = {snapshot.snapshot_id for snapshot in gone}
    for entry in reversed(now.metadata_log):
        location = entry.metadata_file
        former = decode_metadata(table.store.read(location), location=location)
        left = ids & former.snapshot_by_id.keys()
        if not left:
            continue
        unknown = sorted(name for name, ref in former.refs.items() if change.base.refs.get(name) != ref)
        if unknown:
            raise ValidationFailed(
                f"{', '.join(unknown)} changed while snapshots expired, and the catalog may have dropped it with its "
                f"snapshot: no file was deleted, and {location} is the table as it was before"
            )
        if left == ids:
            return
    raise ValidationFailed("no former metadata file shows which branches and tags the expired snapshots had")


class _Steps:
    """Reports one file more at each call, none at first."""

    def __init__(self, total: int, report: OnStep) -> None:
        self._total, self._report, self._done = total, report, -1
        if total:
            self()

    def __call__(self) -> None:
        self._done += 1
        self._report(Counted(what="expire_snapshots", unit="files", done=self._done, total=self._total))


def _deleted(
    table: Target, files: SnapshotFiles, statistics: dict[str, str], result: ExpiredSnapshots, noted: Callable[[], None]
) -> ExpiredSnapshots:
    failed: list[str] = []
    left = frozenset(result.outside)

    def count(locations: Iterable[str]) -> int:
        done, refused = delete_all(table.store, (each for each in locations if each not in left), table.runner, noted)
        failed.extend(refused)
        return done

    content = {each: count(files.content[each].values()) for each in FileContent}
    return replace(
        result,
        deleted_data_files=content[FileContent.DATA],
        deleted_position_delete_files=content[FileContent.POSITION_DELETES],
        deleted_equality_delete_files=content[FileContent.EQUALITY_DELETES],
        deleted_manifests=count(files.manifests.values()),
        deleted_manifest_lists=count(files.manifest_lists.values()),
        deleted_statistics_files=count(statistics.values()),
        not_deleted=tuple(failed),
    )


def delete_all(
    store: Store, locations: Iterable[str], runner: Runner, noted: Callable[[], object] = lambda: None
) -> tuple[int, list[str]]:
    """Delete unreferenced files, and call `noted` after each. Returns how many were deleted, and the locations of those
    that could not be."""

    def delete(location: str) -> tuple[str, bool | None]:
        try:
            store.delete(location)
        except FileNotFound:
            return location, None
        except EngineError:
            return location, False
        return location, True

    results = []
    for result in runner.map(delete, locations):
        results.append(result)
        noted()
    return sum(done is True for _, done in results), [location for location, done in results if done is False]
