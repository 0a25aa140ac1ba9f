"""Scans: plan the files that a reader needs, from a table's metadata and a filter (spec: "Scan Planning")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import Int64Array, values_of
from icebench.engine.errors import Invalid
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import BOUND_TRUE, BoundPredicate, tests_of_rows
from icebench.engine.expressions.predicate import TRUE, Filter, Predicate
from icebench.engine.lazy_module import LazyModule
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.plan.files_table import delete_file_structs, files_table, with_deletes, with_residuals
from icebench.engine.plan.manifests import ManifestSource
from icebench.engine.plan.planner import LOCAL, Mode, PlannedEntries, Planner
from icebench.engine.plan.snapshots import AsOf, Selected, select
from icebench.engine.plan.tasks import ScanTask, TaskPacking, combined_tasks
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PlannedPartitions
from icebench.engine.spec.schema import Schema, list_of_names
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.resolve import default_runner
from icebench.engine.storage.store import Store

if TYPE_CHECKING:
    from icebench.engine.columnar import filters, foreign_filters
    from icebench.engine.expressions import parse
    from icebench.engine.plan import plan_text
    from icebench.engine.plan.remote import Executors
    from icebench.engine.plan.trace import Trace
else:  # the SQL parser is for filters that are text, and few plans are printed
    parse = LazyModule("icebench.engine.expressions.parse")
    filters = LazyModule("icebench.engine.columnar.filters")
    foreign_filters = LazyModule("icebench.engine.columnar.foreign_filters")
    plan_text = LazyModule("icebench.engine.plan.plan_text")


@dataclass(frozen=True, kw_only=True)
class ScanPlan:
    """The result of planning a scan.

    Attributes:
        files: A row per data file; columns as `icebench.engine.plan.files_table.files_schema`. `residual` is the
            residual filter as text, null if every row matches. `deletes` are the delete files to apply, as references
            into a dictionary.
        counters: Exact counts of the planning work.
        snapshot: The snapshot; None for an empty table.
        schema: The schema that filter and residuals are bound to.
        projection: The columns to return.
        predicate: The bound filter.
        metadata: The table.
        modes: Where manifests of ``data`` and of ``deletes`` were decoded and filtered: ``local``, in this process, or
            ``distributed``, by executors. Files and counters are the same.
    """

    files: pa.Table
    counters: dict[str, int]
    snapshot: Snapshot | None
    schema: Schema
    projection: Schema
    predicate: BoundPredicate
    metadata: TableMetadata
    residuals: tuple[BoundPredicate, ...] = (BOUND_TRUE,)
    residual_codes: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    modes: Mapping[str, Mode] = field(default_factory=lambda: LOCAL)

    def __repr__(self) -> str:
        return plan_text.plan_text(self)

    def _repr_html_(self) -> str:
        return plan_text.plan_html(self)

    @property
    def record_count(self) -> int:
        """The rows of the files, including deleted ones and those that do not match."""
        return _sum(self.files, "record_count")

    @property
    def size_in_bytes(self) -> int:
        """The size of the data files."""
        return _sum(self.files, "file_size_in_bytes")

    def sample(self, files: int) -> ScanPlan:
        """The plan of that many of the files, evenly spread, or of all if there are fewer. The counters are those of
        the whole. Raises Invalid for less than one file."""
        if files < 1:
            raise Invalid(f"a sample takes at least one file, not {files}")
        step = max(self.files.num_rows / files, 1)
        chosen = [int(step * place) for place in range(min(files, self.files.num_rows))]
        part = self.files.take(pa.array(chosen, pa.int64()))
        return replace(self, files=part, residual_codes=self.residual_codes[chosen])

    def tasks(self, split_bytes: int | None = None, *, by_partition: bool = False) -> list[ScanTask]:
        """Split the files and pack them into tasks of about `split_bytes`, optionally of one partition each (for joins
        of tables with equal partitioning); see `icebench.engine.plan.tasks`.

        The table properties ``read.split.*`` control packing; `split_bytes` overrides ``read.split.target-size``.
        Raises Invalid for wrong values.
        """
        return combined_tasks(self.files, self.packing(split_bytes), by_partition=by_partition)

    def packing(self, split_bytes: int | None = None) -> TaskPacking:
        """The packing of tasks according to the table's properties; arguments and errors as `tasks`."""
        return TaskPacking.of(self.metadata.properties, split_bytes)


@dataclass(frozen=True, kw_only=True)
class TableScan:
    """A scan to be planned: a table, one of its snapshots, a filter and columns. Immutable; created by `table_scan`.

    Args:
        metadata: The table.
        store: Its storage.
        selected: Snapshot and schema.
        predicate: The filter; `TRUE` for none.
        columns: Full names of the columns to return; None for all.
        case_sensitive: Whether names in filter and columns are case-sensitive.
        runner: Runs work on manifests in parallel.
        cache: Keeps decoded manifests from one plan to the next.
        table_name: For messages.
        whole_files: Also plan equality deletes that apply to none of the matching rows, for callers that rewrite the
            files' other rows.
        executors: Other processes that may decode and filter manifests; None for this process alone.
        trace: Records what a plan skips; not with `executors`.
    """

    metadata: TableMetadata
    store: Store
    selected: Selected
    predicate: Predicate = TRUE
    columns: tuple[str, ...] | None = None
    case_sensitive: bool = True
    runner: Runner = field(default_factory=LocalRunner)
    cache: ManifestCache | None = None
    table_name: str | None = None
    whole_files: bool = False
    executors: Executors | None = None
    trace: Trace | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; None for a table without one."""
        return self.selected.snapshot

    @property
    def schema(self) -> Schema:
        """The full schema that the snapshot is read with."""
        return self.selected.schema

    def filtered(self, filter: Filter) -> TableScan:
        """This scan with a further condition."""
        return replace(self, predicate=self.predicate & as_predicate(filter, self.schema))

    @cached_property
    def bound(self) -> BoundPredicate:
        """The filter bound to `schema`; raises Invalid for unknown columns and literals of another kind."""
        found = bind(self.predicate, self.schema, case_sensitive=self.case_sensitive)
        if tests_of_rows(found):
            filters.check_filter(found, self.schema)
        return found

    @cached_property
    def projection(self) -> Schema:
        """The columns to return, in the schema's order; raises Invalid for an unknown name."""
        if self.columns is None:
            return self.schema
        find = self.schema.find
        return self.schema.select([find(name, case_sensitive=self.case_sensitive).field_id for name in self.columns])

    def plan(self) -> ScanPlan:
        """Plan the files to read, in the order of the manifest list and of its manifests.

        Raises:
            Invalid: The filter or the columns do not fit the schema.
            FileNotFound: A file of the metadata tree is missing.
            CorruptTable: The metadata contradicts the specification.
        """
        _ = self.projection  # reports a wrong column before any file is read
        counters = Counters()
        planned = self.planner(counters).plan(self.snapshot)
        return self.assembled(planned, counters)

    def planner(self, counters: Counters) -> Planner:
        """A planner for this scan's filter."""
        at = "" if self.snapshot is None else f", snapshot {self.snapshot.snapshot_id}"
        return Planner(
            metadata=self.metadata,
            schema=self.schema,
            bound=self.bound,
            source=ManifestSource(
                store=self.store,
                runner=self.runner,
                cache=self.cache,
                needed_by=f"table {self.table_name or self.metadata.location}{at}",
            ),
            counters=counters,
            executors=self.executors,
            whole_files=self.whole_files,
            trace=self.trace,
        )

    def assembled(self, planned: PlannedEntries, counters: Counters) -> ScanPlan:
        """The plan of these entries."""
        known = self.metadata
        partitions = PlannedPartitions.of(known.partition_specs, self.schema, known.schemas)
        residuals, codes = _numbered_residuals(planned)
        listed = files_table([each.entries for each in planned.data], partitions)
        files = with_residuals(listed, residuals, codes)
        deletes = delete_file_structs(planned.deletes)
        return ScanPlan(
            files=with_deletes(files, deletes, planned.matches),
            counters=counters.as_dict(),
            snapshot=self.snapshot,
            schema=self.schema,
            projection=self.projection,
            predicate=self.bound,
            metadata=self.metadata,
            residuals=residuals,
            residual_codes=codes,
            modes=planned.modes,
        )


def _sum(files: pa.Table, column: str) -> int:
    return sum(int(values_of(chunk).sum()) for chunk in files.column(column).chunks)


def _numbered_residuals(planned: PlannedEntries) -> tuple[tuple[BoundPredicate, ...], Int64Array]:
    """The distinct residuals of all manifests, and the index of each file's residual."""
    numbers: dict[BoundPredicate, int] = {}
    codes = []
    for each in planned.data:
        own = [numbers.setdefault(residual, len(numbers)) for residual in each.residuals]
        codes.append(np.array(own, np.int64)[each.residual])
    return tuple(numbers), np.concatenate(codes) if codes else np.zeros(0, np.int64)


def as_predicate(filter: Filter | None, schema: Schema) -> Predicate:
    """A filter of rows of `schema`, given as text, made by `icebench.col`, or as an expression of pyarrow or PyIceberg;
    None keeps every row. Raises Invalid for anything else, Unsupported for an expression without an equivalent here."""
    if filter is None:
        return TRUE
    if isinstance(filter, Predicate):
        return filter
    return parse.parse(filter) if isinstance(filter, str) else foreign_filters.to_predicate(filter, schema)


def table_scan(
    metadata: TableMetadata,
    store: Store,
    *,
    filter: Filter | None = None,
    columns: Sequence[str] | None = None,
    snapshot_id: int | None = None,
    ref: str | None = None,
    as_of: AsOf | None = None,
    case_sensitive: bool = True,
    runner: Runner | None = None,
    cache: ManifestCache | None = None,
    table_name: str | None = None,
) -> TableScan:
    """A scan of a table.

    Args:
        metadata: The table.
        store: Its storage.
        filter: SQL-like text or an expression; see `icebench.engine.expressions.parse`. None keeps every row.
        columns: Full names of the columns to return; None for all.
        snapshot_id: A snapshot to read.
        ref: A branch or tag to read.
        as_of: A time to read the table at. At most one of these three; without any, the current snapshot.
        case_sensitive: Whether names in filter and columns are case-sensitive.
        runner: Runs work on manifests in parallel; see `icebench.engine.storage.resolve.default_runner`.
        cache: Keeps decoded manifests from one plan to the next; None decodes them anew.
        table_name: For messages.

    Raises:
        Invalid: The filter is wrong, or more than one of `snapshot_id`, `ref` and `as_of` is set.
        Unsupported: SQL that filters do not support.
        NotFound: No such snapshot or reference.
    """
    selected = select(metadata, snapshot_id=snapshot_id, ref=ref, as_of=as_of)
    return TableScan(
        metadata=metadata,
        store=store,
        selected=selected,
        predicate=as_predicate(filter, selected.schema),
        columns=None if columns is None else list_of_names(columns, "columns"),
        case_sensitive=case_sensitive,
        runner=runner or default_runner(store, metadata.location),
        cache=cache,
        table_name=table_name,
    )
