"""Merges a Spark DataFrame by key: executors match and write, the driver plans and commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from engine.columnar.rows import RowMatcher
from engine.commit.committer import TableState
from engine.commit.target import Target
from engine.deletes.files import FileRead
from engine.expressions.predicate import Predicate, all_of
from engine.lazy_module import LazyModule
from engine.operations.executor_changes import changed_there, described, grouped, writer_of_task
from engine.operations.row_changes import Mode, RowChange, chosen_mode
from engine.operations.row_writer import ChangedFiles, Matches, RowWriter
from engine.operations.upsert import check_complete, is_searchable, key_columns, refuse_null, refuse_repeated
from engine.plan.scan import TableScan
from engine.read.matches import rows_at
from engine.read.plans import planned_files
from engine.spec.data_file import DataFile
from engine.spec.metadata import TableMetadata
from engine.spec.properties import MERGE_ISOLATION, MERGE_MODE
from engine.spec.schema import Schema
from engine.spec.snapshots import MAIN, Snapshot
from engine.write.data_files import remove_files_of, written_schema

if TYPE_CHECKING:
    from engine.spark import jobs, keyed_frame
    from engine.spark import writer as spark_writer
else:  # PySpark is loaded already where the caller has a DataFrame
    jobs = LazyModule("engine.spark.jobs")
    keyed_frame = LazyModule("engine.spark.keyed_frame")
    spark_writer = LazyModule("engine.spark.writer")


def upsert_frame(
    target: Target,
    scan_of: Callable[[TableMetadata, Predicate], TableScan],
    frame: Any,  # noqa: ANN401 - Spark's own types are at home in `engine.spark` alone
    on: Sequence[str],
    *,
    mode: Mode | None = None,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableState, Snapshot | None]:
    """Merge the rows of a DataFrame, as `engine.operations.upsert.upsert` does.

    The DataFrame runs once, and executors keep its rows until the end. Executors find the table's rows by a join on the
    keys, and write position deletes, deletion vectors or remaining rows, in one task a group of data files; then they
    write the DataFrame's rows as an append does. The driver holds the plan, and the entries of new files.
    """
    state = target.load()
    metadata = state.metadata
    chosen = chosen_mode(mode, metadata, MERGE_MODE, "upsert")
    keys = key_columns(on, metadata.schema)
    incoming = spark_writer.incoming_schema(frame)
    check_complete(incoming.names, metadata.schema)
    RowMatcher(incoming, metadata.schema)
    source = keyed_frame.KeyedFrame.of(frame, Schema(keys), [key.name for key in keys if is_searchable(key)])
    try:
        rows, nulls, values = source.summary()
        if not rows:
            return state, None
        for name, count in nulls.items():
            refuse_null(name, count)
        refuse_repeated(source.repeated_key())
        scan = scan_of(metadata, all_of([each.filter(name) for name, each in values.items()]))
        change = RowChange.of(
            target, scan, mode=chosen, isolation=MERGE_ISOLATION, branch=branch, properties=properties
        )
        writer = change.writer()
        try:
            matched = source.matched(change.plan, target.store, rows=rows, table_name=scan.table_name)
            try:
                files = list(planned_files(change.plan))
                changed, added = _changed(matched, files, writer), _written(matched, writer)
            finally:
                matched.release()
        except BaseException:
            remove_files_of(writer.store, metadata, writer.names)
            raise
    finally:
        source.release()
    return change.commit(changed, added=added)


def _changed(matched: keyed_frame.MatchedFrame, planned: Sequence[FileRead], writer: RowWriter) -> ChangedFiles:
    """Delete the matched rows of the table."""
    found = matched.counts
    files = [file for file in planned if file.file_path in found]
    cores = matched.rows.sparkSession.sparkContext.defaultParallelism
    groups = list(grouped(files, cores))
    if not groups:
        return ChangedFiles()
    positions = matched.positions([[file.file_path for file in group] for group in groups])
    work = _PositionsTask(writer.portable())
    return changed_there(jobs.run_job_on_rows(positions, work, list(enumerate(groups))), files, writer)


def _written(matched: keyed_frame.MatchedFrame, writer: RowWriter) -> Sequence[DataFile]:
    """Write the rows of the DataFrame."""
    metadata = writer.metadata
    return spark_writer.write_dataframe(
        matched.written(None if writer.assigned is None else writer.assigned[0]),
        metadata=metadata,
        store=writer.store,
        schema=written_schema(metadata),
        names=writer.names,
        counters=writer.counters,
    )


@dataclass(frozen=True)
class _PositionsTask:
    """The task of an executor: deletes rows of a group of files, given as the place of the file and the position."""

    writer: RowWriter

    def __call__(self, rows: pa.Table, group: tuple[int, tuple[FileRead, ...]], attempt: int) -> bytes:
        number, files = group
        own = writer_of_task(self.writer, number, attempt)
        places, positions = (rows.column(at).to_numpy() for at in (1, 2))
        by_path = {file.file_path: np.sort(positions[places == place]) for place, file in enumerate(files)}
        matches = Matches.of(list(rows_at(files, by_path, own.request, runner=own.runner)))
        return described(own.changed(matches), own)
