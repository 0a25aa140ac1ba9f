"""Records reads: a part of a transaction that changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.staged_snapshot import Staged, branch_head, requires_ref
from icebench.engine.commit.staging_context import Staging
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.requirements import AssertTableUuid
from icebench.engine.spec.snapshots import MAIN


@dataclass(kw_only=True)
class Read:
    """Makes a transaction depend on what it read, as for a delete that matched no row.

    Args:
        validation: What must not have happened since.
        branch: The branch that was read; main if it does not exist.
    """

    validation: Validation
    branch: str = MAIN

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        self.validation.check(base, branch_head(base, self.branch), staging)
        names = [self.branch] if self.branch in base.refs or self.branch == MAIN else [self.branch, MAIN]
        return Staged(
            requirements=(AssertTableUuid(base.table_uuid), *(requires_ref(base, name) for name in names)),
        )
