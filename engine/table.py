"""`Table`: what a table offers, delegated to the rooms that do it."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

import pyarrow as pa

from engine.catalog.identifiers import dotted
from engine.commit.committer import Committer, Identifier, TableState
from engine.errors import Unsupported
from engine.inspect.inspector import Inspector
from engine.operations.append import append
from engine.operations.target import Target
from engine.runtime.counters import Counters
from engine.spec.data_file import DataFile
from engine.spec.metadata import TableMetadata
from engine.spec.partitioning import PartitionSpec
from engine.spec.schema import Schema
from engine.spec.snapshots import MAIN, Snapshot, SnapshotRef
from engine.spec.sorting import SortOrder
from engine.storage.store import Store
from engine.write.data_files import write_data_files


class Table:
    """A handle on one table: the state that was loaded last, and the way to read and change it.

    The state changes only by `refresh` and by this handle's own commits. Threads may share a handle.

    Args:
        identifier: The name in the catalog; for a table opened by its file, the last part of its location.
        state: The table as loaded.
        store: Its storage.
        committer: Its catalog; None for a read-only table.
    """

    def __init__(self, identifier: Identifier, state: TableState, store: Store, committer: Committer | None) -> None:
        self._identifier = identifier
        self._state = state
        self._store = store
        self._committer = committer
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {self._state.metadata_location!r})"

    @property
    def name(self) -> str:
        """The full name, with dots."""
        return dotted(self._identifier)

    @property
    def metadata(self) -> TableMetadata:
        """The loaded state, immutable."""
        return self._state.metadata

    @property
    def metadata_location(self) -> str:
        """The metadata file that the state was loaded from."""
        return self._state.metadata_location

    @property
    def location(self) -> str:
        """The table's directory."""
        return self.metadata.location

    @property
    def store(self) -> Store:
        """The table's storage."""
        return self._store

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties."""
        return self.metadata.properties

    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema

    @property
    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return self.metadata.spec

    @property
    def sort_order(self) -> SortOrder:
        """The default sort order."""
        return self.metadata.sort_order

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All snapshots, in the order they were added."""
        return self.metadata.snapshots

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The head of main; None for a table without one."""
        return self.metadata.current_snapshot

    @property
    def refs(self) -> Mapping[str, SnapshotRef]:
        """Branches and tags by name."""
        return self.metadata.refs

    @property
    def inspect(self) -> Inspector:
        """The metadata tables of the loaded state."""
        return Inspector(self.metadata, self.metadata_location, self._store)

    def refresh(self) -> Table:
        """Load the state that the catalog has now; raises NotFound for a table that was dropped. Returns the handle.

        A table that was opened by its metadata file has no newer state, and stays as it is.
        """
        if self._committer is not None:
            self._advance(self._committer.load_state(self._identifier))
        return self

    def append(
        self,
        data: pa.Table | pa.RecordBatchReader,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> Snapshot:
        """Add rows, in one snapshot, which is returned. See `engine.operations.append`.

        Args:
            data: Rows by column name. A column that is missing takes its write default, or null.
            branch: Where to; made when it does not exist.
            snapshot_properties: Entries for the snapshot summary.
            counters: Count files, bytes and attempts.

        Raises:
            Invalid: The rows do not fit the table.
            Unsupported: The table is read-only.
            CommitFailed: The rows are not in the table; for `CommitStateUnknown`, may or may not be.
        """
        target = self._target(counters)

        def prepare(metadata: TableMetadata) -> list[DataFile]:
            return write_data_files(data, metadata=metadata, store=target.store, counters=target.counters)

        state, snapshot = append(target, prepare, branch=branch, properties=snapshot_properties)
        self._advance(state)
        return snapshot

    def _target(self, counters: Counters | None) -> Target:
        if self._committer is None:
            raise Unsupported(f"{self.name} was opened by its metadata file and is read-only; load it from a catalog")
        return Target(
            committer=self._committer,
            identifier=self._identifier,
            store=self._store,
            counters=counters or Counters(),
        )

    def _advance(self, state: TableState) -> None:
        """Take on a newer state; threads that share the handle may bring an older one later."""
        with self._lock:
            if _age(state.metadata) >= _age(self._state.metadata) or state.metadata.table_uuid != self._uuid:
                self._state = state

    @property
    def _uuid(self) -> str:
        return self._state.metadata.table_uuid


def _age(metadata: TableMetadata) -> tuple[int, int]:
    return metadata.last_sequence_number, metadata.last_updated_ms
