"""Turning manifests into a staged snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from icebench.engine.codec.manifests.manifest_list import encode_manifest_list
from icebench.engine.commit.manifests import WrittenManifest
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import Invalid
from icebench.engine.spec.encryption import check_not_encrypted
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.requirements import AssertRefSnapshotId, AssertTableUuid, TableRequirement
from icebench.engine.spec.snapshots import MAIN, Operation, Snapshot, SnapshotRef
from icebench.engine.spec.updates import AddSnapshot, SetSnapshotRef, TableUpdate


@dataclass(frozen=True, kw_only=True)
class Staged:
    """A change, ready for one base.

    Args:
        requirements: What it assumes.
        updates: What it does.
        files: Manifest lists and manifests that it brings along.
    """

    requirements: tuple[TableRequirement, ...] = ()
    updates: tuple[TableUpdate, ...] = ()
    files: frozenset[str] = frozenset()

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots that the change adds."""
        return tuple(update.snapshot for update in self.updates if isinstance(update, AddSnapshot))

    @property
    def snapshot_ids(self) -> frozenset[int]:
        """Their ids; one of them in the table's history proves the commit."""
        return frozenset(snapshot.snapshot_id for snapshot in self.snapshots)


@dataclass(kw_only=True)
class SnapshotChange:
    """A change that adds one snapshot, with one id over all attempts."""

    _snapshot_id: int | None = field(default=None, init=False)
    _staged: Snapshot | None = field(default=None, init=False)

    @property
    def added_snapshot_id(self) -> int:
        """The id of the snapshot; known once the change was staged."""
        assert self._snapshot_id is not None
        return self._snapshot_id

    def snapshot_in(self, metadata: TableMetadata) -> Snapshot:
        """The snapshot in the committed table; as it was staged last, where it has expired since."""
        assert self._staged is not None
        return metadata.snapshot_by_id.get(self.added_snapshot_id, self._staged)

    def _chosen_id(self, base: TableMetadata, staging: Staging) -> int:
        if self._snapshot_id is None:
            self._snapshot_id = unused_snapshot_id(base, staging)
        return self._snapshot_id

    def _note(self, staged: Staged) -> Staged:
        (self._staged,) = staged.snapshots
        return staged


def branch_head(base: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot that a change on this branch builds on. A new branch starts where main is.

    Raises:
        Invalid: `branch` is a tag.
    """
    ref = base.refs.get(branch)
    if ref is None:
        return base.current_snapshot
    if ref.type != "branch":
        raise Invalid(f"{branch!r} is a tag; only branches can be written to")
    return base.snapshot(ref.snapshot_id)


def unused_snapshot_id(base: TableMetadata, staging: Staging) -> int:
    """A random id that no snapshot of the table has."""
    while True:
        made = staging.new_snapshot_id()
        if made not in base.snapshot_by_id:
            return made


def stage_snapshot(
    base: TableMetadata,
    staging: Staging,
    *,
    branch: str,
    snapshot_id: int,
    operation: Operation,
    written: Sequence[WrittenManifest],
    kept: Sequence[ManifestFile],
    summary: Mapping[str, str],
    is_visible: bool = True,
) -> Staged:
    """Write the manifest list of a new snapshot on `branch` and say how to commit it.

    Args:
        base: The table that the snapshot builds on.
        staging: Storage, clock.
        branch: Made when it does not exist.
        snapshot_id: Not yet in the table.
        operation: What the snapshot did.
        written: Manifests that this commit wrote; they get the new sequence number.
        kept: Manifests of the branch's head, as they are.
        summary: Complete, without the operation.
        is_visible: False leaves the branch where it is: the snapshot waits to be published (write, audit, publish).
    """
    check_not_encrypted(base)
    parent = branch_head(base, branch)
    sequence_number = base.last_sequence_number + 1 if base.format_version > 1 else 0
    # Empty manifests would be opened by every later scan for nothing.
    listed = [m.manifest_file(sequence_number) for m in written] + [m for m in kept if _has_live_files(m)]
    first_row_id, added_rows = None, None
    if base.format_version >= 3:
        first_row_id = base.next_row_id or 0
        listed, added_rows = _with_row_ids(listed, first_row_id)
    location = staging.new_manifest_list_location(base, snapshot_id)
    data = encode_manifest_list(
        listed,
        format_version=base.format_version,
        snapshot_id=snapshot_id,
        parent_snapshot_id=None if parent is None else parent.snapshot_id,
        sequence_number=sequence_number,
        first_row_id=first_row_id,
    )
    staging.write(location, data)
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=None if parent is None else parent.snapshot_id,
        sequence_number=sequence_number,
        # Clocks of writers differ; time in a table's history never goes back.
        timestamp_ms=max(staging.now_ms(), base.last_updated_ms),
        manifest_list=location,
        operation=operation,
        summary=summary,
        schema_id=base.current_schema_id,
        first_row_id=first_row_id,
        added_rows=added_rows,
    )
    return Staged(
        # Files of the parent are listed, so that it must not expire meanwhile, nor what it may be in: a new branch is
        # made of main.
        requirements=(
            AssertTableUuid(base.table_uuid),
            requires_ref(base, branch),
            *([] if branch in base.refs or branch == MAIN else [requires_ref(base, MAIN)]),
        ),
        updates=(AddSnapshot(snapshot), *([move_branch(base, branch, snapshot_id)] if is_visible else [])),
        files=frozenset([location, *(m.location for m in written)]),
    )


def requires_ref(base: TableMetadata, name: str) -> AssertRefSnapshotId:
    """That a branch or tag is where the base has it, or is not there either."""
    ref = base.refs.get(name)
    return AssertRefSnapshotId(name, None if ref is None else ref.snapshot_id)


def move_branch(base: TableMetadata, name: str, snapshot_id: int) -> SetSnapshotRef:
    """The update that points a branch at a snapshot and keeps its retention settings; made if it does not exist."""
    old = base.refs.get(name) or SnapshotRef(snapshot_id=snapshot_id, type="branch")
    return SetSnapshotRef(name, replace(old, snapshot_id=snapshot_id))


def _has_live_files(manifest: ManifestFile) -> bool:
    return manifest.added_files_count != 0 or manifest.existing_files_count != 0


def _with_row_ids(manifests: list[ManifestFile], next_row_id: int) -> tuple[list[ManifestFile], int]:
    """Give a first row id to the data manifests that have none (spec: "First Row ID Assignment")."""
    assigned, first = [], next_row_id
    for manifest in manifests:
        if manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            assigned.append(replace(manifest, first_row_id=next_row_id))
            next_row_id += (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
        else:
            assigned.append(manifest)
    return assigned, next_row_id - first
