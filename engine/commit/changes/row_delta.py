"""Adding delete files, with or without new data files, without rewriting anything (merge-on-read)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.commit import conflicts
from engine.commit.manifests import AddedManifests, load_manifests
from engine.commit.snapshots import Staged, branch_head, stage_snapshot, unused_snapshot_id
from engine.commit.staging import Staging
from engine.commit.summary import summarize
from engine.errors import Invalid
from engine.spec.data_file import DataFile, FileContent
from engine.spec.manifest import ManifestContent
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import MAIN, Operation


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What must not have happened since the change was prepared.

    Args:
        starting_snapshot_id: The head of the branch that the change was prepared from; None: the branch was empty.
        referenced: The data files that position deletes point into, all of which must still be in the table.
        may_match: Whether a data file that another commit added could hold rows that the change was meant for. None
            leaves such files alone (snapshot isolation); with it the isolation is serializable.
        refuse_deletes: Whether another commit's new deletes on `referenced` are a conflict. So it is for updates and
            for deletion vectors; two deletions of the same row agree.
    """

    starting_snapshot_id: int | None
    referenced: Sequence[DataFile] = ()
    may_match: Callable[[DataFile], bool] | None = None
    refuse_deletes: bool = False


@dataclass
class RowDelta:
    """Adds data files and delete files in one snapshot.

    Args:
        data_files: New rows.
        delete_files: Position deletes, equality deletes or deletion vectors.
        validation: Checked at every attempt; None for changes that are right on any base, such as equality deletes of
            a keyed stream.
        branch: Where to.
        properties: Entries for the snapshot summary.
    """

    data_files: Sequence[DataFile] = ()
    delete_files: Sequence[DataFile] = ()
    validation: Validation | None = None
    branch: str = MAIN
    properties: Mapping[str, str] = field(default_factory=dict)
    _snapshot_id: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        positional = [f for f in self.delete_files if f.content is FileContent.POSITION_DELETES]
        if positional and self.validation is None:
            raise Invalid(
                "position deletes point into data files, so the change must say which (validation.referenced)"
            )
        self._data = AddedManifests(self.data_files, ManifestContent.DATA)
        self._deletes = AddedManifests(self.delete_files, ManifestContent.DELETES)

    @property
    def added_snapshot_id(self) -> int:
        """The id of the snapshot that the change adds; known once it was staged."""
        assert self._snapshot_id is not None
        return self._snapshot_id

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        parent = branch_head(base, self.branch)
        if self.validation is not None:
            self._validate(self.validation, base, staging)
        if self._snapshot_id is None:
            self._snapshot_id = unused_snapshot_id(base, staging)
        written = self._data.written(base, self._snapshot_id, staging)
        written += self._deletes.written(base, self._snapshot_id, staging)
        return stage_snapshot(
            base,
            staging,
            branch=self.branch,
            snapshot_id=self._snapshot_id,
            operation=self._operation(),
            written=written,
            kept=load_manifests(parent, staging.store),
            summary=summarize(added=[*self.data_files, *self.delete_files], parent=parent, properties=self.properties),
        )

    def _operation(self) -> Operation:
        if not self.delete_files:
            return "append"
        return "overwrite" if self.data_files else "delete"

    def _validate(self, validation: Validation, base: TableMetadata, staging: Staging) -> None:
        head = branch_head(base, self.branch)
        newer = conflicts.snapshots_since(base, head, validation.starting_snapshot_id)
        conflicts.check_still_there(newer, validation.referenced, staging.store)
        if validation.may_match is not None:
            conflicts.check_nothing_added(newer, validation.may_match, staging.store)
        if validation.refuse_deletes:
            conflicts.check_no_new_deletes(newer, validation.referenced, staging.store)
