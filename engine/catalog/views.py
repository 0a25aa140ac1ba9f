"""Interface of catalogs with views. Implementations pass ``tests/contract/test_views.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from icebench.engine.catalog.catalog import Namespace
from icebench.engine.commit.committer import Identifier
from icebench.engine.spec.schema import Schema

if TYPE_CHECKING:
    from icebench.engine.spec.views import ViewMetadata, ViewVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """A view as the catalog had it at one moment."""

    metadata: ViewMetadata
    metadata_location: str


@runtime_checkable
class ViewCatalog(Protocol):
    """Views by name; tables and views share their names.

    Errors in addition to those named: StorageFailed when the catalog cannot be reached, Unsupported where it has no
    views, CommitStateUnknown for a change whose answer was lost.
    """

    def create_view(
        self,
        identifier: Identifier,
        definition: ViewVersion,
        schema: Schema,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> ViewState:
        """Create a view; its namespace need not exist.

        Args:
            identifier: Its name.
            definition: The catalog assigns version and schema ids.
            schema: Of the rows that the query returns.
            location: Where its metadata goes; by default below the warehouse, by name.
            properties: The view's.

        Raises:
            AlreadyExists: A view or table has that name.
            Invalid: ``version.history.num-entries`` is no positive number.
        """
        ...

    def load_view(self, identifier: Identifier) -> ViewState:
        """The view at its current state; raises NotFound, also where a table has that name."""
        ...

    def view_exists(self, identifier: Identifier) -> bool:
        """Whether there is such a view."""
        ...

    def replace_view(self, identifier: Identifier, definition: ViewVersion, schema: Schema) -> ViewState:
        """Replace a view's definition; the old one stays in its history.

        Nothing happens if the definition is the current one already. Concurrent replacements are not lost: one of them
        is current at the end, and all are in the history.

        Raises:
            NotFound: No such view.
            Invalid: See `ViewMetadata.with_definition`.
            CommitConflict: Others came first at every attempt.
        """
        ...

    def list_views(self, namespace: Namespace) -> list[Identifier]:
        """The views directly in a namespace, by name; raises NotFound for a namespace that does not exist."""
        ...

    def rename_view(self, old: Identifier, new: Identifier) -> None:
        """Rename a view; raises NotFound, AlreadyExists. Lost answers are settled as for tables."""
        ...

    def drop_view(self, identifier: Identifier) -> None:
        """Drop a view; raises NotFound. Lost answers are settled as for tables. The implementation decides whether its
        metadata files stay."""
        ...
