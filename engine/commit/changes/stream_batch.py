"""One batch of a change stream: a row delta that is committed once, even if its writer restarts."""

from __future__ import annotations

from dataclasses import dataclass

from engine.commit.changes.row_delta import RowDelta
from engine.commit.manifests import load_manifests
from engine.commit.snapshots import Staged, branch_head
from engine.commit.staging import Staging
from engine.errors import AlreadyExists, Invalid, ValidationFailed
from engine.spec.manifest import ManifestContent
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import COUNT_DIGITS, count_of

STREAM_ID = "icebench.stream-id"
"""Summary entry: the stream of the snapshot."""
BATCH_ID = "icebench.stream-batch-id"
"""Summary entry: the batch of the stream; batch ids increase."""


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
        """See `engine.commit.changes.change.Change`.

        Raises:
            AlreadyExists: The batch was committed before.
            ValidationFailed: The branch has files of a partition spec that the batch's deletes do not reach.
        """
        if self.stream_id is not None and self.batch_id is not None:
            last = last_batch(base, self.branch, self.stream_id)
            if last is not None and last >= self.batch_id:
                raise AlreadyExists(f"batch {self.batch_id} of stream {self.stream_id!r}: the table is at batch {last}")
        if self.key_spec_ids is not None:
            self._check_specs(self.key_spec_ids, base, staging)
        return super().stage(base, staging)

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


def check_batch_id(batch_id: int) -> None:
    """Raise Invalid for a number that `last_batch` would not find again."""
    if not 0 <= batch_id < 10**COUNT_DIGITS:
        raise Invalid(f"a batch id is a whole number from 0 on, with at most {COUNT_DIGITS} digits")


def last_batch(base: TableMetadata, branch: str, stream_id: str) -> int | None:
    """The last batch of a stream in a branch's history, as far as that goes back; None if there is none."""
    head = branch_head(base, branch)
    for snapshot_id in base.ancestors(None if head is None else head.snapshot_id):
        summary = base.snapshot(snapshot_id).summary
        batch_id = count_of(summary.get(BATCH_ID))
        if summary.get(STREAM_ID) == stream_id and batch_id is not None:
            return batch_id
    return None
