"""`Table`: the interface of a table, delegated to the packages that implement it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from icebench.engine.catalog.identifiers import dotted
from icebench.engine.commit.committer import Committer, Identifier, TableState
from icebench.engine.commit.one_table import OneTable
from icebench.engine.errors import Contradiction, Unsupported
from icebench.engine.expressions.predicate import Filter
from icebench.engine.lazy_module import LazyModule
from icebench.engine.operations.argument_names import also_named
from icebench.engine.operations.metadata_operations import MetadataOperations
from icebench.engine.operations.row_operations import RowOperations
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.plan.scan import TableScan, table_scan
from icebench.engine.plan.snapshots import AsOf
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.scan import Scan
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import METADATA_COLUMNS, PARTITION_NAME, partition_column
from icebench.engine.spec.partitioning import PartitionSpec, common_partition_type
from icebench.engine.spec.schema import Schema, list_of_names
from icebench.engine.spec.snapshots import MOST_LONG, Snapshot, SnapshotLogEntry, SnapshotRef
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.types import NestedField
from icebench.engine.storage.contradictions import Verify, VerifyingStore
from icebench.engine.storage.counting import CountingStore
from icebench.engine.storage.store import Store

if TYPE_CHECKING:
    from icebench.engine.commit import target
    from icebench.engine.commit.changes.change import Change
    from icebench.engine.commit.target import Target
    from icebench.engine.inspect import inspector
    from icebench.engine.inspect.inspector import Inspector
    from icebench.engine.maintenance import maintenance
    from icebench.engine.maintenance.maintenance import Maintenance
    from icebench.engine.maintenance.profile import table_profile
    from icebench.engine.operations import staged_table, transaction
    from icebench.engine.operations.transaction import TableTransaction
    from icebench.engine.plan import incremental
    from icebench.engine.read import changelog, plans, request
    from icebench.engine.read.changelog import ChangelogScan
    from icebench.engine.runtime import metrics_reports
    from icebench.engine.spark import changelog_scan as spark_changelog
    from icebench.engine.spark import native_scan
    from icebench.engine.spark import planning as spark_planning
    from icebench.engine.spec import table_text
else:  # loaded on first use: planning needs neither what reads and changes rows, nor PySpark
    inspector = LazyModule("icebench.engine.inspect.inspector")
    maintenance = LazyModule("icebench.engine.maintenance.maintenance")
    table_profile = LazyModule("icebench.engine.maintenance.profile.table_profile")
    target = LazyModule("icebench.engine.commit.target")
    staged_table = LazyModule("icebench.engine.operations.staged_table")
    incremental = LazyModule("icebench.engine.plan.incremental")
    transaction = LazyModule("icebench.engine.operations.transaction")
    changelog = LazyModule("icebench.engine.read.changelog")
    plans = LazyModule("icebench.engine.read.plans")
    request = LazyModule("icebench.engine.read.request")
    metrics_reports = LazyModule("icebench.engine.runtime.metrics_reports")
    spark_changelog = LazyModule("icebench.engine.spark.changelog_scan")
    native_scan = LazyModule("icebench.engine.spark.native_scan")
    spark_planning = LazyModule("icebench.engine.spark.planning")
    table_text = LazyModule("icebench.engine.spec.table_text")


class Table(MetadataOperations, RowOperations):
    """A handle on one table: its last loaded state, and the methods to read and change it.

    The state changes only by `refresh` and by this handle's own commits. Thread-safe.

    Args:
        identifier: The name in the catalog; for a table opened by its file, the last part of its location.
        state: The table as loaded.
        store: Its storage.
        committer: Its catalog; None for a read-only table.
        cache: Keeps decoded manifests from one plan to the next; None creates a cache for the handle, and with a cache
            of 0 bytes each plan decodes them.
        verify: What to do about files that contradict the metadata although their rows are certain: ``"warn"`` warns
            once per cause (`icebench.engine.errors.ContradictionWarning`), ``"strict"`` raises CorruptTable.
        reporting: Where scans and commits are reported to; None for nowhere.

    Raises:
        Invalid: Another value of `verify`.
    """

    def __init__(
        self,
        identifier: Identifier,
        state: TableState,
        store: Store,
        committer: Committer | None,
        cache: ManifestCache | None = None,
        *,
        verify: Verify = "warn",
        reporting: metrics_reports.Reporting | None = None,
    ) -> None:
        self._identifier = identifier
        self._state = state
        self._store: Store = VerifyingStore(store, dotted(identifier), verify)
        largest = max((s.snapshot_id for s in state.metadata.snapshots), default=0)
        if largest > MOST_LONG:
            reason = f"has the snapshot id {largest}, which is beyond a long"
            self._store.report(Contradiction("snapshot id", state.metadata_location, reason))
        self._committer = committer
        self._cache = ManifestCache() if cache is None else cache
        self._reporting = reporting
        self._lock = Lock()

    def __repr__(self) -> str:
        return table_text.table_text(self.name, self.metadata, self.metadata_location)

    def _repr_html_(self) -> str:
        return table_text.table_html(self.name, self.metadata, self.metadata_location)

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

    @property
    def schema(self) -> Schema:
        """The current schema; like `spec` and `sort_order` it can also be called: ``table.schema()``."""
        return self.metadata.schema

    def schemas(self) -> dict[int, Schema]:
        """All schemas by id."""
        return dict(self.metadata.schema_by_id)

    def specs(self) -> dict[int, PartitionSpec]:
        """All partition specs by id."""
        return dict(self.metadata.spec_by_id)

    def sort_orders(self) -> dict[int, SortOrder]:
        """All sort orders by id."""
        return {order.order_id: order for order in self.metadata.sort_orders}

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot with that id; None if there is none."""
        return self.metadata.snapshot_by_id.get(snapshot_id)

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """The snapshot of a branch or tag; None if there is none."""
        ref = self.metadata.refs.get(name)
        return None if ref is None else self.snapshot_by_id(ref.snapshot_id)

    @property
    def format_version(self) -> int:
        """1, 2 or 3."""
        return self.metadata.format_version

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

    def history(self) -> tuple[SnapshotLogEntry, ...]:
        """When each snapshot became the current one, oldest first; `inspect.history` returns the same as a table."""
        return self.metadata.snapshot_log

    @property
    def refs(self) -> Mapping[str, SnapshotRef]:
        """Branches and tags by name."""
        return self.metadata.refs

    @property
    def inspect(self) -> Inspector:
        """The metadata tables of the loaded state."""
        return inspector.Inspector(self.metadata, self.metadata_location, self._store)

    @property
    def maintenance(self) -> Maintenance:
        """Maintenance operations, which raise Unsupported for a read-only table, and the table's profile."""
        subject = table_profile.Subject(
            name=self.name,
            metadata=self.metadata,
            metadata_location=self.metadata_location,
            store=self._store,
            cache=self._cache,
        )
        return maintenance.Maintenance(subject, partial(self._target, None), self._advance)

    def refresh(self) -> Table:
        """Load the current state from the catalog; raises NotFound for a dropped table. Returns the handle.

        A table that was opened by its metadata file has no newer state, and does not change.
        """
        if self._committer is not None:
            self._advance(self._committer.load_state(self._identifier))
        return self

    @also_named(row_filter="filter", selected_fields="columns")
    def scan(
        self,
        filter: Filter | None = None,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: AsOf | None = None,
        limit: int | None = None,
        case_sensitive: bool = True,
        runner: Runner | None = None,
        counters: Counters | None = None,
    ) -> Scan:
        """A scan of the loaded state; reads nothing yet.

        Args:
            filter: Selects rows: SQL-like text such as ``"id < 5 and day in ('mon', 'tue')"``, or an expression.
            columns: Full names of the columns to return, in the schema's order; None for all. Metadata columns
                (``_file``, ``_pos``, ``_deleted``, ...) may be among them and come last.
            snapshot_id: A snapshot to read.
            ref: A branch or tag to read.
            as_of: A time to read the table at. At most one of these three; without any, the current snapshot.
            limit: Stop after that many rows, from whichever files come first; None for all rows.
            case_sensitive: Whether names in filter and columns are case-sensitive.
            runner: Plans and reads in parallel; by default a `LocalRunner` with one thread per processor, and at least
                8 threads if the table is in an object store.
            counters: Count planning, reading, and storage requests and bytes.

        Raises:
            Invalid: The filter is wrong, or more than one of `snapshot_id`, `ref` and `as_of` is set.
            Unsupported: SQL that filters do not support.
            NotFound: No such snapshot or reference.
        """
        extra = self._metadata_columns(columns)
        scan = self._table_scan(
            filter,
            None if columns is None else [c for c in columns if c not in extra],
            snapshot_id=snapshot_id,
            ref=ref,
            as_of=as_of,
            case_sensitive=case_sensitive,
            runner=runner,
            counters=counters,
        )
        computed = tuple(self._metadata_column(name, scan.schema) for name in extra)
        return Scan(scan, computed, counters, limit, reporting=self._reporting)

    @also_named(row_filter="filter", selected_fields="columns")
    def incremental_append_scan(
        self,
        from_snapshot_id: int | None = None,
        to_snapshot_id: int | None = None,
        *,
        from_inclusive: bool = False,
        filter: Filter | None = None,
        columns: Sequence[str] | None = None,
        case_sensitive: bool = True,
        runner: Runner | None = None,
        counters: Counters | None = None,
    ) -> Scan:
        """A scan of the rows that appends added between two snapshots, read with the table's schema.

        Overwrites, deletes and rewrites have no effect on it; see `changelog_scan` for those.

        Args:
            from_snapshot_id: The last snapshot already seen; None for everything since the table was created.
            to_snapshot_id: The last snapshot to read; None for the current one.
            from_inclusive: Whether to include the snapshot `from_snapshot_id`.
            filter: Selects rows, as in `scan`.
            columns: The columns to return, as in `scan`; None for all.
            case_sensitive: Whether names in filter and columns are case-sensitive.
            runner: Plans and reads in parallel; see `scan`.
            counters: Counts the work of planning and reading.

        Raises:
            NotFound: No such snapshot, or part of the history between the two was expired.
            Invalid: The first is not an ancestor of the last; the filter is wrong.
            Unsupported: SQL that filters do not support.
        """
        extra = self._metadata_columns(columns)
        own = None if columns is None else [c for c in columns if c not in extra]
        scan = self._table_scan(filter, own, case_sensitive=case_sensitive, runner=runner, counters=counters)
        appended = incremental.incremental_append_scan(
            scan, from_snapshot_id=from_snapshot_id, from_inclusive=from_inclusive, to_snapshot_id=to_snapshot_id
        )
        computed = tuple(self._metadata_column(name, scan.schema) for name in extra)
        return Scan(appended, computed, counters, reporting=self._reporting)

    @also_named(row_filter="filter", selected_fields="columns")
    def changelog_scan(
        self,
        from_snapshot_id: int | None = None,
        to_snapshot_id: int | None = None,
        *,
        from_inclusive: bool = False,
        filter: Filter | None = None,
        columns: Sequence[str] | None = None,
        net_changes: bool = False,
        identifier_columns: Sequence[str] | None = None,
        compute_updates: bool | None = None,
        case_sensitive: bool = True,
        runner: Runner | None = None,
        counters: Counters | None = None,
    ) -> ChangelogScan:
        """The changes of rows between two snapshots, including those of delete files; see
        `icebench.engine.read.changelog`.

        The projected columns are followed by ``_change_type`` (INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER),
        ``_change_ordinal`` (of the snapshot, from 0, rewrites not counted) and ``_commit_snapshot_id``. Rows that were
        merely rewritten do not appear. With a filter it is the changelog of matching rows: a row that matches only
        after an update is an INSERT.

        Args:
            from_snapshot_id: The last snapshot already seen; None for everything since the table was created.
            to_snapshot_id: The last snapshot to read; None for the current one.
            from_inclusive: Whether to include the snapshot `from_snapshot_id`.
            filter: As in `scan`.
            columns: As in `scan`, without metadata columns.
            net_changes: Omit changes that later snapshots undo; all changes are then held in memory.
            identifier_columns: Columns that identify a row, for updates; by default the schema's identifier
                fields, or the row ids of format version 3.
            compute_updates: Return a DELETE and an INSERT of one row in one snapshot as UPDATE_BEFORE and
                UPDATE_AFTER; by default if identifier columns are given.
            case_sensitive: As in `scan`.
            runner: As in `scan`.
            counters: As in `scan`.

        Raises:
            NotFound: No such snapshot, or part of the history between the two was expired.
            Invalid: The first is not an ancestor of the last; filter, columns or identifiers do not fit the schema;
                updates are combined with net changes, or nothing identifies rows.
            Unsupported: SQL that filters do not support.
        """
        scan = self._table_scan(filter, columns, case_sensitive=case_sensitive, runner=runner, counters=counters)
        last = scan.snapshot if to_snapshot_id is None else self.metadata.snapshot(to_snapshot_id)
        return changelog.ChangelogScan(
            scan=scan,
            span=tuple(incremental.snapshots_between(self.metadata, from_snapshot_id, last, inclusive=from_inclusive)),
            net_changes=net_changes,
            identifier_columns=None
            if identifier_columns is None
            else list_of_names(identifier_columns, "identifier_columns"),
            compute_updates=identifier_columns is not None if compute_updates is None else compute_updates,
            counters=Counters() if counters is None else counters,
            to_frame=_changelog_frame,
        )

    def _table_scan(
        self,
        filter: Filter | None,
        columns: Sequence[str] | None,
        *,
        case_sensitive: bool,
        runner: Runner | None,
        counters: Counters | None,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: AsOf | None = None,
    ) -> TableScan:
        """The part common to all scans of the loaded state: storage, counted if requested, cache and name."""
        return table_scan(
            self.metadata,
            self._store if counters is None else CountingStore(self._store, counters),
            filter=filter,
            columns=columns,
            snapshot_id=snapshot_id,
            ref=ref,
            as_of=as_of,
            case_sensitive=case_sensitive,
            runner=runner,
            cache=self._cache,
            table_name=self.name,
        )

    def _metadata_columns(self, columns: Sequence[str] | None) -> list[str]:
        """The names among `columns` of those that readers compute."""
        own = self.metadata.schema.id_of
        names = () if columns is None else list_of_names(columns, "columns")
        return [c for c in names if (c in METADATA_COLUMNS or c == PARTITION_NAME) and c not in own]

    def _metadata_column(self, name: str, schema: Schema) -> NestedField:
        if name == PARTITION_NAME:
            return partition_column(common_partition_type(self.metadata.partition_specs, schema, self.metadata.schemas))
        return METADATA_COLUMNS[name]

    def transaction(self, *, counters: Counters | None = None) -> TableTransaction:
        """Begin a transaction; see `icebench.engine.operations.transaction.TableTransaction`."""
        return transaction.TableTransaction(
            staged_table.StagedTarget.of(self._target(counters)), committed=self._advance
        )

    def _target(self, counters: Counters | None) -> Target:
        if self._committer is None:
            raise Unsupported(f"{self.name} was opened by its metadata file and is read-only; load it from a catalog")
        return target.Target(
            committer=OneTable(self._committer),
            identifier=self._identifier,
            store=self._store if counters is None else CountingStore(self._store, counters),
            cache=self._cache,
            counters=Counters() if counters is None else counters,
            reporting=self._reporting,
        )

    def _change(self, change: Change) -> None:
        self._advance(self._target(None).commit([change]))

    def _advance(self, state: TableState) -> None:
        """Adopt a newer state; threads that share the handle may pass an older one later."""
        with self._lock:
            if _age(state.metadata) >= _age(self._state.metadata) or state.metadata.table_uuid != self._uuid:
                self._state = state

    @property
    def _uuid(self) -> str:
        return self._state.metadata.table_uuid


def _age(metadata: TableMetadata) -> tuple[int, int]:
    return metadata.last_sequence_number, metadata.last_updated_ms


def _changelog_frame(spark: Any, scan: ChangelogScan) -> Any:  # noqa: ANN401 - as in `Scan.to_spark`
    return spark_changelog.changelog_to_dataframe(spark, scan)
