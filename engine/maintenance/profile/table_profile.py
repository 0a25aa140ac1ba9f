"""Profiles a table from its metadata: computes all figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from icebench.engine.display import count_text, html_bars, html_fold, html_table, printable, size_text, some_lines
from icebench.engine.maintenance.profile.column_figures import column_figures
from icebench.engine.maintenance.profile.commits import Commits
from icebench.engine.maintenance.profile.figures import (
    AgeFigures,
    ColumnFigures,
    DeleteFigures,
    FileFigures,
    FooterFigures,
    HistoryFigures,
    ManifestFigures,
    OrderFigures,
    PartitionFigures,
    Reason,
    RowGroupFigures,
    SortOrderFigures,
    StatisticsFigures,
)
from icebench.engine.maintenance.profile.files import (
    age_figures,
    delete_figures,
    deleted_rows,
    file_figures,
    row_group_figures,
    sort_order_figures,
)
from icebench.engine.maintenance.profile.footers import footer_figures
from icebench.engine.maintenance.profile.health import Examined, find_reasons
from icebench.engine.maintenance.profile.live_files import load_live_files
from icebench.engine.maintenance.profile.order_check import order_figures
from icebench.engine.maintenance.profile.partitions import (
    PartitionPaths,
    manifest_figures,
    partition_figures,
    sorted_groups,
)
from icebench.engine.maintenance.profile.snapshot_figures import history_figures
from icebench.engine.maintenance.profile.statistics import distinct_values, partition_statistics, table_statistics
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.plan.manifests import ManifestSource
from icebench.engine.plan.scan import table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class TableProfile:
    """The profile of a table at one snapshot; docs/design/profile.md defines each figure.

    Args:
        name: The table's.
        location: Its directory.
        metadata_location: The metadata file.
        format_version: 1, 2 or 3.
        snapshot_id: The snapshot; None for a table without one.
        profiled_at_ms: When, in milliseconds since 1970; ages are as of this time.
        files: Data files.
        deletes: Delete files.
        partitions: Partitions; None for a table that has no partitioned spec.
        manifests: Manifests.
        row_groups: Row groups.
        ages: Ages of data files.
        sort_orders: Sort orders that files claim.
        columns: Columns, by id.
        history: Snapshots and metadata.
        reasons: What is wrong, most expensive first.
        table_statistics: Sketches of distinct values; None if there are none.
        partition_statistics: A partition statistics file; likewise.
        footers: What the files themselves say; None unless they were opened.
        order: Whether files keep the sort order that they claim; None unless a sample was read.
    """

    name: str
    location: str
    metadata_location: str
    format_version: int
    snapshot_id: int | None
    profiled_at_ms: int
    files: FileFigures
    deletes: DeleteFigures
    partitions: PartitionFigures | None
    manifests: ManifestFigures
    row_groups: RowGroupFigures
    ages: AgeFigures
    sort_orders: tuple[SortOrderFigures, ...]
    columns: tuple[ColumnFigures, ...]
    history: HistoryFigures
    reasons: tuple[Reason, ...]
    table_statistics: StatisticsFigures | None = None
    partition_statistics: StatisticsFigures | None = None
    footers: FooterFigures | None = None
    order: OrderFigures | None = None

    def __repr__(self) -> str:
        return "\n".join([f"TableProfile({self._title()})", *some_lines([f"  {text}" for text in self._problems()])])

    def _repr_html_(self) -> str:
        sizes = self.files.histogram
        parts = [
            html_table(("costs most", "what to do", "gain"), [(r.statement, r.action, r.gain) for r in self.reasons]),
            html_fold(
                "Data files by size",
                [html_bars([(f"from {size_text(low)}", n) for low, n in zip(sizes.lower, sizes.files, strict=False)])],
            ),
            html_fold(
                "Columns",
                [
                    html_table(
                        ("column", "type", "bytes", "files without bounds", "distinct values"),
                        [
                            (c.name, c.type, c.data_bytes, c.files_without_bounds, c.distinct_values)
                            for c in self.columns
                        ],
                    )
                ],
            ),
        ]
        return html_fold(f"Profile of {self._title()}", parts, is_open=True)

    def _title(self) -> str:
        files, deletes = self.files, self.deletes.deleted_records
        said = [count_text(files.records, "row"), count_text(files.files, "data file"), size_text(files.size_bytes)]
        said += [f"{deletes:,} deleted"] if deletes else []
        return ", ".join([printable(self.name), f"format {self.format_version}", *said])

    def _problems(self) -> list[str]:
        if not self.reasons:
            return ["nothing to do"]
        return [printable(f"{each.statement}; {each.action}: {each.gain}", 300) for each in self.reasons]

    def to_dict(self) -> dict[str, Any]:
        """All figures as dictionaries, lists and plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A loaded table to profile; read only.

    Args:
        name: Its name.
        metadata: The loaded state.
        metadata_location: Its file.
        store: Its storage.
        cache: Its decoded manifests.
        runner: Decodes manifests and compares columns in parallel.
    """

    name: str
    metadata: TableMetadata
    metadata_location: str
    store: Store
    cache: ManifestCache | None = None
    runner: Runner = field(default_factory=LocalRunner)


def profile_table(
    subject: Subject,
    snapshot: Snapshot | None,
    now_ms: int,
    *,
    by_column: bool = True,
    deep: bool = False,
    sample_files: int = 0,
) -> TableProfile:
    """Profile a snapshot from its metadata and, if `deep`, from the footers of its data files; without figures of
    columns unless `by_column`.

    Up to `sample_files` files with a recorded sort order are read, to check whether their rows are in that order.

    Raises:
        CorruptTable, FileNotFound, Unsupported: As a plan of the snapshot.
    """
    metadata, runner = subject.metadata, subject.runner
    source = ManifestSource(store=subject.store, runner=runner, cache=subject.cache, needed_by=f"table {subject.name}")
    manifests = () if snapshot is None else source.manifests_of(snapshot)
    files = load_live_files(manifests, source, runner, metadata)
    paths = PartitionPaths(files, metadata)
    deleted = deleted_rows(files)
    commits = Commits.before(snapshot, metadata)
    data = file_figures(files, metadata, deleted, commits)
    is_partitioned = any(not spec.is_unpartitioned for spec in metadata.partition_specs)
    examined = Examined(
        metadata=metadata,
        files=data,
        deletes=delete_figures(files, deleted, metadata, commits),
        partitions=partition_figures(files, paths, data.smallest_bytes) if is_partitioned else None,
        manifests=manifest_figures(files, metadata, commits),
        columns=(),
        history=history_figures(metadata, subject.metadata_location, subject.store, now_ms),
        sorted_groups=sorted_groups(files),
    )
    row_groups = row_group_figures(files)
    ages = age_figures(files, metadata, now_ms)
    sort_orders = sort_order_figures(files, metadata)
    uncached = replace(source, cache=None)
    columns: tuple[ColumnFigures, ...] = ()
    if by_column:
        distinct = distinct_values(metadata, snapshot)
        columns = tuple(
            replace(each, distinct_values=distinct[each.field_id]) if each.field_id in distinct else each
            for each in column_figures(files, uncached, runner, metadata, paths)
        )
    examined = replace(examined, columns=columns)
    return TableProfile(
        name=subject.name,
        location=metadata.location,
        metadata_location=subject.metadata_location,
        format_version=metadata.format_version,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        profiled_at_ms=now_ms,
        files=data,
        deletes=examined.deletes,
        partitions=examined.partitions,
        manifests=examined.manifests,
        row_groups=row_groups,
        ages=ages,
        sort_orders=sort_orders,
        columns=columns,
        history=examined.history,
        reasons=find_reasons(examined),
        table_statistics=table_statistics(metadata, snapshot),
        partition_statistics=partition_statistics(metadata, snapshot),
        footers=footer_figures(files, uncached, runner, metadata) if deep else None,
        order=_order(subject, snapshot, sample_files),
    )


def _order(subject: Subject, snapshot: Snapshot | None, sample_files: int) -> OrderFigures | None:
    if not sample_files or snapshot is None:
        return None
    scan = table_scan(
        subject.metadata,
        subject.store,
        snapshot_id=snapshot.snapshot_id,
        runner=subject.runner,
        cache=subject.cache,
        table_name=subject.name,
    )
    return order_figures(scan.plan(), subject.store, subject.runner, sample_files)
