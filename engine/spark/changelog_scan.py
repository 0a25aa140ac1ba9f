"""A changelog as a DataFrame that executors produce with the Arrow reader.

The driver plans the changes of each snapshot. Rows that a snapshot removes and adds are matched with each other, in
whichever files they are, so a snapshot is one task; a snapshot that only adds data files, or only removes some, has
nothing to match and is divided into tasks by size. Net changes match the rows of all snapshots and are one task.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icebench.engine.codec.array_views import Int64Array
from icebench.engine.plan.changes import SnapshotChanges
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.plan.tasks import TaskPacking
from icebench.engine.read.changelog import ChangelogScan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spark.arrow_batches import spark_batch, spark_schema
from icebench.engine.spark.workers import prepare_worker
from icebench.engine.spec.metadata import TableMetadata

_THREADS = 1
"""Of a task: Spark runs as many tasks at once as it has cores."""


def changelog_to_dataframe(spark: SparkSession, scan: ChangelogScan, *, split_bytes: int | None = None) -> DataFrame:
    """The changes as a DataFrame of the session `spark`, whose settings are left unchanged.

    The changelog is planned at once and stays at its snapshots; no data is read before the DataFrame runs. Counters do
    not include the executors' reads.

    Args:
        spark: The user's session.
        scan: The changelog; the columns are those of `ChangelogScan.schema`, with uuid as string.
        split_bytes: Target size of a task where the files of a snapshot can be divided; None uses the table's
            ``read.split.target-size``.

    Raises:
        NotFound: The parent of a snapshot that removes rows was expired.
        Unsupported: A column's type does not exist in Spark, or executors cannot reach the storage.
        From the DataFrame: a Spark error with the message that `ChangelogScan.to_batches` would raise.
    """
    schema = spark_schema(scan.schema)
    changes = list(scan.plan())
    split_bytes = TaskPacking.of(scan.scan.metadata.properties, split_bytes).split_bytes
    groups = [changes] if scan.net_changes else [[part] for change in changes for part in _parts(change, split_bytes)]
    task = _Task(
        scan=pickle.dumps(replace(scan.scan, runner=LocalRunner(_THREADS), cache=None, executors=None)),
        net_changes=scan.net_changes,
        identifier_columns=scan.identifier_columns,
        compute_updates=scan.compute_updates,
        groups=[pickle.dumps([_sent(change) for change in group]) for group in groups if group],
    )
    if not task.groups:
        return spark.createDataFrame([], schema)
    return spark.range(0, len(task.groups), 1, len(task.groups)).mapInArrow(task, schema)


@dataclass(frozen=True, kw_only=True)
class _PlannedChangelog(ChangelogScan):
    """A changelog that was planned on the driver."""

    changes: Sequence[SnapshotChanges] = field(default_factory=list)

    def plan(self) -> Iterator[SnapshotChanges]:
        return iter(self.changes)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """The function that executors run. Each group of changes is one task and is unpickled by that task alone."""

    scan: bytes
    net_changes: bool
    identifier_columns: tuple[str, ...] | None
    compute_updates: bool
    groups: Sequence[bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        scan: TableScan = pickle.loads(self.scan)  # noqa: S301 - the driver's own, as the next
        for batch in batches:
            for number in batch.column(0).to_pylist():
                sent = pickle.loads(self.groups[number])  # noqa: S301
                changelog = _PlannedChangelog(
                    scan=scan,
                    span=(),
                    net_changes=self.net_changes,
                    identifier_columns=self.identifier_columns,
                    compute_updates=self.compute_updates,
                    changes=[_received(change, scan.metadata) for change in sent],
                )
                for made in changelog.to_batches():
                    yield spark_batch(made, changelog.schema)


def _parts(change: SnapshotChanges, split_bytes: int) -> Iterator[SnapshotChanges]:
    """The changes of a snapshot in groups that can be processed independently."""
    if len(change.changed_before) or (len(change.added) and len(change.removed)):
        yield change
        return
    none = np.zeros(0, np.int64)
    for rows in _divided(change.after, change.added, split_bytes):
        yield replace(change, before=None, added=rows, removed=none)
    if change.before is not None:
        for rows in _divided(change.before, change.removed, split_bytes):
            yield replace(change, added=none, removed=rows)


def _divided(plan: ScanPlan, rows: Int64Array, split_bytes: int) -> list[Int64Array]:
    """The rows of a plan's files, in groups of about `split_bytes`."""
    if not len(rows):
        return []
    sizes = plan.files.column("file_size_in_bytes").fill_null(0).to_numpy()[rows]
    places = np.cumsum(sizes) // split_bytes
    return np.split(rows, np.flatnonzero(np.diff(places)) + 1)


def _sent(change: SnapshotChanges) -> SnapshotChanges:
    """The changes of a snapshot with only the files that they refer to, and without what every task has anyway."""
    before, after = change.before, change.after
    if before is not None:
        before = _only(before, np.concatenate([change.removed, change.changed_before]))
    after = _only(after, np.concatenate([change.added, change.changed_after]))
    removed, added = len(change.removed), len(change.added)
    return replace(
        change,
        before=before,
        after=after,
        removed=np.arange(removed),
        added=np.arange(added),
        changed_before=removed + np.arange(len(change.changed_before)),
        changed_after=added + np.arange(len(change.changed_after)),
    )


def _only(plan: ScanPlan, rows: Int64Array) -> ScanPlan:
    return replace(
        plan,
        files=plan.files.take(pa.array(rows)),
        residual_codes=plan.residual_codes[rows],
        metadata=None,  # type: ignore[arg-type]  # `_received` gives it back
    )


def _received(change: SnapshotChanges, metadata: TableMetadata) -> SnapshotChanges:
    before = None if change.before is None else replace(change.before, metadata=metadata)
    return replace(change, before=before, after=replace(change.after, metadata=metadata))
