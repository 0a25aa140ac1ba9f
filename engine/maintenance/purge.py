"""Dropping a table together with its files."""

from __future__ import annotations

from collections.abc import Callable

from icebench.engine.catalog.ownership import check_ownership, is_own_version
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.errors import Invalid, StorageFailed
from icebench.engine.maintenance.expire_snapshots import delete_all
from icebench.engine.maintenance.remove_orphan_files import list_own_files
from icebench.engine.plan.reachable_files import Reach, statistics_paths
from icebench.engine.spec.properties import DATA_PATH, GC_ENABLED, METADATA_PATH
from icebench.engine.storage.canonical_paths import CanonicalPaths


def purge(table: Target, drop: Callable[[TableState], None]) -> None:
    """Drop a table by calling `drop`, then delete all files in its directories, and those of its snapshots and
    statistics that are below ``write.data.path`` or ``write.metadata.path``. Files elsewhere, such as those of
    `add_files`, stay.

    `drop` drops the table only if it is still as it was loaded: by now its name may be another's.

    Raises:
        Invalid: ``gc.enabled`` is false, or files of another table are among those of this one; nothing is dropped.
        FileNotFound, CorruptTable: The table cannot be read completely, and is not dropped.
        StorageFailed: Likewise; or it was dropped, and some files are left, as the message says.
        As `drop`.
    """
    state = table.load()
    metadata = state.metadata
    if not GC_ENABLED.of(metadata.properties):
        raise Invalid(f"files may not be deleted: {GC_ENABLED.name} is false, other tables may need them")
    canonical = CanonicalPaths(metadata.location)
    listed = list(list_own_files(table, metadata))
    check_ownership(listed, state, state, canonical=canonical, store=table.store, runner=table.runner)
    reach = Reach(store=table.store, runner=table.runner, canonical=canonical)
    elsewhere = [path for name in (DATA_PATH, METADATA_PATH) if (path := name.of(metadata.properties)) is not None]
    found = reach.only_of(metadata.snapshots, ())
    locations = {path: location for kind in found for path, location in kind.items()}
    locations.update(statistics_paths(metadata, canonical))
    for location in (state.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)):
        locations[canonical.path(location)] = location
    kept = {path: location for path, location in locations.items() if canonical.is_inside(location, elsewhere)}
    drop(state)
    # A table that was made anew in the same directory names its versions alike.
    ours = (each.location for each in listed if is_own_version(metadata, each.location, table.store, canonical))
    own = {canonical.path(location): location for location in ours}
    _, refused = delete_all(table.store, sorted({**kept, **own}.values()), table.runner)
    if refused:
        raise StorageFailed(f"the table was dropped, but {len(refused)} files of it are left, such as {refused[0]}")
