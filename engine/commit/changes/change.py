"""Interface of changes."""

from __future__ import annotations

from typing import Protocol

from icebench.engine.commit.staged_snapshot import Staged
from icebench.engine.commit.staging_context import Staging
from icebench.engine.spec.metadata import TableMetadata


class Change(Protocol):
    """One kind of change, with its data files prepared. `stage` is called once per attempt."""

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """Stage the change on this base.

        A change that adds a snapshot keeps its snapshot id over all attempts: finding that id in the table's history
        settles a lost answer, and prevents the change from being made twice.

        Raises:
            ValidationFailed: A commit since the change was prepared makes it wrong.
            Invalid: It does not fit the table.
        """
        ...
