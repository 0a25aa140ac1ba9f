"""Writes a Spark DataFrame as data files: executors write, the driver collects the files' manifest entries.

Each task writes its rows by the code that writes Arrow data, and sends one small manifest to the driver: the entries of
its files as compressed Avro, so that wide tables do not fill the driver's memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from icebench.engine.codec.manifests.encoded_files import EncodedFiles, encode_files
from icebench.engine.errors import Invalid
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.spark.distribution import distributed
from icebench.engine.spark.jobs import carried_errors, carried_text, errors_of_executors, wait_for_tasks
from icebench.engine.spark.memory import row_memory_bytes
from icebench.engine.spark.types import quoted
from icebench.engine.spark.workers import prepare_worker
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.properties import DISTRIBUTION_MODE
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.types import UUID
from icebench.engine.spec.values import UUID_DIGITS, UUID_MARKS
from icebench.engine.storage.store import Store
from icebench.engine.write.data_files import remove_files_of, write_data_files
from icebench.engine.write.locations import FileNames

_BATCH_ROWS = 1 << 17
"""Spark hands over batches of 10,000 rows; this many go to the writer at once."""


def write_dataframe(
    frame: DataFrame,
    *,
    metadata: TableMetadata,
    store: Store,
    schema: Schema | None = None,
    spec: PartitionSpec | None = None,
    names: FileNames | None = None,
    properties: Mapping[str, str] | None = None,
    counters: Counters | None = None,
) -> Sequence[DataFile]:
    """Write the rows of a DataFrame as new data files, on the executors.

    Args:
        frame: The rows; columns are matched by name. uuid columns are strings or 16 bytes.
        metadata: The table; its properties apply, ``write.distribution-mode`` among them.
        store: The table's storage; executors get a copy.
        schema: The schema to write; the current one by default.
        spec: The partition spec to write; the default one by default.
        names: Unique file names; task numbers are filled in.
        properties: Override the table's properties for this write.
        counters: Counts the files.

    Returns:
        The files, in the order of Spark's tasks.

    Raises:
        Invalid: The rows do not fit the table.
        EngineError: As an executor raised it; other errors of executors are Spark's PythonException. Written files are
            removed as far as the storage allows.
    """
    own_schema, own_spec = schema or metadata.schema, spec or metadata.spec
    options = {**metadata.properties, **(properties or {})}
    own_names = names or FileNames()
    mode = DISTRIBUTION_MODE.of(options)
    order = metadata.sort_order
    spread = distributed(with_uuids(frame, own_schema), mode, own_schema, own_spec, order)
    is_sorted = mode != "none" and not order.is_unsorted and bool(own_spec.fields or mode == "range")
    task = WriteTask(
        columns=spread.columns,
        metadata=replace(metadata, properties=options),
        schema=own_schema,
        spec=own_spec,
        names=own_names,
        mode="auto" if mode == "none" else "clustered",
        sorted_by=order if is_sorted else None,
        store=store,
        memory_bytes=row_memory_bytes(frame.sparkSession),
    )
    try:
        with errors_of_executors():
            # Numbered, for mapInArrow finds no column whose name has a dot.
            numbered = spread.toDF(*[f"c{i}" for i in range(len(spread.columns))])
            rows = numbered.mapInArrow(task, st.StructType([st.StructField("manifest", st.BinaryType())])).collect()
    except BaseException:
        wait_for_tasks(frame.sparkSession)
        remove_files_of(store, task.metadata, own_names)
        raise
    files = EncodedFiles(bytes(row[0]) for row in rows)
    if counters is not None:
        counters.add(FILES_WRITTEN, len(files))
    return files


class WriteTask:
    """The function that executors run for the rows of a task.

    Args:
        metadata: The table.
        schema: The schema to write.
        spec: The partition spec to write.
        names: Unique file names; the task's numbers are filled in.
        mode: See `icebench.engine.write.data_files.write_data_files`.
        sorted_by: See `icebench.engine.write.data_files.write_data_files`.
        store: The table's storage; the executor gets a copy.
        columns: The names of the rows' columns; by default those that they have.
        memory_bytes: See `icebench.engine.write.data_files.write_data_files`.
    """

    def __init__(
        self,
        *,
        metadata: TableMetadata,
        schema: Schema,
        spec: PartitionSpec,
        names: FileNames,
        mode: Literal["auto", "clustered"],
        sorted_by: SortOrder | None,
        store: Store,
        columns: Sequence[str] | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        self.metadata = metadata.without_history()
        self.schema = schema
        self.spec = spec
        self.names = names
        self.mode = mode
        self.sorted_by = sorted_by
        self.store = store
        self.columns = columns
        self.memory_bytes = memory_bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The task's manifest as a batch of one row; no batch for no rows."""
        with carried_errors():
            data = self.written(batches, self.names)
        if data is not None:
            yield pa.RecordBatch.from_pydict({"manifest": pa.array([data], pa.binary())})

    def written(self, batches: Iterable[pa.RecordBatch], names: FileNames) -> bytes | None:
        """Write the rows of this task; returns the entries of its files as a manifest, None for no rows."""
        prepare_worker()
        columns = self.columns
        rest = iter(batches if columns is None else (batch.rename_columns(columns) for batch in batches))
        first = next(rest, None)
        if first is None:
            return None
        context = TaskContext.get()
        assert context is not None
        reader = pa.RecordBatchReader.from_batches(first.schema, _joined(first, rest))
        files = write_data_files(
            reader,
            metadata=self.metadata,
            store=self.store,
            schema=self.schema,
            spec=self.spec,
            names=replace(names, partition_id=context.partitionId(), task_id=context.taskAttemptId()),
            mode=self.mode,
            sorted_by=self.sorted_by,
            memory_bytes=self.memory_bytes,
        )
        return encode_files(files, schema=self.schema, spec=self.spec)


def incoming_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a DataFrame as an Arrow schema."""
    schema: pa.Schema = to_arrow_schema(frame.schema)
    return schema


def _joined(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches."""
    waiting, rows = [first], first.num_rows
    for batch in rest:
        if rows >= _BATCH_ROWS:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows = [], 0
        waiting.append(batch)
        rows += batch.num_rows
    yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def with_uuids(frame: DataFrame, schema: Schema) -> DataFrame:
    """The rows with uuid columns that are strings, as scans return them, converted to 16 bytes.

    A text that is no uuid fails the job that reads it; `errors_of_executors` then raises Invalid, which names the
    column.
    """
    texts = {f.name for f in frame.schema.fields if isinstance(f.dataType, st.StringType)}
    uuids = {f.name for f in schema.fields if f.type == UUID} & texts
    if not uuids:
        return frame
    return frame.select(*[_uuid_bytes(name) if name in uuids else F.col(quoted(name)) for name in frame.columns])


def _uuid_bytes(name: str) -> Column:
    plain = F.col(quoted(name))
    digits = F.regexp_replace(plain, UUID_MARKS, "")
    # unhex gives null for other text, and fills up an odd number of digits.
    error = F.raise_error(F.lit(carried_text(Invalid(f"column {name!r}: a text is not a uuid"))))
    is_uuid = digits.rlike(rf"\A{UUID_DIGITS}\z")
    return F.when(is_uuid, F.unhex(digits)).when(plain.isNotNull(), error.cast("binary")).alias(name)
