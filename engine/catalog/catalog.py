"""Interface of catalogs. All implementations pass ``tests/contract/test_catalog.py``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from icebench.engine.catalog.identifiers import dotted
from icebench.engine.commit.committer import Committer, Identifier, TableState
from icebench.engine.errors import CommitConflict
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.storage.store import Store

Namespace = tuple[str, ...]


class Catalog(Committer, Protocol):
    """Tables by name. Identifiers are tuples (`icebench.engine.catalog.identifiers`). Thread-safe.

    Errors in addition to those named: StorageFailed when the catalog cannot be reached.
    """

    @property
    def name(self) -> str:
        """The catalog's name, which distinguishes catalogs in one database."""
        ...

    def close(self) -> None:
        """Close connections; a later call opens new ones."""
        ...

    def store_at(self, location: str) -> Store:
        """The store of a table's files."""
        ...

    def default_location(self, identifier: Identifier) -> str:
        """The default location of a table of that name; raises Invalid without a warehouse."""
        ...

    def stage_table(self, identifier: Identifier, metadata: TableMetadata) -> TableMetadata:
        """Prepare a table for `create_table` to register with its first snapshots; nothing is visible before.

        Returns:
            The metadata to write files for: a server may choose UUID and location.

        Raises:
            AlreadyExists: A table has that name.
        """
        ...

    def create_table(self, identifier: Identifier, metadata: TableMetadata, *, is_staged: bool = False) -> TableState:
        """Register a new table; its namespace need not exist. With `is_staged` the metadata is derived from that of
        `stage_table`, and may have snapshots.

        Raises:
            AlreadyExists: A table (or view) has that name.
            CommitStateUnknown: The answer was lost.
        """
        ...

    def register_table(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Register a table by an existing metadata file; raises AlreadyExists, FileNotFound."""
        ...

    def table_exists(self, identifier: Identifier) -> bool:
        """Whether there is such a table; does not read its metadata."""
        ...

    def list_tables(self, namespace: Namespace) -> list[Identifier]:
        """The tables directly in a namespace, by name; raises NotFound for a namespace that does not exist."""
        ...

    def rename_table(self, old: Identifier, new: Identifier) -> None:
        """Rename a table; its files do not move.

        Raises:
            NotFound: There is no such table.
            AlreadyExists: Another table (or view) has the new name.
            Unsupported: Tables of this catalog keep their names.
            CommitStateUnknown: The answer was lost, and the table is not seen under its new name.
        """
        ...

    def drop_table(self, identifier: Identifier, *, base: TableState | None = None) -> None:
        """Drop a table; with `base` only if it is still as it was loaded. The implementation decides about its files.

        A lost answer is settled by a look-up: if nothing has the name any more, the table was dropped, or another
        writer dropped or renamed it meanwhile.

        Raises:
            NotFound: There is no such table.
            CommitConflict: The table was changed since `base`, or another one has the name; nothing was dropped.
            CommitStateUnknown: The answer was lost, and something still has the name.
        """
        ...

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether the namespace was created or is not empty."""
        ...

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace; raises AlreadyExists."""
        ...

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove an empty namespace; raises NotFound, and Invalid if it is not empty."""
        ...

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """The namespaces directly below `parent`, by name; raises NotFound for a parent that does not exist."""
        ...

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """The namespace's properties; raises NotFound."""
        ...

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        """Set and remove properties in one step; raises NotFound, and Invalid for a name in both."""
        ...


def not_as_loaded(identifier: Identifier) -> CommitConflict:
    """The error of dropping a table that is no longer as it was loaded."""
    return CommitConflict(f"{dotted(identifier)} was changed, or another table got its name: it was not dropped")
