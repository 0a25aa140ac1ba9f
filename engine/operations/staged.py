"""A table in a transaction: changes are staged one after another, and committed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

from engine.commit.changes.change import Change
from engine.commit.changes.read import Read
from engine.commit.committer import TableState
from engine.commit.snapshot_producer import SnapshotProducer
from engine.commit.snapshots import branch_head
from engine.commit.staging import Staging
from engine.commit.target import Target
from engine.commit.transaction import stage_all
from engine.spec.data_file import DataFile
from engine.spec.metadata import TableMetadata
from engine.spec.updates import apply_updates


@dataclass(frozen=True, kw_only=True)
class StagedTarget(Target):
    """A target whose `commit` only stages; `finish` commits.

    Args:
        base: The table when the transaction began.
        own_staging: The context of its single commit.
    """

    base: TableState
    own_staging: Staging
    changes: list[Change] = field(default_factory=list)
    prepared: set[str] = field(default_factory=set)
    draft: list[TableMetadata] = field(default_factory=list)

    @classmethod
    def of(cls, target: Target) -> StagedTarget:
        """Begin a transaction on the current table."""
        own = {f.name: getattr(target, f.name) for f in fields(Target)}
        return cls(**own, base=target.load(), own_staging=target.staging())

    def load(self) -> TableState:
        """The table with the changes so far."""
        return replace(self.base, metadata=self.draft[-1]) if self.draft else self.base

    @property
    def committed_metadata(self) -> TableMetadata:
        """The table when the transaction began."""
        return self.base.metadata

    def commit(self, changes: Sequence[Change], prepared: Sequence[DataFile] = ()) -> TableState:
        """Stage the changes; see `Target.commit`."""
        metadata = self.load().metadata
        locations = {file.file_path for file in prepared}
        try:
            for change in changes:
                if isinstance(change, SnapshotProducer | Read):
                    self._adapt(change, metadata)
            staged = stage_all(changes, metadata, self.own_staging)
        except BaseException:
            self.discard(locations)
            raise
        self.changes.extend(changes)
        self.prepared.update(locations)
        self.draft.append(apply_updates(metadata, staged.updates, now_ms=self.own_staging.now_ms()))
        return self.load()

    def read(self, read: Read) -> None:
        """See `Target.read`."""
        self.commit([read])

    def finish(self) -> TableState:
        """Commit the staged changes; returns the unchanged table if there are none.

        Raises:
            CommitFailed: See `engine.commit.transaction`.
        """
        if all(isinstance(change, Read) for change in self.changes):
            return self.base
        return self.commit_staged(self.own_staging, self.changes, self.prepared)

    def abandon(self) -> None:
        """Delete the files that were written for it."""
        self.own_staging.discard()
        self.discard(self.prepared)

    def _adapt(self, change: SnapshotProducer | Read, draft: TableMetadata) -> None:
        """Validate a change against commits since the transaction began, rather than against its own earlier
        changes."""
        base = self.base.metadata
        if change.validation is not None:
            head = branch_head(base, change.branch)
            change.validation = replace(
                change.validation,
                starting_snapshot_id=None if head is None else head.snapshot_id,
                own_snapshot_ids=frozenset(draft.snapshot_by_id.keys() - base.snapshot_by_id.keys()),
            )
        if isinstance(change, Read):
            return
        if draft.schemas != base.schemas or draft.partition_specs != base.partition_specs:
            change.written_for = draft
