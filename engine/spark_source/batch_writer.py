"""The batch writer of ``format("icebench")``: executors write files, the driver commits them.

Spark creates the writer on the driver, sends it to the executors, and later unpickles it in another process of the
driver, to commit or to abort; no state is kept between the two but what it was created with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import datasource as sd
from pyspark.sql import types as st

from icebench.engine.codec.manifests.encoded_files import EncodedFiles
from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.commit.committed_batches import BATCH_ID, STREAM_ID, has_batch
from icebench.engine.errors import CommitStateUnknown, EngineError, Invalid, ValidationFailed
from icebench.engine.expressions.binding import bind
from icebench.engine.operations.row_operations import RowOperations
from icebench.engine.operations.row_source import WrittenRows
from icebench.engine.plan.scan import as_predicate
from icebench.engine.spark.frame_writer import WriteTask, arrow_schema
from icebench.engine.spark_source.options import WriteOptions, refuse_distribution
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import ACCEPT_ANY_SCHEMA
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import UUID
from icebench.engine.spec.values import parse_uuid
from icebench.engine.table import Table
from icebench.engine.write.data_files import remove_files_of
from icebench.engine.write.locations import FileNames


@dataclass(frozen=True, slots=True)
class TaskFiles(sd.WriterCommitMessage):
    """The files that a task wrote.

    Args:
        manifest: Their manifest entries; None for no rows.
        stream: The streaming query and the number of the batch.
    """

    manifest: bytes | None
    stream: tuple[str, int] | None = None


class SourceWrite:
    """One write: what tasks do, and what happens to their files.

    Args:
        options: The table and how to write.
        rows: The columns of the rows.

    Raises:
        Invalid: The columns do not fit the table.
        Unsupported: A distribution of rows.
    """

    def __init__(self, options: WriteOptions, rows: st.StructType) -> None:
        self.options = options
        table = options.place.load()
        refuse_distribution({**table.properties, **options.properties})
        self.incoming = from_arrow_schema(arrow_schema(rows)) if options.merges_schema else None
        metadata = table.metadata if self.incoming is None else merged_metadata(table, self.incoming)
        bind(
            as_predicate(options.overwrite_filter, metadata.schema), metadata.schema
        )  # an invalid filter raises before rows are written
        self.names = FileNames()
        self.task = WriteTask(
            metadata=replace(metadata, properties={**metadata.properties, **options.properties}),
            schema=metadata.schema,
            spec=metadata.spec,
            names=self.names,
            mode="auto",
            sorted_by=None,
            store=table.store,
        )

    def written(self, batches: Iterator[pa.RecordBatch], names: FileNames) -> bytes | None:
        """Write the rows of a task, on an executor."""
        uuids = {f.name for f in self.task.schema.fields if f.type == UUID}
        return self.task.written((_with_uuids(batch, uuids) for batch in batches), names)

    def commit(self, files: Sequence[DataFile], *, overwrite: bool) -> None:
        """Commit the files in one snapshot.

        Raises:
            ValidationFailed: Another table has the name now, or another commit changed the schema while columns were
                added.
            CommitFailed: See `icebench.engine.errors`; the files are deleted unless the commit may have succeeded.
        """
        with self._kept_if_unknown(files):
            self._commit(self._rows(files), overwrite=overwrite)

    def _commit(self, rows: WrittenRows, *, overwrite: bool) -> None:
        table, incoming = self.options.place.load(), self.incoming
        if incoming is None:
            self._change(table, rows, overwrite=overwrite)
            return
        with table.transaction() as transaction:
            transaction.update_schema(lambda update: update.union_by_name(incoming))
            if transaction.metadata.schema.fields != self.task.schema.fields:
                raise ValidationFailed(
                    "another commit changed the schema while the rows were written; write them again"
                )
            self._change(transaction, rows, overwrite=overwrite)

    def commit_batch(self, files: Sequence[DataFile], query_id: str, batch_id: int, *, overwrite: bool) -> None:
        """Commit a micro-batch, or delete its files where the table has the batch already; errors as `commit`."""
        with self._kept_if_unknown(files):
            if not self._commit_batch(self._rows(files), query_id, batch_id, overwrite=overwrite):
                self.discard(files)

    def _commit_batch(self, rows: WrittenRows, query_id: str, batch_id: int, *, overwrite: bool) -> bool:
        options = self.options
        table = options.place.load()
        branch, summary = options.branch, options.snapshot_properties
        if not overwrite:
            done = table.append_batch(
                rows, stream_id=query_id, batch_id=batch_id, branch=branch, snapshot_properties=summary
            )
            return done is not None
        # To replace all rows by the same rows twice is harmless, so neither every attempt nor an unknown batch matters.
        with suppress(ValidationFailed):
            if has_batch(table.metadata, branch, query_id, batch_id, table.store):
                return False
        marked = {**summary, STREAM_ID: query_id, BATCH_ID: str(batch_id)}
        with table.transaction() as transaction:
            transaction.overwrite(rows, branch=branch, snapshot_properties=marked)
            transaction.set_last_batch(query_id, batch_id, branch=branch)
        return True

    def _rows(self, files: Sequence[DataFile]) -> WrittenRows:
        return WrittenRows(tuple(files), self.task.metadata.table_uuid, self.task.schema)

    @contextmanager
    def _kept_if_unknown(self, files: Sequence[DataFile]) -> Iterator[None]:
        """Context manager: deletes the files where the commit certainly failed, even before it used them."""
        try:
            yield
        except CommitStateUnknown:
            raise
        except EngineError:
            self.discard(files)
            raise

    def discard(self, files: Sequence[DataFile]) -> None:
        """Delete files that nothing refers to, as far as the storage allows."""
        store = self.task.store
        for file in files:
            with suppress(EngineError):
                store.delete(file.file_path)

    def _change(self, table: RowOperations, rows: WrittenRows, *, overwrite: bool) -> None:
        options = self.options
        summary = options.snapshot_properties
        if not overwrite:
            table.append(rows, branch=options.branch, snapshot_properties=summary)
        elif options.overwrite_mode == "dynamic":
            table.overwrite_partitions(rows, branch=options.branch, snapshot_properties=summary)
        else:
            table.overwrite(rows, options.overwrite_filter, branch=options.branch, snapshot_properties=summary)


class BatchWriter(sd.DataSourceArrowWriter):
    """Appends, or overwrites for ``mode("overwrite")``.

    Args:
        write: The write.
        overwrite: Whether to replace rows.
    """

    def __init__(self, write: SourceWrite, *, overwrite: bool) -> None:
        self._write = write
        self._overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskFiles:
        """Write the rows of a task, on an executor."""
        return TaskFiles(self._write.written(iterator, self._write.names))

    def commit(self, messages: Sequence[sd.WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks; an append without rows makes no snapshot."""
        files = task_files(messages)
        if files or self._overwrite:
            self._write.commit(files, overwrite=self._overwrite)

    def abort(self, messages: Sequence[sd.WriterCommitMessage | None]) -> None:
        """Delete the files of the tasks.

        Spark also aborts after a commit that failed: then every task has a message, the commit has deleted the files
        itself if it is certain that they are not visible, and if it is not certain, nothing may be deleted.
        """
        if any(message is None for message in messages):
            task = self._write.task
            remove_files_of(task.store, task.metadata, self._write.names)


def task_files(messages: Sequence[sd.WriterCommitMessage | None]) -> Sequence[DataFile]:
    """The files of all tasks."""
    found = (message.manifest for message in messages if isinstance(message, TaskFiles))
    return EncodedFiles(manifest for manifest in found if manifest is not None)


def merged_metadata(table: Table, incoming: Schema) -> TableMetadata:
    """The table's metadata with the columns that an append with merge_schema would add.

    Raises:
        Invalid: The table does not allow it, or the types of a column are incompatible.
    """
    if not ACCEPT_ANY_SCHEMA.of(table.properties):
        raise Invalid(f"merging schemas needs table property {ACCEPT_ANY_SCHEMA.name}=true")
    draft = table.transaction()
    try:
        return draft.update_schema(lambda update: update.union_by_name(incoming)).metadata
    finally:
        draft.discard()


def _with_uuids(batch: pa.RecordBatch, names: set[str]) -> pa.RecordBatch:
    """The batch with uuid columns that are strings, as scans return them, converted to 16 bytes."""
    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if field.name in names and _is_text(field.type):
            columns.append(_uuid_bytes(column, field.name))
        else:
            columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _uuid_bytes(column: pa.Array, name: str) -> pa.Array:
    try:
        values = [None if text is None else parse_uuid(text).bytes for text in column.to_pylist()]
    except ValueError as error:
        raise Invalid(f"column {name!r}: {error}") from error
    return pa.array(values, pa.binary(16))


def _is_text(type_: pa.DataType) -> bool:
    """Whether this is one of Arrow's types of strings; which Spark hands over depends on its settings."""
    return pat.is_string(type_) or pat.is_large_string(type_) or pat.is_string_view(type_)
