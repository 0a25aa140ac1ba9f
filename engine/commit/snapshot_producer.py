"""Changes that add one snapshot, which adds and removes files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icebench.engine.commit.conflicts import Validation, snapshots_since
from icebench.engine.commit.file_refs import FileRef
from icebench.engine.commit.manifests import AddedFiles, AddedManifests, WrittenManifest, load_manifests
from icebench.engine.commit.removal import Removal
from icebench.engine.commit.staged_snapshot import SnapshotChange, Staged, branch_head, stage_snapshot
from icebench.engine.commit.staging_context import Staging
from icebench.engine.commit.summary import FileCounts, summarize
from icebench.engine.commit.written_for import WrittenFor
from icebench.engine.errors import ValidationFailed
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import PARTITION_SUMMARY_LIMIT
from icebench.engine.spec.snapshots import MAIN, Operation, Snapshot


@dataclass(kw_only=True)
class SnapshotProducer(SnapshotChange):
    """Stages a snapshot that adds and removes files, once for each attempt; attempts share the files they wrote.

    Args:
        data_files: Data files to add.
        data_stream: Data files to add in place of `data_files`, without holding them all: an iterable, taken once, or
            a table with a row for each (see `icebench.engine.columnar.data_file_columns`).
        delete_files: Delete files to add.
        removed_data: Data files to remove.
        removed_deletes: Delete files to remove.
        merged_deletes: Delete files all of whose positions are in the added ones, to be removed. One that another
            commit removed meanwhile is not missed: that its data file is still there is for the validation to say.
        data_sequence_number: Of the added data files; None gives them the new snapshot's, as for new rows.
        delete_sequence_number: Of the added delete files; None gives them the new snapshot's, as for new deletes.
        operation: None: append, delete or overwrite, by what is added and removed.
        validation: Checked at every attempt; None where no other commit can make the change wrong.
        branch: Where to; made when it does not exist.
        properties: Entries for the snapshot summary.
        is_visible: False leaves the branch where it is: the snapshot waits to be published.
        planned_version: The format version that files of rows which were there before were written for, and deletes of
            them. In version 3 rows have ids and position deletes are vectors: a table that was upgraded to it meanwhile
            does not take what was written for an earlier one. None for rows that are new in any version.
        written_for: What new rows, and keys of deleted ones, were written for; None where no other commit can make the
            files wrong.
        check_duplicates: Refuse added files that the branch lists already, which then were not written for this change.
    """

    data_files: Sequence[DataFile] = ()
    data_stream: AddedFiles | None = None
    delete_files: Sequence[DataFile] = ()
    removed_data: Sequence[FileRef] = ()
    removed_deletes: Sequence[FileRef] = ()
    merged_deletes: Sequence[FileRef] = ()
    data_sequence_number: int | None = None
    delete_sequence_number: int | None = None
    operation: Operation | None = None
    validation: Validation | None = None
    branch: str = MAIN
    properties: Mapping[str, str] = field(default_factory=dict)
    is_visible: bool = True
    planned_version: int | None = None
    written_for: WrittenFor | None = None
    check_duplicates: bool = False

    def __post_init__(self) -> None:
        number = self.data_sequence_number
        data = self.data_files if self.data_stream is None else self.data_stream
        once = self.check_duplicates
        self._added_data = AddedManifests(
            data, ManifestContent.DATA, data_sequence_number=number, check_duplicates=once
        )
        self._added_deletes = AddedManifests(
            self.delete_files,
            ManifestContent.DELETES,
            data_sequence_number=self.delete_sequence_number,
            check_duplicates=once,
        )
        self._removed_data = Removal(self.removed_data, ManifestContent.DATA)
        self._removed_deletes = Removal(self.removed_deletes, ManifestContent.DELETES, self.merged_deletes)

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        parent = branch_head(base, self.branch)
        if self.written_for is not None and self._depends_on_columns:
            self.written_for.check(base)
        if self.planned_version is not None and self.planned_version < 3 <= base.format_version:
            raise ValidationFailed(
                f"the table was upgraded from format version {self.planned_version} to {base.format_version} after the "
                "change was prepared; run the operation again"
            )
        if self.validation is not None:
            self.validation.check(base, parent, staging)
            if self.planned_version is not None and self.data_files:
                _check_row_ids(base, parent, self.validation)
        snapshot_id = self._chosen_id(base, staging)
        manifests = load_manifests(parent, staging.store)
        data = self._removed_data.applied(manifests, base, snapshot_id, staging)
        deletes = self._removed_deletes.applied(manifests, base, snapshot_id, staging)
        added = [
            *self._added_data.written(base, snapshot_id, staging),
            *self._added_deletes.written(base, snapshot_id, staging),
        ]
        self._added_data.check_new(manifests, staging)
        self._added_deletes.check_new(manifests, staging)
        written, kept = self._arranged(
            [*added, *data.written, *deletes.written],
            [*data.kept, *deletes.kept],
            base,
            staging,
        )
        summary = summarize(
            added=[self._added_data.counts, self._added_deletes.counts],
            removed=[
                FileCounts(
                    [*data.removed, *deletes.removed], partition_limit=PARTITION_SUMMARY_LIMIT.of(base.properties)
                )
            ],
            parent=parent,
            properties=self.properties,
            base=base,
        )
        return self._note(
            stage_snapshot(
                base,
                staging,
                branch=self.branch,
                snapshot_id=snapshot_id,
                operation=self.operation or self._operation(),
                written=written,
                kept=kept,
                summary=summary,
                is_visible=self.is_visible,
            )
        )

    @property
    def _depends_on_columns(self) -> bool:
        """Whether it adds rows, or keys of rows to be deleted: positions are of any columns."""
        has_rows = bool(self.data_files) or self.data_stream is not None
        return has_rows or any(file.equality_ids for file in self.delete_files)

    def _arranged(
        self,
        written: Sequence[WrittenManifest],
        kept: Sequence[ManifestFile],
        base: TableMetadata,
        staging: Staging,
    ) -> tuple[Sequence[WrittenManifest], Sequence[ManifestFile]]:
        """The manifests to list: those of this commit, and those of the base."""
        return written, kept

    def _operation(self) -> Operation:
        if not self.delete_files and not self.removed_data:
            return "append"
        return "overwrite" if self._added_data.counts else "delete"


def _check_row_ids(base: TableMetadata, parent: Snapshot | None, validation: Validation) -> None:
    """Raise ValidationFailed where rows that had no ids when the change was prepared have got some: the files of the
    change lack them. The first commit after an upgrade to version 3 gives ids to all rows."""
    start = base.snapshot_by_id.get(validation.starting_snapshot_id or 0)
    if start is None or start.first_row_id is not None:
        return
    for snapshot in snapshots_since(base, parent, start.snapshot_id):
        if snapshot.first_row_id is not None and snapshot.snapshot_id not in validation.own_snapshot_ids:
            raise ValidationFailed(
                f"snapshot {snapshot.snapshot_id} gave ids to rows that this change writes again; run the operation "
                "again"
            )
