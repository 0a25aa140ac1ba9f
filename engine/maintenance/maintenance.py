"""`table.maintenance`: maintenance operations by name; delegation only."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from icebench.engine.commit.changes.expire_snapshots import ExpireSnapshots
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.staging_context import now_ms
from icebench.engine.commit.target import Target
from icebench.engine.display import printable
from icebench.engine.errors import Contradiction, Invalid
from icebench.engine.expressions.predicate import Filter
from icebench.engine.file_indexes.blob import IndexKind
from icebench.engine.lazy_module import LazyModule
from icebench.engine.maintenance.build_index import BuiltIndex, build_file_index
from icebench.engine.maintenance.cluster import ClusteringPass, Declaration, cluster
from icebench.engine.maintenance.compute_partition_stats import ComputedPartitionStats, compute_partition_stats
from icebench.engine.maintenance.compute_table_stats import ComputedTableStats, compute_table_stats
from icebench.engine.maintenance.examine_files import ExaminedFiles, examine_files
from icebench.engine.maintenance.executor_groups import ExecutorGroups
from icebench.engine.maintenance.expire_snapshots import ExpiredSnapshots, commit_expiry, delete_expired, preview_expiry
from icebench.engine.maintenance.file_groups import DEFAULT_SORTED_GROUP_SIZE_BYTES, GROUP_PER_MEMORY, Selection
from icebench.engine.maintenance.profile.table_profile import Subject, TableProfile, profile_table
from icebench.engine.maintenance.remove_orphan_files import DEFAULT_AGE_MS, OrphanFiles, remove_orphan_files
from icebench.engine.maintenance.rewrite_data_files import (
    Progress,
    Rewrite,
    RewrittenDataFiles,
    Strategy,
    rewrite_data_files,
)
from icebench.engine.maintenance.rewrite_deletes import DeleteRewrite, RewrittenDeletes
from icebench.engine.maintenance.rewrite_manifests import rewrite_manifests
from icebench.engine.maintenance.rewrite_table_path import RewrittenTablePath, rewrite_table_path
from icebench.engine.plan.snapshots import AsOf, milliseconds
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.progress import OnStep
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import TARGET_FILE_SIZE_BYTES
from icebench.engine.spec.snapshots import MAIN, Snapshot
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.storage.counting import CountingStore

if TYPE_CHECKING:
    from icebench.engine.spark import jobs, memory
else:  # PySpark is loaded already where the caller has a session
    jobs = LazyModule("icebench.engine.spark.jobs")
    memory = LazyModule("icebench.engine.spark.memory")


class SelectionOptions(TypedDict, total=False):
    """Options that select files to rewrite; see `icebench.engine.maintenance.file_groups.Selection`."""

    target_file_size_bytes: int
    min_file_size_bytes: int
    max_file_size_bytes: int
    min_input_files: int
    delete_file_threshold: int
    delete_ratio_threshold: float
    rewrite_all: bool
    max_file_group_size_bytes: int
    output_spec_id: int


class CourseOptions(TypedDict, total=False):
    """Options that control how to rewrite; see `icebench.engine.maintenance.rewrite_data_files.Rewrite`."""

    max_concurrent_groups: int
    partial_progress: bool
    partial_progress_max_commits: int
    use_starting_sequence_number: bool
    remove_dangling_deletes: bool
    sort_memory_bytes: int


class ClusterOptions(CourseOptions, total=False):
    """Options of a clustering pass."""

    target_file_size_bytes: int
    max_file_group_size_bytes: int


class RewriteOptions(SelectionOptions, CourseOptions, total=False):
    """Options of a rewrite of data files, apart from its strategy."""


@dataclass(frozen=True)
class Maintenance:
    """Operations that change a table's storage and history, never its rows; and the table's profile.

    Operations that change the table raise Unsupported for a read-only one, and CommitFailed if the change is not
    visible; after `CommitStateUnknown` it may or may not be.

    Args:
        subject: The table as loaded.
        target: Returns the table to change; raises Unsupported for a read-only one.
        advance: Called with the table after a change.
        new_id: Creates the ids of rewrites.
        now_ms: The clock of ages, in milliseconds since 1970.
    """

    subject: Subject
    target: Callable[[], Target]
    advance: Callable[[TableState], None]
    new_id: Callable[[], uuid.UUID] = uuid.uuid4
    now_ms: Callable[[], int] = now_ms

    def __repr__(self) -> str:
        return f"Maintenance({printable(self.subject.name)})"

    @cached_property
    def table(self) -> Target:
        """The table to change; raises Unsupported for a read-only one. All steps of an operation share it: it detects
        that the name was given to another table between two steps (`icebench.engine.commit.one_table`)."""
        return self.target()

    def build_index(self, column: str, *, kind: IndexKind = "bloom", fpp: float = 0.01) -> BuiltIndex:
        """Index which values of a column each data file of the current snapshot may hold.

        Plans use it for ``=`` and ``in`` on the column, after partitions and metrics, in every snapshot that has the
        files (counter ``entries_skipped_by_index``). It skips no file that is added later, until the index is built
        again, which reads only those. It is part of the snapshot's statistics file, and removed with it.

        Args:
            column: Full name, not inside a list or map.
            kind: ``"bloom"``: a Bloom filter per file, some 10 bits per distinct value. ``"values"``: hashes of all
                values, 12 bytes per distinct value of a file, without false positives.
            fpp: The false-positive probability of a Bloom filter.

        Raises:
            Invalid: No such column, an unknown kind, or a table without a snapshot.
            Unsupported: Values of the column's type are not hashed.
        """
        state, built = build_file_index(self.table, column, kind=kind, fpp=fpp)
        self.advance(state)
        return built

    def cluster(
        self,
        *,
        max_bytes: int | None = None,
        dry_run: bool = False,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        spark: Any = None,  # noqa: ANN401 - Spark's own types are at home in `engine.spark` alone
        progress: Callable[[Progress], object] | None = None,
        **options: Unpack[ClusterOptions],
    ) -> ClusteringPass:
        """Rewrite the data files that overlap too much in the clustering keys that the table declares.

        The declaration is the table properties ``icebench.clustering.strategy`` (``sort``, ``zorder`` or ``hilbert``)
        and ``icebench.clustering.keys`` (columns, separated by commas; none for a sort by the table's own order). Files
        are merged where ``icebench.clustering.fan-in`` (default 4) or more of about the same density overlap, the most
        depth per byte first. A row is thus rewritten a logarithmic number of times however the table grows, and a
        second pass over an unchanged table does nothing. Rows and their lineage stay, as in `rewrite_data_files`.

        Args:
            max_bytes: Maximum bytes of data files to rewrite; None for all that is due. A set of overlapping files is
                merged as a whole or not at all.
            dry_run: Only report what would be merged first.
            branch: The branch to rewrite.
            snapshot_properties: Entries for the snapshot summaries.
            spark: A `pyspark.sql.SparkSession` whose executors rewrite groups; without one, threads of this process do.
            progress: Called after each group; see `icebench.progress_bar`.
            options: See `Rewrite`, and `Selection` for the sizes.

        Raises:
            NotFound: No such branch.
            Invalid: No declaration, unsuitable columns in it, or an unknown option.
            ValidationFailed: As `rewrite_data_files`.
        """
        _check_options("cluster", options, ClusterOptions)
        _fit_executors(options, spark, is_sorted=True)
        state = self.table.load()
        selection = _selection(options, "sort", state.metadata)
        course = Rewrite(
            selection=selection,
            branch=branch,
            properties=dict(snapshot_properties or {}),
            executors=None if spark is None else _executors(spark),
            progress=progress or (lambda _: None),
            **_course(options),
        )
        state, done = cluster(
            self.table, state, course, selection=selection, max_bytes=max_bytes, dry_run=dry_run, new_id=self.new_id
        )
        self.advance(state)
        return done

    def check_clustering(self, properties: Mapping[str, str]) -> None:
        """Raise what `cluster` raises for the declaration that the table would have with these properties set."""
        metadata = self.table.load().metadata
        Declaration.of(replace(metadata, properties={**metadata.properties, **properties}))

    def compute_partition_stats(self, *, snapshot_id: int | None = None) -> ComputedPartitionStats:
        """Write the partition statistics file of a snapshot, as Iceberg's procedure ``compute_partition_stats`` does:
        the data files and delete files of each partition, their records and bytes, and what changed it last.

        If an ancestor has such a file, only manifests added since then are read. A snapshot that has one keeps it.

        Args:
            snapshot_id: The snapshot; None means the current one.

        Raises:
            Invalid: A table that was never partitioned, or without a snapshot.
            NotFound: No such snapshot.
            Unsupported: A partition field whose transform or source type is not known.
        """
        state, computed = compute_partition_stats(self.table, snapshot_id)
        self.advance(state)
        return computed

    def compute_table_stats(
        self, columns: Sequence[str] | None = None, *, snapshot_id: int | None = None
    ) -> ComputedTableStats:
        """Estimate how many distinct values columns have, as Iceberg's procedure ``compute_table_stats`` does: a theta
        sketch (``apache-datasketches-theta-v1``) per column in the snapshot's statistics file, by which Spark and Trino
        plan joins, and which `profile` shows.

        Up to 4,096 values are counted exactly; above, the standard error is 1.6 %. Deleted rows do not count, nor do
        nulls and empty strings. If an ancestor has sketches of the columns that this engine computed, and all its rows
        are still in the same files, only the other files are read. Memory is bounded: 32 KiB per column and what a read
        takes. Everything else in the statistics file stays, such as indexes.

        Args:
            columns: Full names, not inside a list or map; None for all top-level ones whose values can be compared.
            snapshot_id: The snapshot; None means the current one.

        Raises:
            Invalid: No such column, or a table without a snapshot.
            NotFound: No such snapshot.
            Unsupported: Values of a column's type cannot be compared.
            ValidationFailed: Another commit changed the snapshot's statistics file concurrently.
        """
        state, computed = compute_table_stats(self.table, columns, snapshot_id)
        self.advance(state)
        return computed

    def convert_equality_deletes(
        self, *, branch: str = MAIN, snapshot_properties: Mapping[str, str] | None = None
    ) -> RewrittenDeletes:
        """Replace equality deletes by position deletes of the same rows: every scan compares the keys of each row with
        equality deletes, while a deleted position costs next to nothing.

        The key columns of the data files that they may apply to are read once. Format version 3 gets deletion vectors,
        merged with existing ones; version 2 gets position-delete files. No equality-delete file of the loaded snapshot
        remains in the branch; those that are committed concurrently do.

        Args:
            branch: The branch to rewrite.
            snapshot_properties: Entries for the snapshot summary.

        Raises:
            NotFound: No such branch.
            ValidationFailed: A data file with deleted rows was concurrently removed, or in version 3 got other position
                deletes.
            Unsupported: A column of a data file's partition spec was dropped.
        """
        return self._rewritten_deletes(self._delete_rewrite(branch, snapshot_properties).of_keys())

    def expire_snapshots(
        self,
        *,
        older_than: AsOf | None = None,
        retain_last: int | None = None,
        snapshot_ids: Collection[int] = (),
        delete_files: bool = True,
        dry_run: bool = False,
        progress: OnStep | None = None,
    ) -> ExpiredSnapshots:
        """Expire old snapshots, and delete the files that nothing else needs.

        The retention of a branch or tag overrides the arguments, which override the table properties
        ``history.expire.*``; see `ExpireSnapshots`. The metadata is committed first. A file is then deleted only if no
        remaining snapshot refers to it and it is in the table's own locations; none is if the commit's outcome is
        unknown.

        Args:
            older_than: Snapshots older than this time expire; None uses ``history.expire.max-snapshot-age-ms``.
            retain_last: The number of snapshots of a branch to keep whatever their age; None uses
                ``history.expire.min-snapshots-to-keep``.
            snapshot_ids: Snapshots to expire whatever their age; none may be the snapshot of a tag or a branch's head.
            delete_files: False keeps all files.
            dry_run: Only report which snapshots, branches and tags would expire.
            progress: Called after each deleted file; see `icebench.progress_bar`. An exception from it ends the
                deletion; the snapshots are expired all the same.

        Raises:
            Invalid: ``gc.enabled`` is false, or one of `snapshot_ids` is still needed.
            NotFound: No such snapshot.
        """
        change = ExpireSnapshots(
            older_than_ms=None if older_than is None else milliseconds(older_than),
            retain_last=retain_last,
            snapshot_ids=frozenset(snapshot_ids),
        )
        if dry_run:
            return preview_expiry(self.table, change)
        state = commit_expiry(self.table, change)
        self.advance(state)
        report = progress or (lambda _: None)
        return delete_expired(self.table, change, state, delete_files=delete_files, progress=report)

    def examine_files(self) -> ExaminedFiles:
        """All files of the current snapshot that cannot be read, and all that contradict the metadata; see
        `icebench.engine.maintenance.examine_files.examine_files`. Works on read-only tables."""
        return examine_files(self.subject)

    def contradictions(self) -> tuple[Contradiction, ...]:
        """All contradictions between files of the current snapshot and the metadata where the rows are certain.
        Raises the error of a file that cannot be read. Works on read-only tables."""
        examined = self.examine_files()
        for error in examined.unreadable:
            raise error
        return examined.contradictions

    def profile(
        self,
        *,
        snapshot_id: int | None = None,
        columns: bool = True,
        deep: bool = False,
        sample_files: int = 0,
        counters: Counters | None = None,
    ) -> TableProfile:
        """The profile of the loaded table, by default from its metadata alone; changes nothing, and works on read-only
        tables.

        Sizes, deletes, partitions, manifests, overlaps of files by column, statistics, history, and reasons
        with their fixes: see `TableProfile`. A hundred thousand files take about a second.

        Args:
            snapshot_id: The snapshot; None means the current one.
            columns: Include figures of columns, and reasons derived from them; this reads manifests twice.
            deep: Open every data file, for storage by column and for files that differ from their manifest entries.
                Such faults are figures (`FooterFigures.contradictions`) and raise no error.
            sample_files: Read the sort keys of that many of the files that claim a sort order, and check the order.
            counters: Count storage requests and bytes.

        Raises:
            NotFound: No such snapshot.
            CorruptTable, FileNotFound, Unsupported: The snapshot cannot be planned.
        """
        metadata = self.subject.metadata
        snapshot = metadata.current_snapshot if snapshot_id is None else metadata.snapshot(snapshot_id)
        subject = self.subject
        if counters is not None:
            subject = replace(subject, store=CountingStore(subject.store, counters))
        return profile_table(subject, snapshot, self.now_ms(), by_column=columns, deep=deep, sample_files=sample_files)

    def remove_orphan_files(self, *, older_than: AsOf | None = None, dry_run: bool = True) -> OrphanFiles:
        """Find files in the table's ``data`` and ``metadata`` directories that nothing in the table refers to.

        Different spellings of a location are one file: ``/a//b``, ``/x/../a/b`` and ``file:/a/b``, also through
        symbolic links to directories. Files ``vN.metadata.json`` are kept (`icebench.engine.catalog.filesystem`).

        Args:
            older_than: Only files older than this time, by the storage's clock; None means three days ago. A newer file
                may belong to a writer that is about to commit it: an age shorter than the longest write loses data.
            dry_run: Only report them; False deletes them.

        Raises:
            Invalid: ``gc.enabled`` is false; metadata of another table or view is in those directories, or the
                table's own is not: files there may not be this table's, so nothing is deleted.
            FileNotFound, CorruptTable, StorageFailed: The table cannot be read completely, so nothing is deleted.
        """
        oldest = self.table.staging().now_ms() - DEFAULT_AGE_MS if older_than is None else milliseconds(older_than)
        return remove_orphan_files(self.table, older_than_ms=oldest, dry_run=dry_run)

    def rewrite_data_files(
        self,
        strategy: Strategy = "binpack",
        *,
        where: Filter | None = None,
        sort_order: SortOrder | Sequence[str] | None = None,
        zorder_by: Sequence[str] = (),
        hilbert_by: Sequence[str] = (),
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        spark: Any = None,  # noqa: ANN401 - Spark's own types are at home in `engine.spark` alone
        progress: Callable[[Progress], object] | None = None,
        **options: Unpack[RewriteOptions],
    ) -> RewrittenDataFiles:
        """Rewrite data files, with deletes applied, the current schema and the output partition spec.

        Options and defaults are those of Iceberg's ``rewrite_data_files``; `docs/design/maintenance.md` has the
        differences. Rows and their lineage stay as they are, whatever is committed concurrently.

        Args:
            strategy: ``"binpack"`` combines small files and splits large ones; ``"sort"`` also sorts the rows of each
                group; ``"zorder"`` and ``"hilbert"`` arrange them along a curve so that filters on any of several
                columns prune; the Hilbert curve makes the more compact files.
            where: Only files that may hold a row for which this is true; they are rewritten as a whole.
            sort_order: For ``"sort"``: a sort order, or columns to sort by, ascending; None means the table's own.
            zorder_by: For ``"zorder"``: full names of primitive columns.
            hilbert_by: For ``"hilbert"``: likewise.
            branch: The branch to rewrite.
            snapshot_properties: Entries for the snapshot summaries.
            spark: A `pyspark.sql.SparkSession` whose executors rewrite groups; without one, threads of this process do.
            progress: Called after each group; see `icebench.progress_bar`.
            options: See `Selection` and `Rewrite`.

        Raises:
            NotFound: No such branch.
            Invalid: An unknown option or column, or sizes that contradict each other.
            ValidationFailed: Rows of the rewritten files were deleted concurrently; with partial progress, such groups
                are among `RewrittenDataFiles.failed`.
        """
        _check_options("rewrite_data_files", options, RewriteOptions)
        _fit_executors(options, spark, is_sorted=strategy != "binpack")
        state = self.table.load()
        rewrite = Rewrite(
            selection=_selection(options, strategy, state.metadata),
            strategy=strategy,
            sort_order=sort_order,
            zorder_by=zorder_by,
            hilbert_by=hilbert_by,
            where=where,
            branch=branch,
            properties=dict(snapshot_properties or {}),
            executors=None if spark is None else _executors(spark),
            progress=progress or (lambda _: None),
            **_course(options),
        )
        state, done = rewrite_data_files(self.table, state, rewrite, self.new_id())
        self.advance(state)
        return done

    def rewrite_position_deletes(
        self,
        *,
        min_input_files: int = 5,
        rewrite_all: bool = False,
        dry_run: bool = False,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RewrittenDeletes:
        """Rewrite position-delete files: in format version 2 into fewer, without deletes of removed data files; in
        version 3 all of them into deletion vectors.

        In version 2 the small files of a partition (below 75 % of ``write.delete.target-file-size-bytes``) become one
        per data file, or one per partition with ``write.delete.granularity=partition``. Those that apply to no data
        file are removed in any case. Exactly the same rows stay deleted, also later: new files keep the greatest
        sequence number of the old ones.

        Args:
            min_input_files: A partition with fewer small files is skipped; version 2 only.
            rewrite_all: Rewrite files of any size and number; version 2 only.
            dry_run: Only count what would be removed, and at most how many files would be added; added bytes are then
                0.
            branch: The branch to rewrite.
            snapshot_properties: Entries for the snapshot summary.

        Raises:
            NotFound: No such branch.
            ValidationFailed: A rewritten delete file was concurrently removed; in version 3 also, a data file with
                deleted rows was removed, or got other position deletes.
            Unsupported: A column of a data file's partition spec was dropped.
        """
        rewrite = self._delete_rewrite(branch, snapshot_properties)
        return self._rewritten_deletes(
            rewrite.of_positions(min_input_files=min_input_files, rewrite_all=rewrite_all, dry_run=dry_run)
        )

    def _delete_rewrite(self, branch: str, properties: Mapping[str, str] | None) -> DeleteRewrite:
        return DeleteRewrite(self.table, self.table.load(), branch, dict(properties or {}))

    def _rewritten_deletes(self, done: tuple[TableState, RewrittenDeletes]) -> RewrittenDeletes:
        self.advance(done[0])
        return done[1]

    def rewrite_manifests(
        self,
        *,
        by_partition: bool = True,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Rewrite all manifests, up to ``commit.manifest.target-size-bytes`` each. No data or delete file changes.

        Many small manifests cost a plan one request each; a manifest with files of all partitions is read by every
        plan, whatever its filter.

        Args:
            by_partition: Group the files by partition; otherwise keep their order.
            branch: The branch to rewrite.
            snapshot_properties: Entries for the snapshot summary.

        Returns:
            The snapshot, whose summary counts the manifests.

        Raises:
            NotFound: No such branch.
            Invalid: The branch has no snapshot.
        """
        state, snapshot = rewrite_manifests(
            self.table, by_partition=by_partition, branch=branch, properties=snapshot_properties
        )
        self.advance(state)
        return snapshot

    def rewrite_table_path(
        self,
        source_prefix: str,
        target_prefix: str,
        *,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
    ) -> RewrittenTablePath:
        """Stage a copy of the table's metadata in which `target_prefix` replaces `source_prefix`, and list which files
        to copy where. Copies nothing else, changes nothing, and works on read-only tables.

        It rewrites metadata files, manifest lists, manifests, position deletes, Puffin files of deletion vectors, and
        statistics files with indexes. Once all listed files are copied, the table can be registered, or opened, at its
        new location. As Iceberg's procedure of that name, with the differences in `docs/design/maintenance.md`.

        Args:
            source_prefix: A directory, compared by whole path segments: ``/a/t`` is no prefix of ``/a/t2``.
            target_prefix: What replaces it.
            start_version: Name or location of a metadata file that was copied before, with everything it refers to:
                only what was added since is staged and listed. It must have been staged by the same version of
                icebench. None stages all versions of the metadata log.
            end_version: Name or location of the newest metadata file to stage; None means the loaded one.
            staging_location: A separate directory for what is written, in the table's storage; None creates one in the
                table's metadata directory. For a relocated table, give one.
            create_file_list: Write the list, ``file-list`` in the staging directory.

        Raises:
            Invalid: A file or a property of the table is not below the source prefix; no such version; the prefixes are
                equal. No staged file is left behind.
            AlreadyExists: The staging directory has files of an earlier rewrite.
            FileNotFound, CorruptTable: A metadata file, manifest or delete file cannot be read.
        """
        return rewrite_table_path(
            self.subject,
            source_prefix,
            target_prefix,
            start_version=start_version,
            end_version=end_version,
            staging_location=staging_location,
            create_file_list=create_file_list,
            new_id=self.new_id,
        )


def _executors(spark: Any) -> ExecutorGroups:  # noqa: ANN401 - Spark's own types are at home in `engine.spark` alone
    return ExecutorGroups(partial(jobs.run_job, spark), spark.sparkContext.defaultParallelism)


def _fit_executors(options: RewriteOptions | ClusterOptions, spark: Any, *, is_sorted: bool) -> None:  # noqa: ANN401
    """Set options that are not given, from the memory of the session's executors."""
    held = None if spark is None else memory.row_memory_bytes(spark)
    if held is not None:
        held = options.setdefault("sort_memory_bytes", held)
        if is_sorted:
            most = min(held * GROUP_PER_MEMORY, DEFAULT_SORTED_GROUP_SIZE_BYTES)
            options.setdefault("max_file_group_size_bytes", most)


def _check_options(call: str, options: Mapping[str, object], known: type) -> None:
    unknown = options.keys() - known.__annotations__.keys()
    if unknown:
        names = ", ".join(sorted(known.__annotations__))
        raise Invalid(f"{call} has no option {min(unknown)!r}; there are: {names}")


def _course(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in CourseOptions.__annotations__}


def _selection(options: Mapping[str, Any], strategy: Strategy, metadata: TableMetadata) -> Selection:
    """The options, by default with the table's own target size and partition spec."""
    own = {name: value for name, value in options.items() if name in SelectionOptions.__annotations__}
    own.setdefault("target_file_size_bytes", TARGET_FILE_SIZE_BYTES.of(metadata.properties))
    if strategy != "binpack":
        own.setdefault("max_file_group_size_bytes", DEFAULT_SORTED_GROUP_SIZE_BYTES)
    spec_id = own.setdefault("output_spec_id", metadata.default_spec_id)
    if spec_id not in metadata.spec_by_id:
        raise Invalid(f"the table has no partition spec {spec_id}")
    return Selection(**own)
