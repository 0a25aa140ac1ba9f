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
from icebench.engine.columnar.extensions import extension_metadata
from icebench.engine.columnar.schemas import child_fields
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.spark.distribution import Numbered, column_name, distributed
from icebench.engine.spark.jobs import carried_errors, carried_text, errors_of_executors, wait_for_tasks
from icebench.engine.spark.memory import row_memory_bytes
from icebench.engine.spark.workers import prepare_worker
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.properties import DISTRIBUTION_MODE
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.types import UUID, VARIANT
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
    rows = Numbered(frame.columns, numbered(frame, own_schema))
    spread = distributed(rows, mode, own_schema, own_spec, order)
    is_sorted = mode != "none" and not order.is_unsorted and bool(own_spec.fields or mode == "range")
    task = WriteTask(
        columns=frame.columns,
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
            made = spread.mapInArrow(task, st.StructType([st.StructField("manifest", st.BinaryType())])).collect()
    except BaseException:
        wait_for_tasks(frame.sparkSession)
        remove_files_of(store, task.metadata, own_names)
        raise
    files = EncodedFiles(bytes(row[0]) for row in made)
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
    """The columns of a DataFrame as an Arrow schema; see `arrow_schema`."""
    return arrow_schema(frame.schema)


def arrow_schema(columns: st.StructType) -> pa.Schema:
    """The columns of Spark as an Arrow schema, in which variants, at any depth, are not plain structs.

    Raises:
        Unsupported: A geometry or geography, which Spark has in a form of its own; the message names the column.
    """
    plain = to_arrow_schema(columns)
    return pa.schema([_named(f, own.dataType, own.name) for f, own in zip(plain, columns.fields, strict=True)])


def _named(field: pa.Field, type_: st.DataType, column: str) -> pa.Field:
    """The field with the extension types that Spark's type stands for."""
    match type_:
        case st.VariantType():
            return field.with_metadata(extension_metadata(VARIANT))
        case st.GeometryType() | st.GeographyType():
            raise Unsupported(f"column {column!r}: adding a column of Spark's type {type_.simpleString()}")
        case st.StructType(fields=fields):
            inner = zip(child_fields(field.type), fields, strict=True)
            return field.with_type(pa.struct([_named(f, own.dataType, f"{column}.{own.name}") for f, own in inner]))
        case st.ArrayType(elementType=element):
            return field.with_type(pa.list_(_named(field.type.value_field, element, f"{column}.element")))
        case st.MapType(keyType=key, valueType=value):
            keys = _named(field.type.key_field, key, f"{column}.key")
            return field.with_type(pa.map_(keys, _named(field.type.item_field, value, f"{column}.value")))
    return field


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


def numbered(frame: DataFrame, schema: Schema) -> DataFrame:
    """The rows as they are written, under the names c0, c1 and so on, in the order of their columns: names may differ
    in case only, which many sessions take for equal, and mapInArrow finds no column whose name has a dot.

    uuid columns that are strings, as scans return them, are converted to 16 bytes. A text that is no uuid fails the job
    that reads it; `errors_of_executors` then raises Invalid, which names the column. Strings lose their collation, at
    any depth, since Iceberg has none: tables are partitioned and sorted by bytes.
    """
    uuids = {f.name for f in schema.fields if f.type == UUID}
    made = []
    for place, field in enumerate(frame.schema.fields):
        column = F.col(column_name(place))
        plain = _without_collation(field.dataType)
        if plain.json() != field.dataType.json():
            column = column.cast(plain)
        if field.name in uuids and isinstance(plain, st.StringType):
            column = _uuid_bytes(column, field.name)
        made.append(column.alias(column_name(place)))
    return frame.toDF(*map(column_name, range(len(made)))).select(*made)


def _without_collation(type_: st.DataType) -> st.DataType:
    match type_:
        case st.StringType():
            return st.StringType()
        case st.StructType(fields=fields):
            inner = [st.StructField(f.name, _without_collation(f.dataType), f.nullable, f.metadata) for f in fields]
            return st.StructType(inner)
        case st.ArrayType(elementType=element, containsNull=has_null):
            return st.ArrayType(_without_collation(element), has_null)
        case st.MapType(keyType=key, valueType=value, valueContainsNull=has_null):
            return st.MapType(_without_collation(key), _without_collation(value), has_null)
    return type_


def _uuid_bytes(plain: Column, name: str) -> Column:
    digits = F.regexp_replace(plain, UUID_MARKS, "")
    # unhex gives null for other text, and fills up an odd number of digits.
    error = F.raise_error(F.lit(carried_text(Invalid(f"column {name!r}: a text is not a uuid"))))
    is_uuid = digits.rlike(rf"\A{UUID_DIGITS}\z")
    return F.when(is_uuid, F.unhex(digits)).when(plain.isNotNull(), error.cast("binary"))
