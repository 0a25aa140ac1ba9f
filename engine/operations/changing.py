"""What may be done to the rows of a table: at once, or inside a transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from engine.commit.changes.cherry_pick import WAP_ID
from engine.commit.committer import TableState
from engine.expressions.predicate import Predicate
from engine.operations.add_files import add_files
from engine.operations.append import append
from engine.operations.delete import ScanOf, delete
from engine.operations.row_changes import Mode
from engine.operations.row_source import Rows, check_rows, write_rows
from engine.operations.target import Target
from engine.plan.cache import ManifestCache
from engine.plan.scan import TableScan, table_scan
from engine.runtime.counters import Counters
from engine.spec.data_file import DataFile
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import MAIN, Snapshot


class Changing(ABC):
    """Changes of rows. Each makes one snapshot, which is returned.

    In all of them `branch` says where to (it is made when it does not exist), `snapshot_properties` are entries for the
    snapshot summary, and `counters` count files, bytes and attempts. All raise Unsupported for a read-only table,
    Invalid for rows or filters that do not fit it, ValidationFailed where another commit changed what the change was
    meant for, and CommitFailed where the change is not visible; for `CommitStateUnknown` it may or may not be.
    """

    @abstractmethod
    def _target(self, counters: Counters | None) -> Target:
        """Where changes go."""

    @abstractmethod
    def _advance(self, state: TableState) -> None:
        """Take on what came of a change."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The table's full name, with dots."""

    @property
    @abstractmethod
    def _manifest_cache(self) -> ManifestCache | None:
        """Decoded manifests."""

    def append(
        self,
        data: Rows,
        *,
        branch: str = MAIN,
        wap_id: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> Snapshot:
        """Add rows. See `engine.operations.append`.

        Args:
            data: Rows by column name: a pyarrow Table, a RecordBatchReader, or a Spark DataFrame, whose rows the
                executors write. A column that is missing takes its write default, or null.
            wap_id: Write, audit, publish: leave the branch where it is; the snapshot can be read by its id, and
                `cherry_pick` makes it visible. The id goes into its summary as ``wap.id``.
            branch: See the class, as for the others.
            snapshot_properties: See the class.
            counters: See the class.
        """
        check_rows(data, "append")
        target = self._target(counters)

        def prepare(metadata: TableMetadata) -> list[DataFile]:
            return write_rows(data, metadata, target)

        own = {**(snapshot_properties or {}), **({} if wap_id is None else {WAP_ID: wap_id})}
        state, snapshot = append(target, prepare, branch=branch, properties=own, is_visible=wap_id is None)
        self._advance(state)
        return snapshot

    def add_files(
        self,
        files: Sequence[DataFile],
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> Snapshot:
        """Add files that were written elsewhere. See `engine.operations.add_files`.

        Args:
            files: Data and delete files as their writer describes them, at least one; none is opened.
            branch: See the class.
            snapshot_properties: See the class.
            counters: See the class.

        Raises:
            Unsupported: A position-delete file does not name its one data file.
        """
        state, snapshot = add_files(self._target(counters), files, branch=branch, properties=snapshot_properties)
        self._advance(state)
        return snapshot

    def delete(
        self,
        filter: str | Predicate,
        mode: Mode | None = None,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> Snapshot | None:
        """Delete the rows that a filter is true for; None where no row matched. See `engine.operations.delete`.

        Args:
            filter: Which rows; a row for which it is null stays.
            mode: ``"merge-on-read"`` or ``"copy-on-write"``; None means the property ``write.delete.mode``.
            branch: See the class.
            snapshot_properties: See the class.
            counters: See the class.

        Raises:
            Invalid: No mode.
            Unsupported: The format version does not have the mode.
        """
        target = self._target(counters)
        scan_of = self._scan_of(target, filter, branch)
        state, snapshot = delete(target, scan_of, mode=mode, branch=branch, properties=snapshot_properties)
        self._advance(state)
        return snapshot

    def _scan_of(self, target: Target, filter: str | Predicate | None, branch: str) -> ScanOf:
        """Makes the scan that finds what to change."""

        def scan_of(metadata: TableMetadata) -> TableScan:
            return table_scan(
                metadata,
                target.store,
                filter=filter,
                ref=branch if branch in metadata.refs else None,
                cache=self._manifest_cache,
                table_name=self.name,
            )

        return scan_of
