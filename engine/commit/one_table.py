"""A name means one table from the first load of an operation to its commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icebench.engine.commit.committer import Committer, Identifier, Outcome, TableState
from icebench.engine.errors import ValidationFailed

if TYPE_CHECKING:
    from icebench.engine.spec.metadata import TableMetadata
    from icebench.engine.spec.requirements import TableRequirement
    from icebench.engine.spec.updates import TableUpdate


class OneTable:
    """A committer for one operation on one table.

    Files are prepared for a table as it was loaded. Where it is dropped meanwhile and its name is given to another,
    they do not fit that one, and may be deleted already: staging again cannot help.

    Args:
        inner: The catalog.
    """

    def __init__(self, inner: Committer) -> None:
        self._inner = inner
        self._uuid = ""

    def load_state(self, identifier: Identifier) -> TableState:
        """As `Committer.load_state`; raises ValidationFailed where another table has the name by now."""
        state = self._inner.load_state(identifier)
        check_same_table(identifier, state.metadata, self._uuid)
        self._uuid = state.metadata.table_uuid
        return state

    def commit(
        self,
        identifier: Identifier,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> Outcome:
        return self._inner.commit(identifier, base, requirements, updates)


def check_same_table(identifier: Identifier, metadata: TableMetadata, table_uuid: str) -> None:
    """Raise ValidationFailed where `metadata` is not of the table that a change was made for."""
    # A table of version 1 need not have one, and gets it with version 2.
    if table_uuid not in ("", metadata.table_uuid):
        raise ValidationFailed(
            f"{'.'.join(identifier)} was dropped or renamed meanwhile: the table {metadata.table_uuid} has the name "
            f"now, and the change was made for {table_uuid}"
        )
