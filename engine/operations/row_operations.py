"""Operations on the rows of a table: at once, or in a transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.commit.committer import TableState
from icebench.engine.errors import Unsupported
from icebench.engine.expressions.predicate import Filter, Predicate
from icebench.engine.lazy_module import LazyModule
from icebench.engine.operations.argument_names import also_named
from icebench.engine.plan.scan import TableScan, table_scan
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.progress import OnStep
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import MAIN, Snapshot

if TYPE_CHECKING:
    from icebench.engine.commit.changes import cherry_pick
    from icebench.engine.commit.manifests import AddedFiles
    from icebench.engine.commit.target import Target
    from icebench.engine.operations import (
        add_files,
        append,
        delete,
        executor_changes,
        keyed_stream,
        overwrite,
        row_source,
        spark_upsert,
        update,
        upsert,
    )
    from icebench.engine.operations.append import Prepare
    from icebench.engine.operations.delete import ScanOf
    from icebench.engine.operations.keyed_stream import KeyedStream
    from icebench.engine.operations.row_changes import Mode
    from icebench.engine.operations.row_source import Rows
    from icebench.engine.operations.update import Assignments
    from icebench.engine.spark import jobs, memory
    from icebench.engine.spark import planning as spark_planning
else:  # loaded on first use: a reader of tables needs nothing that changes them
    cherry_pick = LazyModule("icebench.engine.commit.changes.cherry_pick")
    add_files = LazyModule("icebench.engine.operations.add_files")
    append = LazyModule("icebench.engine.operations.append")
    delete = LazyModule("icebench.engine.operations.delete")
    keyed_stream = LazyModule("icebench.engine.operations.keyed_stream")
    overwrite = LazyModule("icebench.engine.operations.overwrite")
    row_source = LazyModule("icebench.engine.operations.row_source")
    executor_changes = LazyModule("icebench.engine.operations.executor_changes")
    jobs = LazyModule("icebench.engine.spark.jobs")
    memory = LazyModule("icebench.engine.spark.memory")
    spark_planning = LazyModule("icebench.engine.spark.planning")
    spark_upsert = LazyModule("icebench.engine.operations.spark_upsert")
    update = LazyModule("icebench.engine.operations.update")
    upsert = LazyModule("icebench.engine.operations.upsert")


class RowOperations(ABC):
    """Operations that change rows. Each creates one snapshot, which is returned.

    `branch` is the branch to change, which is created if it does not exist; `snapshot_properties` are entries for the
    snapshot summary; `counters` count files, bytes and attempts. All methods raise Unsupported for a read-only table,
    Invalid for rows or filters that do not fit it, ValidationFailed if a concurrent commit conflicts, and CommitFailed
    if the change is not visible; after `CommitStateUnknown` it may or may not be.
    """

    @abstractmethod
    def _target(self, counters: Counters | None) -> Target:
        """Where changes go."""

    @abstractmethod
    def _advance(self, state: TableState) -> None:
        """Adopt the state after a change."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The table's full name, with dots."""

    @also_named(df="data")
    def append(
        self,
        data: Rows,
        *,
        branch: str = MAIN,
        merge_schema: bool = False,
        wap_id: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
        progress: OnStep | None = None,
    ) -> Snapshot:
        """Add rows. See `icebench.engine.operations.append`.

        Args:
            data: A pyarrow Table or RecordBatchReader, a pandas or Polars data frame, a DuckDB relation, any other
                source of an Arrow stream, or a Spark DataFrame, whose executors write the files. Columns are matched by
                name; a missing column gets its write default, or null.
            branch: The branch to change, created if it does not exist.
            merge_schema: Add columns that the table does not have, widen those that are narrower, and make optional
                those that the rows lack or have as nullable, in the same commit, if the property
                ``write.spark.accept-any-schema`` allows it.
            wap_id: Write-audit-publish: leave the branch unchanged; the snapshot can be read by its id, and
                `cherry_pick` publishes it. The id goes into its summary as ``wap.id``.
            snapshot_properties: Entries for the snapshot summary.
            counters: Counts files, bytes and attempts.
            progress: Called with the number of rows of a stream that were written, and at the end; see
                `icebench.progress_bar`. Not for a Spark DataFrame, whose progress Spark shows itself.

        Raises:
            Unsupported: `progress` with a Spark DataFrame.
        """
        target = self._target(counters)
        data = row_source.rows_of(data, "append")
        counted = None if progress is None else row_source.counted_rows(data, "append", progress)
        data = data if counted is None else counted.data
        prepare = _writing(data, target, "append")
        own = {**(snapshot_properties or {}), **({} if wap_id is None else {cherry_pick.WAP_ID: wap_id})}
        if merge_schema:
            if wap_id is not None:
                raise Unsupported("a change of schema together with wap_id: a schema is never staged")
            incoming = from_arrow_schema(row_source.incoming_schema(data))
            state, snapshot = append.append_merging(target, prepare, incoming, branch=branch, properties=own)
        else:
            state, snapshot = append.append(target, prepare, branch=branch, properties=own, is_visible=wap_id is None)
        self._advance(state)
        if counted is not None:
            counted.finish()
        return snapshot

    def append_batch(
        self,
        data: Rows,
        *,
        stream_id: str,
        batch_id: int,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> Snapshot | None:
        """Add the rows of a numbered batch once, even if its writer restarts; None if they were already added.

        See `icebench.engine.operations.append.append_batch`. Raises ValidationFailed, which says what to do, if it is
        unknown whether the rows were added.

        Args:
            data: As for `append`; without rows no snapshot is created.
            stream_id: Identifies the stream across restarts of its writer.
            batch_id: The batch's number, greater than those before.
            branch: The branch to change, created if it does not exist.
            snapshot_properties: Entries for the snapshot summary.
            counters: Counts files, bytes and attempts.
        """
        target = self._target(counters)
        prepare = _writing(data, target, "append_batch")
        state, snapshot = append.append_batch(
            target, prepare, stream_id=stream_id, batch_id=batch_id, branch=branch, properties=snapshot_properties
        )
        self._advance(state)
        return snapshot

    def add_files(
        self,
        files: AddedFiles | Sequence[str],
        *,
        check_duplicate_files: bool = True,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> Snapshot:
        """Add files that were written elsewhere. See `icebench.engine.operations.add_files`.

        Args:
            files: Data and delete files as their writer describes them, at least one; none is opened. Data files may
                come from an iterator, which is never held as a whole, or, fastest, as an Arrow table or stream with
                the columns of `inspect.data_files`, of which ``file_path``, ``file_format``, ``record_count``,
                ``file_size_in_bytes`` and, if the table is partitioned, ``partition`` are required. Or locations of
                data files, which are opened; see `icebench.engine.operations.file_descriptions`.
            check_duplicate_files: Read all manifests of the branch and reject files that they list already, which
                would be read twice. Switch it off only for files that are certainly new.
            branch: The branch to change, created if it does not exist.
            snapshot_properties: Entries for the snapshot summary.
            counters: Counts files, bytes and attempts.

        Raises:
            AlreadyExists: The branch lists one of the files already.
            Unsupported: A position-delete file does not name its one data file.
        """
        state, snapshot = add_files.add_files(
            self._target(counters),
            files,
            check_duplicate_files=check_duplicate_files,
            branch=branch,
            properties=snapshot_properties,
        )
        self._advance(state)
        return snapshot

    @also_named(delete_filter="filter")
    def delete(
        self,
        filter: Filter,
        mode: Mode | None = None,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
        spark: Any = None,  # noqa: ANN401 - Spark's own types are at home in `engine.spark` alone
    ) -> Snapshot | None:
        """Delete the rows for which a filter is true; None if no row matched. See `icebench.engine.operations.delete`.

        Args:
            filter: Selects the rows; rows for which it is null stay.
            mode: ``"merge-on-read"`` or ``"copy-on-write"``; None means the property ``write.delete.mode``,
                by default ``"copy-on-write"``.
            branch: The branch to change, created if it does not exist.
            snapshot_properties: Entries for the snapshot summary.
            counters: Counts files, bytes and attempts.
            spark: A `pyspark.sql.SparkSession` whose executors find the rows and write the files; without one, this
                process does.

        Raises:
            Invalid: No such mode.
            Unsupported: The format version does not have the mode.
        """
        target = self._target(counters)
        state, snapshot = delete.delete(
            target,
            self._scan_of(target, filter, branch, spark),
            mode=mode,
            branch=branch,
            properties=snapshot_properties,
            executors=_executors(spark),
        )
        self._advance(state)
        return snapshot

    @also_named(df="data", overwrite_filter="filter")
    def overwrite(
        self,
        data: Rows,
        filter: Filter | None = None,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> Snapshot | None:
        """Replace the rows for which a filter is true; see `icebench.engine.operations.overwrite.overwrite`.

        Args:
            data: As for `append`; the rows need not match the filter.
            filter: Selects the rows to replace; None means all.
            branch: The branch to change, created if it does not exist.
            snapshot_properties: Entries for the snapshot summary.
            counters: Counts files, bytes and attempts.

        Returns:
            The snapshot; None if no row was removed or added.
        """
        target = self._target(counters)
        prepare = _writing(data, target, "overwrite")
        spark = data.sparkSession if row_source.is_dataframe(data) else None
        state, snapshot = overwrite.overwrite(
            target,
            self._scan_of(target, filter, branch, spark),
            prepare,
            branch=branch,
            properties=snapshot_properties,
            executors=_executors(spark),
        )
        self._advance(state)
        return snapshot

    @also_named(df="data")
    def overwrite_partitions(
        self,
        data: Rows,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> Snapshot | None:
        """Replace all rows in the partitions of the given rows (dynamic overwrite); None for no rows.

        See `icebench.engine.operations.overwrite.overwrite_partitions`; arguments as for `append`.
        """
        target = self._target(counters)
        prepare = _writing(data, target, "overwrite_partitions")
        state, snapshot = overwrite.overwrite_partitions(target, prepare, branch=branch, properties=snapshot_properties)
        self._advance(state)
        return snapshot

    dynamic_partition_overwrite = overwrite_partitions
    """PyIceberg's name for it."""

    def update(
        self,
        filter: Filter,
        assignments: Assignments,
        mode: Mode | None = None,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
        spark: Any = None,  # noqa: ANN401 - as for `delete`
    ) -> Snapshot | None:
        """Change the rows for which a filter is true; None if no row matched. See `icebench.engine.operations.update`.

        Args:
            filter: Selects the rows; rows for which it is null are unchanged.
            assignments: Column -> literal (a string is a literal), `icebench.sql("price * 1.1")`, or a function from
                the rows as a RecordBatch to the column's values as an Array; or one function from the rows to the
                changed rows. All of them see the rows before the change.
            mode: ``"merge-on-read"`` or ``"copy-on-write"``; None means the property ``write.update.mode``,
                by default ``"copy-on-write"``.
            branch: The branch to change, created if it does not exist.
            snapshot_properties: Entries for the snapshot summary.
            counters: Counts files, bytes and attempts.
            spark: As for `delete`; functions among the assignments also run there.
        """
        target = self._target(counters)
        state, snapshot = update.update(
            target,
            self._scan_of(target, filter, branch, spark),
            assignments,
            mode=mode,
            branch=branch,
            properties=snapshot_properties,
            executors=_executors(spark),
        )
        self._advance(state)
        return snapshot

    @also_named(df="data", join_cols="on")
    def upsert(
        self,
        data: Rows,
        on: Sequence[str] | None = None,
        mode: Mode | None = None,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> Snapshot | None:
        """Merge rows by key: rows with an existing key replace the table's, others are added; None for no rows.

        See `icebench.engine.operations.upsert`.

        Args:
            data: As for `append`, with all columns of the table, no repeated key and no null in a key. Executors match
                and write the rows of a Spark DataFrame, see `icebench.engine.operations.spark_upsert`; other rows are
                held in memory.
            on: The key columns; None means the identifier columns of the schema.
            mode: ``"merge-on-read"`` or ``"copy-on-write"``; None means the property ``write.merge.mode``,
                by default ``"copy-on-write"``.
            branch: The branch to change, created if it does not exist.
            snapshot_properties: Entries for the snapshot summary.
            counters: Counts files, bytes and attempts.
        """
        target = self._target(counters)
        is_frame = row_source.is_dataframe(data)
        rows = data if is_frame else row_source.arrow_rows(data, "upsert", "rows or a Spark DataFrame")

        def scan_of(metadata: TableMetadata, filter: Predicate) -> TableScan:
            return self._scan_of(target, filter, branch, rows.sparkSession if is_frame else None)(metadata)

        merge = spark_upsert.upsert_frame if is_frame else upsert.upsert
        state, snapshot = merge(target, scan_of, rows, on, mode=mode, branch=branch, properties=snapshot_properties)
        self._advance(state)
        return snapshot

    def keyed_stream(
        self,
        on: Sequence[str],
        *,
        branch: str = MAIN,
        stream_id: str | None = None,
        counters: Counters | None = None,
    ) -> KeyedStream:
        """Write a change stream by key: inserts, updates and deletes, committed batch by batch.

        See `icebench.engine.operations.keyed_stream.KeyedStream`, also for what is written.

        Args:
            on: The key columns.
            branch: The branch to change, created if it does not exist.
            stream_id: Identifies the stream across restarts; each numbered batch is then committed once.
            counters: Counts files, bytes and attempts.

        Raises:
            Unsupported: Format version 1, or the table is partitioned by a column that is not part of the key.
        """
        target = self._target(counters)
        return keyed_stream.KeyedStream(
            target=target, on=on, branch=branch, stream_id=stream_id, committed=self._advance
        )

    def _scan_of(self, target: Target, filter: Filter | None, branch: str, spark: Any = None) -> ScanOf:  # noqa: ANN401
        """Creates the scan that finds the rows to change; executors of the session `spark` may plan, too."""

        def scan_of(metadata: TableMetadata) -> TableScan:
            scan = table_scan(
                metadata,
                target.store,
                filter=filter,
                ref=branch if branch in metadata.refs else None,
                cache=target.cache,
                table_name=self.name,
            )
            executors = None if spark is None else spark_planning.spark_executors(spark, metadata.properties)
            # A rewritten file also has rows that the filter leaves out.
            return replace(scan, whole_files=True, executors=executors)

        return scan_of


def _executors(spark: Any) -> executor_changes.ExecutorChanges | None:  # noqa: ANN401
    if spark is None:
        return None
    return executor_changes.ExecutorChanges(
        run_job=partial(jobs.run_job, spark),
        cores=spark.sparkContext.defaultParallelism,
        memory_bytes=memory.row_memory_bytes(spark),
    )


def _writing(data: Rows, target: Target, verb: str) -> Prepare:
    rows = row_source.rows_of(data, verb)
    return lambda metadata: row_source.write_rows(rows, metadata, target)
