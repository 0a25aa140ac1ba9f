"""What a change is."""

from __future__ import annotations

from typing import Protocol

from engine.commit.snapshots import Staged
from engine.commit.staging import Staging
from engine.spec.metadata import TableMetadata


class Change(Protocol):
    """One kind of change, with its data files prepared. `stage` is called once for every attempt."""

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """The change on this base.

        A change that adds a snapshot keeps its snapshot id over all attempts: finding that id in the table's history
        is how a lost answer is settled, and how the same change is kept from being made twice.

        Raises:
            ValidationFailed: What happened since the change was prepared makes it wrong.
            Invalid: It does not fit the table.
        """
        ...
