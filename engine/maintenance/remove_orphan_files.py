"""Removes orphan files: files in a table's directories that its metadata does not reference.

Killed writers and failed deletions leave them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from icebench.engine.catalog.ownership import check_ownership
from icebench.engine.catalog.versions import VERSION_HINT, version_of
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.errors import FileNotFound, Invalid
from icebench.engine.maintenance.expire_snapshots import delete_all
from icebench.engine.plan.reachable_files import Reach
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import GC_ENABLED
from icebench.engine.storage.canonical_paths import CanonicalPaths
from icebench.engine.storage.store import FileInfo

DEFAULT_AGE_MS = 3 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, kw_only=True)
class OrphanFiles:
    """The result of a search for orphan files.

    Args:
        locations: All orphan files that were found.
        size_bytes: Their total size.
        deleted: How many were deleted.
        not_deleted: Files that the storage refused to delete.
    """

    locations: tuple[str, ...] = ()
    size_bytes: int = 0
    deleted: int = 0
    not_deleted: tuple[str, ...] = ()


def remove_orphan_files(table: Target, *, older_than_ms: int, dry_run: bool) -> OrphanFiles:
    """Find files in the table's directories that no snapshot, statistics file or metadata log references.

    Files are listed before the table is loaded, so that commits in between are seen. The table is loaded again before
    files are deleted: reading all manifests may take long, and a writer that took longer than the age limit may have
    committed meanwhile.

    Files ``vN.metadata.json`` are kept however old they are: a directory catalog commits by creating the next one, so a
    writer that was stalled during many commits could mistake a name that is free again for the next version.

    Data files of another table that has its ``write.data.path`` here are not recognised: they are orphan files of this
    one. Catalogs refuse such a path where they see it.

    Args:
        table: The table.
        older_than_ms: Files newer than this time, by the storage's clock, are kept: a writer may be about to commit
            them.
        dry_run: Only find them.

    Raises:
        Invalid: ``gc.enabled`` is false, or files of another table are among those of this one (`check_ownership`).
        FileNotFound, CorruptTable, StorageFailed: The table cannot be read completely, so nothing is deleted.
    """
    former = _deletable(table.load())
    listed = list(list_own_files(table, former.metadata))
    state = _deletable(table.load())
    canonical = CanonicalPaths(state.metadata.location)
    check_ownership(listed, former, state, canonical=canonical, store=table.store, runner=table.runner)
    reach = Reach(store=table.store, runner=table.runner, canonical=canonical)
    known: set[str] = set()

    def learn(of: TableState) -> None:
        known.update(reach.all_of(of.metadata, of.metadata_location, may_be_missing=False))

    learn(state)
    versions = canonical.path(f"{state.metadata.location.rstrip('/')}/metadata/{VERSION_HINT}").rpartition("/")[0]

    def is_orphan(each: FileInfo) -> bool:
        path = canonical.path(each.location)
        directory, _, name = path.rpartition("/")
        is_version = directory == versions and (name == VERSION_HINT or version_of(name) > 0)
        return each.modified_ms < older_than_ms and path not in known and not is_version

    orphans = [each for each in listed if is_orphan(each)]
    if orphans and not dry_run:
        latest = table.load()
        if latest.metadata_location != state.metadata_location:
            learn(latest)
            orphans = [each for each in orphans if is_orphan(each)]
    locations = tuple(sorted(each.location for each in orphans))
    deleted, refused = (0, list[str]()) if dry_run else delete_all(table.store, locations, table.runner)
    return OrphanFiles(
        locations=locations,
        size_bytes=sum(each.size_bytes for each in orphans),
        deleted=deleted,
        not_deleted=tuple(refused),
    )


def _deletable(state: TableState) -> TableState:
    if not GC_ENABLED.of(state.metadata.properties):
        raise Invalid(f"files may not be deleted: {GC_ENABLED.name} is false, other tables may need them")
    return state


def list_own_files(table: Target, metadata: TableMetadata) -> Iterator[FileInfo]:
    """All files of the table's own directories. Those of ``write.data.path`` may be other tables', too."""
    for name in ("data", "metadata"):
        try:
            yield from table.store.list(f"{metadata.location.rstrip('/')}/{name}/")
        except FileNotFound:
            continue
