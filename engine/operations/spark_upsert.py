"""Merges a Spark DataFrame by key: executors match and write, the driver plans and commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from icebench.engine.columnar.rows import RowMatcher
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.deletes.files import FileRead
from icebench.engine.expressions.predicate import Predicate, all_of
from icebench.engine.lazy_module import LazyModule
from icebench.engine.operations.executor_changes import changed_there, described, grouped, writer_of_task
from icebench.engine.operations.row_changes import Mode, RowChange, chosen_mode
from icebench.engine.operations.row_writer import ChangedFiles, Matches, RowWriter
from icebench.engine.operations.upsert import check_complete, is_searchable, key_columns, refuse_null, refuse_repeated
from icebench.engine.plan.scan import TableScan
from icebench.engine.read.matches import rows_at
from icebench.engine.read.plans import planned_files
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import MERGE_ISOLATION, MERGE_MODE
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN, Snapshot
from icebench.engine.write.data_files import remove_files_of, written_schema

if TYPE_CHECKING:
    from icebench.engine.spark import frame_writer, jobs, keyed_frame, memory
else:  # PySpark is loaded already where the caller has a DataFrame
    jobs = LazyModule("icebench.engine.spark.jobs")
    keyed_frame = LazyModule("icebench.engine.spark.keyed_frame")
    memory = LazyModule("icebench.engine.spark.memory")
    frame_writer = LazyModule("icebench.engine.spark.frame_writer")


def upsert_frame(
    target: Target,
    scan_of: Callable[[TableMetadata, Predicate], TableScan],
    frame: Any,  # noqa: ANN401 - Spark's own types are at home in `engine.spark` alone
    on: Sequence[str] | None,
    *,
    mode: Mode | None = None,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableState, Snapshot | None]:
    """Merge the rows of a DataFrame, as `icebench.engine.operations.upsert.upsert` does.

    The DataFrame runs once, and executors keep its rows until the end. Executors find the table's rows by a join on the
    keys, and write position deletes, deletion vectors or remaining rows, in one task per group of data files; then they
    write the DataFrame's rows as an append does. The driver holds the plan, and the entries of new files.
    """
    state = target.load()
    metadata = state.metadata
    chosen = chosen_mode(mode, metadata, MERGE_MODE)
    keys = key_columns(on, metadata.schema)
    incoming = frame_writer.incoming_schema(frame)
    check_complete(incoming.names, metadata.schema)
    RowMatcher(incoming, metadata.schema)
    source = keyed_frame.KeyedFrame.of(frame, Schema(keys), [key.name for key in keys if is_searchable(key)])
    try:
        summary = source.summary()
        if not summary.rows:
            return state, None
        for name, count in summary.nulls.items():
            refuse_null(name, count)
        refuse_repeated(summary.repeated)
        scan = scan_of(metadata, all_of([each.filter(name) for name, each in summary.values.items()]))
        change = RowChange.of(
            target, scan, mode=chosen, isolation=MERGE_ISOLATION, branch=branch, properties=properties
        )
        writer = change.writer()
        try:
            matched = source.matched(change.plan, target.store, rows=summary.rows, table_name=scan.table_name)
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


def _changed(matched: keyed_frame.MatchedFrame, files: Sequence[FileRead], writer: RowWriter) -> ChangedFiles:
    """Delete the matched rows of the table."""
    if not files:
        return ChangedFiles()
    spark = matched.rows.sparkSession
    tasks = len(list(grouped(files, spark.sparkContext.defaultParallelism)))
    by_path = {file.file_path: file for file in files}
    work = _PositionsTask(writer.portable(memory.row_memory_bytes(spark)))
    answers = jobs.run_job_on_rows(matched.positions(tasks), work, by_path)
    return changed_there(answers, files, writer)


def _written(matched: keyed_frame.MatchedFrame, writer: RowWriter) -> Sequence[DataFile]:
    """Write the rows of the DataFrame."""
    metadata = writer.metadata
    return frame_writer.write_dataframe(
        matched.written(None if writer.assigned is None else writer.assigned[0]),
        metadata=metadata,
        store=writer.store,
        schema=written_schema(metadata),
        names=writer.names,
        counters=writer.counters,
    )


@dataclass(frozen=True)
class _PositionsTask:
    """The task of an executor: deletes rows of data files, given by their positions."""

    writer: RowWriter

    def __call__(self, found: Sequence[tuple[FileRead, pa.Table]], number: int, attempt: int) -> bytes:
        own = writer_of_task(self.writer, number, attempt)
        positions = {file.file_path: np.unique(rows.column(1).to_numpy()) for file, rows in found}
        matches = Matches.of(list(rows_at([file for file, _ in found], positions, own.request, runner=own.runner)))
        return described(own.changed(matches), own)
