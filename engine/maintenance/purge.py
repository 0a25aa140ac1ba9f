"""Dropping a table together with its files."""

from __future__ import annotations

from collections.abc import Callable

from icebench.engine.catalog.ownership import check_ownership, is_own_version, surely_own
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.errors import Invalid, StorageFailed
from icebench.engine.maintenance.expire_snapshots import delete_all
from icebench.engine.maintenance.remove_orphan_files import list_own_files
from icebench.engine.plan.reachable_files import Reach
from icebench.engine.spec.properties import GC_ENABLED
from icebench.engine.storage.canonical_paths import CanonicalPaths


def purge(table: Target, drop: Callable[[TableState], None]) -> None:
    """Drop a table by calling `drop`, then delete the files that its snapshots, statistics and metadata log refer to
    and that are in its own locations (`TableMetadata.own_locations`), and its metadata files. Files elsewhere, such as
    those of `add_files`, stay.

    Files in its directories that nothing refers to stay, too, since another table may have its ``write.data.path``
    there (`surely_own`). `remove_orphan_files` deletes those that killed writers left: run it before.

    `drop` drops the table only if it is still as it was loaded: by now its name may be another's.

    Raises:
        Invalid: ``gc.enabled`` is false, or metadata of another table is among its files; nothing is dropped.
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
    reached = reach.all_of(metadata, state.metadata_location, may_be_missing=True)
    own = {path: each for path, each in reached.items() if canonical.is_inside(each, metadata.own_locations)}
    own.update((canonical.path(each), each) for each in surely_own(listed, reached, canonical))
    drop(state)
    # A table that was made anew in the same directory names its versions alike.
    ours = sorted(each for each in own.values() if is_own_version(metadata, each, table.store, canonical))
    _, refused = delete_all(table.store, ours, table.runner)
    if refused:
        raise StorageFailed(f"the table was dropped, but {len(refused)} files of it are left, such as {refused[0]}")
