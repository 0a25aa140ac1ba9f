"""One batch of a change stream: a row delta that is committed once, even if its writer restarts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.committed_batches import (
    BATCH_ID,
    NO_BATCH,
    STREAM_ID,
    BatchEntry,
    check_batch_id,
    has_batch,
    updates_to_entries,
)
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.commit.staged_snapshot import Staged, branch_head, requires_ref
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import AlreadyExists, Invalid, ValidationFailed
from icebench.engine.spec.manifest import ManifestContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.requirements import AssertTableUuid
from icebench.engine.spec.snapshots import MAIN


class BatchExists(AlreadyExists):
    """The branch has the batch, or a later one; storage raises the base class, of files."""


@dataclass(kw_only=True)
class StreamBatch(RowDelta):
    """Adds a batch, unless the branch already has it or a later one of the same stream.

    Args:
        stream_id: The stream; None for one whose writer does not restart.
        batch_id: The batch's number.
        key_spec_ids: The partition specs whose rows its equality deletes reach; None for a batch without any.
    """

    stream_id: str | None = None
    batch_id: int | None = None
    key_spec_ids: frozenset[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stream_id is not None:
            self.properties = {**self.properties, STREAM_ID: self.stream_id, BATCH_ID: str(self.batch_id)}

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `icebench.engine.commit.changes.change.Change`.

        Raises:
            BatchExists: The batch was committed before.
            ValidationFailed: Whether it was is unknown; or the branch has files of a partition spec that the batch's
                deletes do not reach.
        """
        if self.key_spec_ids is not None:
            self._check_specs(self.key_spec_ids, base, staging)
        if self.stream_id is None or self.batch_id is None:
            return super().stage(base, staging)
        if has_batch(base, self.branch, self.stream_id, self.batch_id, staging.store):
            raise BatchExists(f"batch {self.batch_id} of stream {self.stream_id!r} is in branch {self.branch!r}")
        staged = super().stage(base, staging)
        (snapshot,) = staged.snapshots
        entry = BatchEntry.of(self.stream_id, self.branch, self.batch_id, snapshot)
        updates, requirements = updates_to_entries(base, [entry], staging.now_ms())
        return replace(staged, requirements=(*staged.requirements, *requirements), updates=(*staged.updates, *updates))

    def _check_specs(self, reached: frozenset[int], base: TableMetadata, staging: Staging) -> None:
        others = base.spec_by_id.keys() - reached
        if not others or any(base.spec_by_id[i].has_global_deletes for i in reached & base.spec_by_id.keys()):
            return
        for manifest in load_manifests(branch_head(base, self.branch), staging.store):
            if manifest.content is ManifestContent.DATA and manifest.partition_spec_id in others:
                raise ValidationFailed(
                    f"files of partition spec {manifest.partition_spec_id}, which another commit added, are not "
                    "reached by the batch's deletes; run the operation again"
                )


@dataclass(frozen=True, kw_only=True)
class SetLastBatch:
    """Records that a branch has the batches of a stream up to this one, and none after it.

    Args:
        stream_id: The stream.
        batch_id: The batch; `NO_BATCH` for none.
        branch: The branch.
    """

    stream_id: str
    batch_id: int
    branch: str = MAIN

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `icebench.engine.commit.changes.change.Change`; Invalid for a branch without snapshots, which has no
        batches."""
        head = branch_head(base, self.branch)
        if head is None:
            raise Invalid(f"branch {self.branch!r} has no snapshot, and so no batch of stream {self.stream_id!r}")
        if self.batch_id != NO_BATCH:
            check_batch_id(self.batch_id)
        entry = replace(BatchEntry.of(self.stream_id, self.branch, self.batch_id, head), timestamp_ms=staging.now_ms())
        updates, requirements = updates_to_entries(base, [entry], staging.now_ms())
        own = (AssertTableUuid(base.table_uuid), requires_ref(base, self.branch))
        return Staged(requirements=(*own, *requirements), updates=tuple(updates))
