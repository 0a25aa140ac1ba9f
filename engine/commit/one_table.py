"""A name means one table from the first load of an operation to its commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icebench.engine.commit.committer import Committer, Identifier, Outcome, TableState
from icebench.engine.errors import ValidationFailed

if TYPE_CHECKING:
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
        uuid = state.metadata.table_uuid
        # A table of version 1 need not have one, and gets it with version 2.
        if self._uuid not in ("", uuid):
            raise ValidationFailed(
                f"{'.'.join(identifier)} was dropped or renamed meanwhile: the table {uuid} has the name now, "
                f"and the change was made for {self._uuid}"
            )
        self._uuid = uuid
        return state

    def commit(
        self,
        identifier: Identifier,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> Outcome:
        return self._inner.commit(identifier, base, requirements, updates)
