"""The batch reader of ``format("icebench")``: the driver plans, executors read with the Arrow reader.

A task of the plan is a partition. What all tasks share (schemas, specs, storage) goes to the executors once, with the
reader; a partition carries its files only, with their deletes and what is left of the filter for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import datasource as sd
from pyspark.sql import types as st

from engine.deletes.cache import DeleteCache
from engine.errors import Invalid
from engine.expressions.predicate import TRUE, Predicate
from engine.plan.scan import ScanPlan, as_predicate
from engine.plan.tasks import combined_tasks
from engine.read.plans import planned_files, request_for
from engine.read.reader import read_files
from engine.read.request import FileRead, ReadRequest
from engine.runtime.counters import Counters
from engine.runtime.local import LocalRunner
from engine.spark.source_filters import pushed
from engine.spark.source_options import ReadOptions
from engine.spark.types import shown_type
from engine.spec.schema import Schema
from engine.spec.types import UUID
from engine.table import Scan, Table

_DELETES = DeleteCache()
"""One for a Python worker, which serves one task after another: delete files that two tasks need are loaded once."""
_THREADS = 1
"""Of a task: Spark runs as many tasks at once as it has cores."""


class FilesPartition(sd.InputPartition):
    """What one task reads.

    Args:
        files: Parts of data files.
        request: For a stream, whose table changes while it runs; else the reader has it.
    """

    def __init__(self, files: Sequence[FileRead], request: ReadRequest | None = None) -> None:
        super().__init__(None)
        self.files = tuple(files)
        self.request = request


class BatchReader(sd.DataSourceReader):
    """Reads a snapshot, or what appends added between two; the filter is that of the options.

    Args:
        options: What to read.
        schema: The columns as Spark will have them.
    """

    def __init__(self, options: ReadOptions, schema: st.StructType) -> None:
        self._options = options
        self._table = options.place.load()
        self._filter: Predicate = as_predicate(options.filter)
        self._schema = options_scan(self._table, options).schema
        check_schema(schema, self._schema)

    @cached_property
    def _plan(self) -> ScanPlan:
        return options_scan(self._table, self._options, self._filter).plan()

    @cached_property
    def _request(self) -> ReadRequest:
        return request_for(self._plan, self._table.store, projection=self._schema, table_name=self._table.name)

    def partitions(self) -> list[sd.InputPartition]:
        """The tasks of the plan; one that reads nothing for a plan without files."""
        tasks = task_files(self._plan, self._options.split_bytes)
        return [FilesPartition(files) for files in tasks] or [FilesPartition(())]

    def read(self, partition: sd.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, on an executor."""
        assert isinstance(partition, FilesPartition)
        return read_task(partition.files, self._request)

    def __getstate__(self) -> dict[str, object]:
        """What executors need. Spark takes it after filters were pushed and before partitions are asked for."""
        return {"_request": self._request}


class PushingReader(BatchReader):
    """The same with the filters that Spark pushes, which it then does not test itself.

    Spark 4.1 keeps what came of pushing with the DataFrame, for every query over it: see the option ``pushdown``.
    """

    def pushFilters(self, filters: list[sd.Filter]) -> Iterable[sd.Filter]:  # noqa: N802 - Spark's name
        """Take what the engine can test; the others are given back."""
        found, left = pushed(filters, self._schema)
        self._filter &= found
        return left


def options_scan(table: Table, options: ReadOptions, filter: Predicate = TRUE) -> Scan:
    """The scan that the options ask for; errors as `Table.scan` and `Table.incremental_append_scan`."""
    if options.after is not None:
        return table.incremental_append_scan(options.after, options.until, filter=filter, columns=options.columns)
    if options.ref is not None and options.ref in table.refs and table.refs[options.ref].type != options.ref_type:
        raise Invalid(f"{options.ref!r} is a {table.refs[options.ref].type}, not a {options.ref_type}")
    return table.scan(filter, options.columns, snapshot_id=options.snapshot_id, ref=options.ref, as_of=options.as_of)


def task_files(
    plan: ScanPlan, split_bytes: int, *, begin: int = 0, end: int | None = None
) -> Iterator[tuple[FileRead, ...]]:
    """The parts of files of each task: of all files of a plan, or of those from `begin` to `end`."""
    files = list(planned_files(plan))[begin:end]
    chosen = plan.files.slice(begin, len(files))
    for task in combined_tasks(chosen, split_bytes=split_bytes):
        pieces = zip(task.file_index.tolist(), task.start.tolist(), task.length_bytes.tolist(), strict=True)
        yield tuple(replace(files[index], byte_range=(start, length)) for index, start, length in pieces)


def read_task(files: Sequence[FileRead], request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """The live rows of a task's files, as Spark takes them from Arrow."""
    counters = Counters()
    batches = read_files(files, request, runner=LocalRunner(_THREADS), counters=counters, delete_cache=_DELETES)
    for batch in batches:
        yield spark_batch(batch, request.projection)


def source_schema(schema: Schema) -> st.StructType:
    """The columns as Spark has them: uuid as text, no column required; Unsupported for types that Spark lacks."""
    return st.StructType([st.StructField(f.name, shown_type(f.type, column=f.name)) for f in schema.fields])


def check_schema(given: st.StructType, own: Schema) -> None:
    """Raise Invalid where a user asks for other columns than the table's: Spark would take rows by position."""
    if [(f.name, f.dataType.simpleString()) for f in given.fields] != [
        (f.name, f.dataType.simpleString()) for f in source_schema(own).fields
    ]:
        raise Invalid(
            f"schema({given.simpleString()}) is not what is read, {source_schema(own).simpleString()}; choose columns "
            "with the option columns, and cast afterwards"
        )


def spark_batch(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch of the reader without the types that Spark does not take: uuid becomes text, fixed becomes binary."""
    columns = [
        _uuid_texts(column) if f.type == UUID else _without_fixed(column)
        for f, column in zip(schema.fields, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[f.name for f in schema.fields])


def _uuid_texts(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def _without_fixed(column: pa.Array) -> pa.Array:
    wanted = _plain_type(column.type)
    return column if wanted == column.type else column.cast(wanted)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """The type with binary for fixed-size binary, at every depth."""
    if pat.is_fixed_size_binary(type_):
        return pa.binary()
    if pat.is_struct(type_):
        return pa.struct([f.with_type(_plain_type(f.type)) for f in type_])
    if pat.is_list(type_):
        return pa.list_(type_.value_field.with_type(_plain_type(type_.value_type)))
    if pat.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(key.with_type(_plain_type(key.type)), item.with_type(_plain_type(item.type)))
    return type_
