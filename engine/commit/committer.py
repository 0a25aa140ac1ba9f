"""Interface of committers, and the outcomes of a commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from icebench.engine.errors import EngineError
from icebench.engine.spec.metadata import TableMetadata

if TYPE_CHECKING:
    from icebench.engine.spec.requirements import TableRequirement
    from icebench.engine.spec.updates import TableUpdate

Identifier = tuple[str, ...]
"""A table's full name: its namespace's levels, then its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table in the catalog at one point in time."""

    metadata: TableMetadata
    metadata_location: str


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is visible; `state` is the table with it."""

    state: TableState


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Another commit came first. The change is not visible and never will be: it has to be staged again.

    Args:
        reason: What conflicted.
        is_certain: False where the request may have reached the catalog twice (a transport that sends again, a proxy),
            so the conflict may be with our own first request.
        error: Where the catalog refused the change and would again: what to raise, unless it is in the table after all.
    """

    reason: str
    is_certain: bool = True
    error: EngineError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The answer was lost. The change may be visible, or become so.

    Args:
        cause: What went wrong.
        metadata_location: The metadata file that the change would make current, where the committer names it.
        metadata: The content of that file, where another writer's may get the same name.
        base_location: The metadata file that the compare-and-swap compares with, where that is how it commits: once
            the table is at another one, the lost change cannot land any more.
    """

    cause: Exception
    metadata_location: str | None = None
    metadata: bytes | None = None
    base_location: str | None = None


Outcome = Committed | Conflicted | Unknown


class Committer(Protocol):
    """The part of a catalog that commits need."""

    def load_state(self, identifier: Identifier) -> TableState:
        """Load the table; raises NotFound, or StorageFailed if the catalog cannot be reached."""
        ...

    def commit(
        self,
        identifier: Identifier,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> Outcome:
        """Apply the updates to the table, atomically.

        A catalog that writes metadata files itself does so only where the table's metadata is still `base`: a change
        may depend on anything that it read there. The REST protocol knows no base; its servers check the requirements
        against whatever is current, so these must name all that a change depends on.

        Args:
            identifier: The table.
            base: What the updates were staged on.
            requirements: Checked against the current table.
            updates: Applied in order.

        Raises:
            NotFound: There is no such table.

        What is raised (Invalid, NotFound, StorageFailed) means that the change is not visible and never will be, as
        `Conflicted` does; a lost answer is `Unknown` and never raised.
        """
        ...
