"""A table in a transaction: changes are staged one after another, and committed together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

from icebench.engine.catalog.ownership import STAGED
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.read import Read
from icebench.engine.commit.changes.replace_table import ReplaceTable
from icebench.engine.commit.commit_loop import stage_all
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.reported_commit import reported_commit
from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.commit.staged_snapshot import branch_head
from icebench.engine.commit.staging_context import Staging, metadata_file_location
from icebench.engine.commit.target import Target
from icebench.engine.commit.written_for import WrittenFor
from icebench.engine.errors import CommitStateUnknown, EngineError
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.updates import apply_updates


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
        return cls(**_parts(target), base=target.load(), own_staging=target.staging())

    @classmethod
    def replacing(cls, target: Target, change: ReplaceTable) -> StagedTarget:
        """Begin a transaction by replacing the current table."""
        begun = cls.of(target)
        begun.commit([change])
        return begun

    def load(self) -> TableState:
        """The table with the changes so far."""
        return replace(self.base, metadata=self.draft[-1]) if self.draft else self.base

    @property
    def committed_metadata(self) -> TableMetadata:
        """The table when the transaction began."""
        return self.base.metadata

    def commit(self, changes: Sequence[Change], prepared: Iterable[DataFile] = ()) -> TableState:
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
        self.commit([read])

    @contextmanager
    def as_one(self) -> Iterator[None]:
        """Stage the changes of the block all, or none if one of them fails."""
        changes, drafts, prepared = len(self.changes), len(self.draft), set(self.prepared)
        try:
            yield
        except BaseException:
            del self.changes[changes:], self.draft[drafts:]
            self.discard(self.prepared - prepared)
            self.prepared.intersection_update(prepared)
            raise

    def finish(self) -> TableState:
        """Commit the staged changes; returns the unchanged table if there are none.

        Raises:
            CommitFailed: See `icebench.engine.commit.commit_loop`.
        """
        if all(isinstance(change, Read) for change in self.changes):
            return self.base
        return self.commit_staged(self.own_staging, self.changes, self.prepared)

    def abandon(self) -> None:
        """Delete the files that were written for it."""
        self.own_staging.discard()
        self.discard(self.prepared)

    def _adapt(self, change: SnapshotProducer | Read, draft: TableMetadata) -> None:
        """Validate a change against commits since the transaction began, rather than against its own earlier changes:
        from where these found the branch, or to which existing snapshot they moved it."""
        is_replacement = self.changes and isinstance(self.changes[0], ReplaceTable)
        base = self.draft[0] if is_replacement else self.base.metadata
        if change.validation is not None:
            seen = branch_head(draft, change.branch)
            # Not those of other branches: if this one is removed meanwhile, it is made again of main, with rows that
            # the change has not seen.
            line = list(draft.ancestors(None if seen is None else seen.snapshot_id))
            change.validation = replace(
                change.validation,
                starting_snapshot_id=next((each for each in line if each in base.snapshot_by_id), None),
                own_snapshot_ids=frozenset(line) - base.snapshot_by_id.keys(),
            )
        if isinstance(change, Read):
            return
        own_field_ids = draft.schema.by_id.keys() - base.schema.by_id.keys()
        own_orders = tuple(order for order in draft.sort_orders if order not in base.sort_orders)
        if own_field_ids or own_orders or change.written_for is not None:
            change.written_for = WrittenFor(
                schema=draft.schema, own_field_ids=frozenset(own_field_ids), own_orders=own_orders
            )


@dataclass(frozen=True, kw_only=True)
class NewTarget(StagedTarget):
    """A table that does not exist before `finish`.

    Args:
        create: Makes the table with all that was staged.
    """

    create: Callable[[TableMetadata], TableState]

    @classmethod
    def begin(cls, target: Target, metadata: TableMetadata, create: Callable[[TableMetadata], TableState]) -> NewTarget:
        """Begin the transaction that creates a table; `metadata` are those of the empty table."""
        base = TableState(metadata=metadata, metadata_location="")
        staging = target.staging()
        # A table that others make at this place and drop again must not take these files along: they are another's
        # (`engine.catalog.ownership`).
        marker = metadata_file_location(metadata, f"{STAGED}{metadata.table_uuid}.metadata.json")
        staging.write(marker, encode_metadata(metadata))
        return cls(**_parts(target), base=base, own_staging=staging, create=create)

    def finish(self) -> TableState:
        """Create the table.

        Raises:
            AlreadyExists: A table was created by that name meanwhile; what was written is deleted.
            CommitStateUnknown: The answer was lost; no file was deleted.
        """
        try:
            staged = stage_all(self.changes, self.base.metadata, self.own_staging)
            now_ms = self.own_staging.now_ms()
            metadata = apply_updates(self.base.metadata, staged.updates, now_ms=now_ms)
            if self.reporting is None:
                state = self.create(metadata)
            else:
                state = reported_commit(
                    self.reporting, self.identifier, lambda: self.create(metadata), lambda: (1, staged.snapshots)
                )
        except CommitStateUnknown:
            raise
        except EngineError:
            self.abandon()
            raise
        self.own_staging.discard(keep=staged.files)
        return state


def _parts(target: Target) -> dict[str, Any]:
    return {f.name: getattr(target, f.name) for f in fields(Target)}
