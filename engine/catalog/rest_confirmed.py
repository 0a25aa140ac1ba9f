"""Updates that a REST catalog confirms without carrying them out.

Nessie keeps one snapshot of a table in each of its own commits. It has no branches and tags of a table: rows that are
committed to a branch, or staged without one, are in the table at once. Such updates are refused before they are sent;
what any other server leaves out is reported afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import CommitStateUnknown, Unsupported
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import MAIN
from engine.spec.updates import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetLocation,
    SetSnapshotRef,
    TableUpdate,
    UpgradeFormatVersion,
)

NESSIE = "nessie.is-nessie-catalog"
"""The property of a session with a server of Nessie, which is then ``true``."""
_NESSIE_VERSION = 2


def check_nessie_carries_out(updates: Sequence[TableUpdate], base: TableMetadata, *, subject: str) -> None:
    """Raise Unsupported for an update of `base` that Nessie passes over."""
    added = {update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshot)}
    published = {update.ref.snapshot_id for update in updates if isinstance(update, SetSnapshotRef)}
    for update in updates:
        what = None
        match update:
            case SetSnapshotRef(name=name) | RemoveSnapshotRef(name=name) if name != MAIN:
                what = f"the branch or tag {name!r}"
            case SetSnapshotRef(ref=ref) if ref.snapshot_id not in added:
                what = f"going back to snapshot {ref.snapshot_id}"
            case AddSnapshot(snapshot=snapshot) if snapshot.snapshot_id not in published:
                what = "a snapshot that waits for its publication"
            case RemoveSnapshots():
                what = "removing snapshots"
            case SetLocation(location=location) if location != base.location:
                what = "moving the table"
            case UpgradeFormatVersion(format_version=version) if version > _NESSIE_VERSION:
                what = f"format version {version}"
        if what is not None:
            raise Unsupported(
                f"{subject}: {what} in a catalog of Nessie, which has none; its own branches are catalogs"
            )


def check_confirmed(updates: Sequence[TableUpdate], metadata: TableMetadata, *, subject: str) -> None:
    """Check what a server returned for a commit against its updates.

    Raises:
        CommitStateUnknown: A reference, the location or the format version is not what the updates make of it.
    """
    removed = {update.name for update in updates if isinstance(update, RemoveSnapshotRef)}
    missing = None
    for update in updates:
        match update:
            case SetSnapshotRef(name=name) if name not in metadata.refs and name not in removed:
                missing = f"the branch or tag {name!r}"
            case SetLocation(location=location) if metadata.location.rstrip("/") != location.rstrip("/"):
                missing = f"the location {location}"
            case UpgradeFormatVersion(format_version=version) if metadata.format_version < version:
                missing = f"format version {version}"
    if missing is not None:
        raise CommitStateUnknown(
            f"{subject}: the REST catalog confirmed a commit, and the table is without {missing}; no file was deleted, "
            "look for the change before making it again"
        )
