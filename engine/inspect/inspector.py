"""`table.inspect`: every metadata table by name."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from icebench.engine.display import address_text
from icebench.engine.inspect import entries, files, manifests, partitions
from icebench.engine.inspect.contents import Contents
from icebench.engine.inspect.history import history
from icebench.engine.inspect.metadata_log_entries import metadata_log_entries
from icebench.engine.inspect.position_deletes import position_deletes
from icebench.engine.inspect.refs import refs
from icebench.engine.inspect.snapshots import snapshots
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.store import Store

TABLES = (
    "snapshots", "history", "refs", "metadata_log_entries", "manifests", "entries", "files", "data_files",
    "delete_files", "partitions", "position_deletes", "all_manifests", "all_entries", "all_files", "all_data_files",
    "all_delete_files",
)  # fmt: skip
"""The names of the metadata tables, all that Iceberg Java has, each a method of `Inspector`."""


@dataclass(frozen=True)
class Inspector:
    """The metadata tables of one version of a table, as Arrow tables with the columns of Iceberg Java.

    Methods that take `snapshot_id` show the current snapshot when it is None, and raise NotFound for an unknown one.
    Those that read manifests raise FileNotFound for a missing file, CorruptTable for a damaged one, and Unsupported for
    a snapshot that lists its manifests inline, as early v1 writers did.
    """

    metadata: TableMetadata
    metadata_location: str
    store: Store

    def __repr__(self) -> str:
        return f"Inspector({address_text(self.metadata_location)}: {', '.join(TABLES)})"

    def snapshots(self) -> pa.Table:
        """One row per snapshot in the metadata; for the columns see `icebench.engine.inspect.snapshots.snapshots`."""
        return snapshots(self.metadata)

    def history(self) -> pa.Table:
        """One row per change of the current snapshot; for the columns see `icebench.engine.inspect.history.history`."""
        return history(self.metadata)

    def refs(self) -> pa.Table:
        """One row per branch or tag; for the columns see `icebench.engine.inspect.refs.refs`."""
        return refs(self.metadata)

    def metadata_log_entries(self) -> pa.Table:
        """One row per metadata file; for the columns see
        `icebench.engine.inspect.metadata_log_entries.metadata_log_entries`.
        """
        return metadata_log_entries(self.metadata, self.metadata_location)

    def manifests(self, snapshot_id: int | None = None) -> pa.Table:
        """One row per manifest of a snapshot; for the columns see `icebench.engine.inspect.manifests.manifests`."""
        return manifests.manifests(self._contents, self._snapshot(snapshot_id))

    def all_manifests(self) -> pa.Table:
        """As `manifests`, for every snapshot, with reference_snapshot_id (lists the manifest) and key_metadata."""
        return manifests.all_manifests(self._contents)

    def entries(self, snapshot_id: int | None = None) -> pa.Table:
        """One row per manifest entry of a snapshot; for the columns see `icebench.engine.inspect.entries.entries`."""
        return entries.entries(self._contents, self._snapshot(snapshot_id))

    def all_entries(self) -> pa.Table:
        """As `entries`, for every manifest that any snapshot lists, each once."""
        return entries.all_entries(self._contents)

    def files(self, snapshot_id: int | None = None) -> pa.Table:
        """One row per live file of a snapshot; for the columns see `icebench.engine.inspect.files.files`."""
        return files.files(self._contents, self._snapshot(snapshot_id))

    def data_files(self, snapshot_id: int | None = None) -> pa.Table:
        """As `files`, data files only."""
        return files.files(self._contents, self._snapshot(snapshot_id), files.DATA_FILES)

    def delete_files(self, snapshot_id: int | None = None) -> pa.Table:
        """As `files`, delete files only."""
        return files.files(self._contents, self._snapshot(snapshot_id), files.DELETE_FILES)

    def all_files(self) -> pa.Table:
        """As `files`, for all snapshots: one row per file and manifest that lists it as live."""
        return files.all_files(self._contents)

    def all_data_files(self) -> pa.Table:
        """As `all_files`, data files only."""
        return files.all_files(self._contents, files.DATA_FILES)

    def all_delete_files(self) -> pa.Table:
        """As `all_files`, delete files only."""
        return files.all_files(self._contents, files.DELETE_FILES)

    def partitions(self, snapshot_id: int | None = None) -> pa.Table:
        """One row per partition of a snapshot; for the columns see `icebench.engine.inspect.partitions.partitions`."""
        return partitions.partitions(self._contents, self._snapshot(snapshot_id))

    def position_deletes(self, snapshot_id: int | None = None) -> pa.Table:
        """One row per deleted position of a snapshot; for the columns and errors see
        `icebench.engine.inspect.position_deletes.position_deletes`.
        """
        return position_deletes(self._contents, self._snapshot(snapshot_id))

    @property
    def _contents(self) -> Contents:
        return Contents(self.metadata, self.store)

    def _snapshot(self, snapshot_id: int | None) -> Snapshot | None:
        return self.metadata.current_snapshot if snapshot_id is None else self.metadata.snapshot(snapshot_id)
