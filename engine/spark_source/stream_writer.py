"""The streaming writer of ``format("icebench")``: each micro-batch is committed exactly once.

The snapshot of a batch records the query's id, which Spark keeps in the checkpoint, and the batch's number. If Spark
runs a batch again, because the answer to its commit was lost or the query died between commit and checkpoint, the batch
is found in the branch's history and not committed again; the files written for the second attempt are deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as sd

from icebench.engine.errors import Unsupported
from icebench.engine.spark_source.batch_writer import SourceWrite, TaskFiles, task_files
from icebench.engine.write.locations import FileNames

_QUERY_ID, _BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties of a micro-batch's tasks: Spark gives the sink its number only at commit, and its query never."""


class StreamWriter(sd.DataSourceStreamArrowWriter):
    """Appends each micro-batch, or replaces all rows by it for ``outputMode("complete")``.

    Args:
        write: The write.
        overwrite: Whether each batch replaces all rows.

    Raises:
        Unsupported: An option that does not apply to streams.
    """

    def __init__(self, write: SourceWrite, *, overwrite: bool) -> None:
        self._write = write
        self._overwrite = overwrite
        options = write.options
        if options.merges_schema:
            raise Unsupported("merge-schema in a streaming write: its batches would add columns in any order")
        if options.overwrite_mode == "dynamic" or options.overwrite_filter is not None:
            raise Unsupported("overwriting some of the rows in a streaming write; use foreachBatch")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskFiles:
        """Write the rows of a task, on an executor."""
        # A batch that runs again after a restart has the same tasks with the same numbers: the id distinguishes files.
        manifest = self._write.written(iterator, FileNames())
        context = TaskContext.get()
        assert context is not None
        query_id, batch_id = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if query_id is None or batch_id is None:
            raise Unsupported("a streaming write outside of a streaming query: its batches could not be distinguished")
        return TaskFiles(manifest, (query_id, int(batch_id)))

    def commit(self, messages: Sequence[sd.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Commit a batch, unless the table has it; a batch without rows makes no snapshot."""
        streams = {m.stream for m in messages if isinstance(m, TaskFiles) and m.stream is not None}
        if not streams:
            return
        ((query_id, _),) = streams
        self._write.commit_batch(task_files(messages), query_id, batchId, overwrite=self._overwrite)

    def abort(self, messages: Sequence[sd.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Delete the files of the tasks. Where every task has a message, a commit was attempted, which has deleted them
        itself if that is safe."""
        if any(message is None for message in messages):
            self._write.discard(task_files(messages))
