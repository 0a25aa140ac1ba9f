"""An expiry of snapshots as another engine makes it: it knows nothing of streams."""

from __future__ import annotations

from icebench.engine.commit.changes.expire_snapshots import ExpireSnapshots
from icebench.engine.commit.staged_snapshot import Staged
from icebench.engine.commit.staging_context import Staging
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.updates import RemoveProperties, SetProperties


class ForeignExpiry(ExpireSnapshots):
    """Removes the same snapshots and leaves the table's properties as they are."""

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        staged = super().stage(base, staging)
        kept = tuple(update for update in staged.updates if not isinstance(update, SetProperties | RemoveProperties))
        return Staged(requirements=staged.requirements, updates=kept)
