"""Rewrites data files: merges small ones, splits large ones, applies deletes, clusters rows.

Rows, and in format version 3 their ids and last-updated sequence numbers, do not change. New files take the sequence
number of the planned snapshot, so that equality deletes committed meanwhile apply to them as they did to the old files.
Position deletes and deletion vectors committed meanwhile on the old files fail the commit, as they cannot apply to the
new ones (`icebench.engine.commit.changes.rewrite_files`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from icebench.engine.commit.changes.rewrite_files import RewriteFiles
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_of, refs_of_deletes
from icebench.engine.commit.target import Target
from icebench.engine.errors import CommitStateUnknown, EngineError, Invalid
from icebench.engine.expressions.predicate import Filter
from icebench.engine.maintenance.dangling_deletes import remove_dangling_deletes
from icebench.engine.maintenance.file_groups import FileGroup, Grouping
from icebench.engine.maintenance.rewrite_group import GroupRewrite, RewrittenGroup
from icebench.engine.maintenance.row_order import Ordering
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.matches import superseded_by_rewrite
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.runtime.local import LocalRunner, available_threads
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import MAIN, Snapshot
from icebench.engine.spec.sorting import SortOrder, sort_order_of
from icebench.engine.write.data_files import remove_files, written_schema

Strategy: TypeAlias = Literal["binpack", "sort", "zorder", "hilbert"]
DEFAULT_SORT_MEMORY_BYTES = 1 << 30
DEFAULT_MAX_COMMITS = 10


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a rewrite is: groups and their bytes, done (written or failed) and in total."""

    groups: int
    groups_total: int
    size_bytes: int
    size_bytes_total: int
    what: str = "rewrite_data_files"
    unit: str = "bytes"

    @property
    def done(self) -> int:
        """Bytes of the groups that are done."""
        return self.size_bytes

    @property
    def total(self) -> int:
        """Bytes of all groups."""
        return self.size_bytes_total


@dataclass(frozen=True, kw_only=True)
class FailedGroup:
    """A group that was not rewritten; its old files are in the table as before."""

    file_paths: tuple[str, ...]
    error: EngineError


@dataclass(frozen=True, kw_only=True)
class RewrittenDataFiles:
    """What a rewrite did.

    Args:
        groups: Groups that are rewritten.
        rewritten_data_files: Data files that were removed.
        rewritten_bytes: Their bytes.
        added_data_files: Data files that replace them.
        added_bytes: Their bytes.
        removed_delete_files: Delete files of the removed data files.
        removed_dangling_deletes: Further delete files, which applied to no data file any more.
        failed: Groups that could not be rewritten (with partial progress).
        snapshots: What was committed, in order.
        dangling_error: Why dangling deletes are still there; the rewrite itself is committed.
    """

    groups: int = 0
    rewritten_data_files: int = 0
    rewritten_bytes: int = 0
    added_data_files: int = 0
    added_bytes: int = 0
    removed_delete_files: int = 0
    removed_dangling_deletes: int = 0
    failed: tuple[FailedGroup, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    dangling_error: EngineError | None = None


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """What to rewrite, and how; see `Maintenance.rewrite_data_files`.

    Args:
        selection: Which files.
        strategy: How rows are arranged.
        sort_order: For sorting; None means the table's.
        zorder_by: Full names of columns, for Z-order.
        hilbert_by: Full names of columns, for a Hilbert curve.
        where: Files that may hold rows for which this is true; None means all.
        max_concurrent_groups: How many groups are written concurrently; None leaves it to the strategy.
        partial_progress: Commit groups as they are done.
        partial_progress_max_commits: Maximum number of commits.
        use_starting_sequence_number: Give new files the sequence number of the snapshot that was planned.
        remove_dangling_deletes: In a last commit, remove delete files that no longer apply to any data file.
        sort_memory_bytes: About how many bytes of rows sorts hold in memory, in this process or in each task of
            executors, where a group has at most two hundred times as many; beyond it, row groups are written early.
            None is 1 GiB in this process, and on executors what `icebench.engine.spark.memory` computes.
        branch: The branch to rewrite.
        properties: Entries for the snapshot summaries.
        executors: Run the groups; None runs them in this process.
        progress: Called after each group.
    """

    selection: Grouping
    strategy: Strategy = "binpack"
    sort_order: SortOrder | Sequence[str] | None = None
    zorder_by: Sequence[str] = ()
    hilbert_by: Sequence[str] = ()
    where: Filter | None = None
    max_concurrent_groups: int | None = None
    partial_progress: bool = False
    partial_progress_max_commits: int = DEFAULT_MAX_COMMITS
    use_starting_sequence_number: bool = True
    remove_dangling_deletes: bool = False
    sort_memory_bytes: int | None = None
    branch: str = MAIN
    properties: Mapping[str, str] = field(default_factory=dict)
    executors: Runner | None = None
    progress: Callable[[Progress], object] = lambda _: None

    def __post_init__(self) -> None:
        if self.strategy not in get_args(Strategy):
            raise Invalid(f"strategy {self.strategy!r} is none of {', '.join(get_args(Strategy))}")
        if (self.sort_order is not None) > (self.strategy == "sort"):
            raise Invalid(f"strategy {self.strategy} takes no sort order")
        for curve, columns in (("zorder", self.zorder_by), ("hilbert", self.hilbert_by)):
            if bool(columns) != (self.strategy == curve):
                raise Invalid(f"{curve}_by names the columns of strategy {curve}, and only of that")
        for name in ("max_concurrent_groups", "partial_progress_max_commits", "sort_memory_bytes"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise Invalid(f"{name} must be positive, not {number}")


def rewrite_data_files(
    table: Target, state: TableState, rewrite: Rewrite, operation_id: uuid.UUID
) -> tuple[TableState, RewrittenDataFiles]:
    """Rewrite data files of a branch; see `Maintenance.rewrite_data_files`.

    Args:
        table: The table.
        state: The table as loaded, whose files are rewritten.
        rewrite: What to do.
        operation_id: Part of the names of the new files.

    Raises:
        NotFound, Invalid: There is no such branch, or it is a tag.
    """
    metadata = state.metadata
    ordering, sort_order = _ordering(rewrite, metadata)
    snapshot = metadata.existing_head(rewrite.branch)
    if snapshot is None:
        return state, RewrittenDataFiles()
    scan = table_scan(
        metadata, table.store, filter=rewrite.where, ref=rewrite.branch, runner=table.runner, cache=table.cache
    )
    # Whole files: deletes of rows that the filter leaves out are needed, too.
    plan = replace(scan, whole_files=True).plan()
    groups = rewrite.selection.groups(planned_files(plan))
    concurrent = rewrite.max_concurrent_groups or (available_threads() if ordering is None else 1)
    here = rewrite.executors is None
    work = GroupRewrite(
        metadata=metadata,
        store=table.store,
        request=request_for(plan, table.store, projection=written_schema(metadata)),
        spec=metadata.spec_by_id[rewrite.selection.output_spec_id],
        ordering=ordering,
        sort_order=sort_order,
        memory_bytes=max((rewrite.sort_memory_bytes or DEFAULT_SORT_MEMORY_BYTES) // (concurrent if here else 1), 1),
        threads=max(available_threads() // max(min(concurrent, len(groups)), 1), 1) if here else 1,
        operation_id=operation_id,
    )
    run = _Run(table, rewrite, snapshot, state)
    run.rewrite(groups, work, rewrite.executors or LocalRunner(concurrent))
    if rewrite.remove_dangling_deletes:
        run.remove_dangling_deletes()
    return run.state, run.result


class _Run:
    """One rewrite: what is committed so far, and what waits for its commit."""

    def __init__(self, table: Target, rewrite: Rewrite, start: Snapshot, state: TableState) -> None:
        self._table = table
        self._rewrite = rewrite
        self._start = start
        self._planned_version = state.metadata.format_version
        self.state = state
        self.result = RewrittenDataFiles()

    def rewrite(self, groups: Sequence[FileGroup], work: GroupRewrite, runner: Runner) -> None:
        """Rewrite the groups and commit them, at once or as they are done."""
        rewrite = self._rewrite
        commits = rewrite.partial_progress_max_commits if rewrite.partial_progress else 1
        together = -(-len(groups) // commits)
        written: dict[int, RewrittenGroup] = {}
        if rewrite.executors is None:
            work = replace(work, counters=self._table.counters)

        def noted(group: FileGroup) -> RewrittenGroup:
            made = written[group.number] = work(group)
            return made

        waiting: list[RewrittenGroup] = []
        try:
            with closing(_results(runner, noted if rewrite.executors is None else work, groups)) as results:
                for count, made in enumerate(results, 1):
                    written[made.group.number] = made
                    rewrite.progress(self._progress(groups, count))
                    if made.error is not None:
                        self._failed([made], made.error)
                    else:
                        waiting.append(made)
                    if waiting and (len(waiting) == together or count == len(groups)):
                        batch, waiting = waiting, []
                        for each in batch:
                            del written[each.group.number]
                        self._commit(batch)
        except BaseException:
            # Groups under way were waited for; nobody will commit them.
            for made in written.values():
                remove_files(self._table.store, list(made.files))
            raise

    def _progress(self, groups: Sequence[FileGroup], count: int) -> Progress:
        sizes = [group.size_bytes for group in groups]
        return Progress(
            groups=count, groups_total=len(groups), size_bytes=sum(sizes[:count]), size_bytes_total=sum(sizes)
        )

    def _failed(self, groups: Sequence[RewrittenGroup], error: EngineError) -> None:
        if not self._rewrite.partial_progress or isinstance(error, CommitStateUnknown):
            raise error
        failed = tuple(
            FailedGroup(file_paths=tuple(file.file_path for file in made.group.files), error=error) for made in groups
        )
        self.result = replace(self.result, failed=(*self.result.failed, *failed))

    def _commit(self, batch: Sequence[RewrittenGroup]) -> None:
        """Commit groups together; their new files are removed where that fails for certain."""
        old = [file for made in batch for file in made.group.files]
        new = [file for made in batch for file in made.files]
        # Equality deletes of one partition spec do not reach files of another: rows that move must not escape those
        # that others commit meanwhile, nor meet those of the new spec.
        moves = any(file.spec_id != self._rewrite.selection.output_spec_id for file in old)
        keeps_number = self._rewrite.use_starting_sequence_number and not moves
        refs = [ref_of(file) for file in old]
        deletes = [ref for file in old for ref in refs_of_deletes(file, superseded_by_rewrite(file))]
        change = RewriteFiles(
            data_files=new,
            removed_data=refs,
            removed_deletes=deletes,
            data_sequence_number=self._start.sequence_number if keeps_number else None,
            planned_version=self._planned_version,
            validation=Validation(
                starting_snapshot_id=self._start.snapshot_id,
                referenced=refs,
                refuse_deletes="positions" if keeps_number else "all",
            ),
            branch=self._rewrite.branch,
            properties=self._rewrite.properties,
        )
        try:
            self.state = self._table.commit([change], new)
        except EngineError as error:
            self._failed(batch, error)
            return
        before = self.result
        self.result = replace(
            before,
            groups=before.groups + len(batch),
            rewritten_data_files=before.rewritten_data_files + len(old),
            rewritten_bytes=before.rewritten_bytes + sum(made.group.size_bytes for made in batch),
            added_data_files=before.added_data_files + len(new),
            added_bytes=before.added_bytes + sum(file.file_size_in_bytes for file in new),
            removed_delete_files=before.removed_delete_files + len(deletes),
            snapshots=(*before.snapshots, change.snapshot_in(self.state.metadata)),
        )

    def remove_dangling_deletes(self) -> None:
        """Commit the removal of deletes for which no data file is left."""
        try:
            state, snapshot, count = remove_dangling_deletes(
                self._table, branch=self._rewrite.branch, properties=self._rewrite.properties
            )
        except EngineError as error:
            if not self.result.snapshots:
                raise
            self.result = replace(self.result, dangling_error=error)
            return
        self.state = state
        if snapshot is not None:
            snapshots = (*self.result.snapshots, snapshot)
            self.result = replace(self.result, removed_dangling_deletes=count, snapshots=snapshots)


def _results(
    runner: Runner, work: Callable[[FileGroup], RewrittenGroup], groups: Sequence[FileGroup]
) -> Generator[RewrittenGroup, None, None]:
    """The results of the groups, in order; closing it waits for those under way."""
    yield from runner.map(work, groups)


def _ordering(rewrite: Rewrite, metadata: TableMetadata) -> tuple[Ordering | None, SortOrder | None]:
    """How rows are sorted, and the sort order of the table that this is, if any.

    Raises:
        Invalid: No sort order, or columns that cannot be sorted by.
    """
    schema = metadata.schema
    if rewrite.strategy == "binpack":
        return None, None
    if rewrite.strategy in ("zorder", "hilbert"):
        keys = sort_order_of(rewrite.zorder_by or rewrite.hilbert_by, schema, f"{rewrite.strategy}_by")
        ids = tuple(key.source_id for key in keys.fields)
        keys.check(schema)
        return (Ordering(z_order=ids) if rewrite.strategy == "zorder" else Ordering(hilbert=ids)), None
    order = sort_order_of(metadata.sort_order if rewrite.sort_order is None else rewrite.sort_order, schema)
    if order.is_unsorted:
        raise Invalid("the table has no sort order; say how to sort: sort_order=...")
    order.check(schema)
    known = next((each for each in metadata.sort_orders if each.fields == order.fields), None)
    return Ordering(sort_order=order), known
