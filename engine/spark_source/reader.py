"""The batch reader of ``format("icebench")``: the driver plans, executors read with the Arrow reader.

A task of the plan is an input partition. What all tasks share (schemas, specs, storage) is sent to the executors once,
with the reader; a partition has only its files, with the deletes and the residual filter of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql import datasource as sd
from pyspark.sql import types as st

from icebench.engine.deletes.files import FileRead
from icebench.engine.errors import Invalid
from icebench.engine.expressions.predicate import TRUE, Predicate
from icebench.engine.plan.scan import ScanPlan, as_predicate
from icebench.engine.read.plans import request_for
from icebench.engine.read.request import ReadRequest
from icebench.engine.scan import Scan
from icebench.engine.spark.arrow_batches import check_schema
from icebench.engine.spark.arrow_tasks import read_task, task_files
from icebench.engine.spark_source.changelog import ChangelogPartition, ChangelogSpan
from icebench.engine.spark_source.filters import pushed
from icebench.engine.spark_source.options import ReadOptions
from icebench.engine.table import Table


class FilesPartition(sd.InputPartition):
    """The input partition of one task.

    Args:
        files: Ranges of data files.
        request: For a stream, whose table changes while it runs; otherwise the reader has it.
        inserted_by: For a stream of changes: the snapshot that inserted all the rows.
    """

    def __init__(
        self, files: Sequence[FileRead], request: ReadRequest | None = None, inserted_by: int | None = None
    ) -> None:
        super().__init__(None)
        self.files = tuple(files)
        self.request = request
        self.inserted_by = inserted_by


class BatchReader(sd.DataSourceReader):
    """Reads a snapshot, or what appends added between two snapshots; the filter is that of the options.

    Args:
        options: What to read.
        schema: The columns as Spark sees them.
    """

    def __init__(self, options: ReadOptions, schema: st.StructType) -> None:
        self._options = options
        self._table = options.place.load()
        self._filter: Predicate = as_predicate(options.filter, self._table.schema())
        self._schema = options_scan(self._table, options).schema
        check_schema(schema, self._schema)

    @cached_property
    def _plan(self) -> ScanPlan:
        return options_scan(self._table, self._options, self._filter).plan()

    @cached_property
    def _request(self) -> ReadRequest:
        return request_for(self._plan, self._table.store, projection=self._schema, table_name=self._table.name)

    def partitions(self) -> list[sd.InputPartition]:
        """The tasks of the plan; one without files for a plan without files."""
        tasks = task_files(self._plan, self._options.split_bytes)
        return [FilesPartition(files) for files in tasks] or [FilesPartition(())]

    def read(self, partition: sd.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, on an executor."""
        assert isinstance(partition, FilesPartition)
        return read_task(partition.files, self._request)

    def __getstate__(self) -> dict[str, object]:
        """The state that executors need. Spark pickles the reader after pushing filters and before asking for
        partitions."""
        return {"_request": self._request}


class PushingReader(BatchReader):
    """A `BatchReader` that takes the filters that Spark pushes, which Spark then does not evaluate.

    Spark 4.1 keeps the result of pushing with the DataFrame, for every query over it: see the option ``pushdown``.
    """

    def pushFilters(self, filters: list[sd.Filter]) -> Iterable[sd.Filter]:  # noqa: N802 - Spark's name
        """Take the filters that the engine can evaluate; return the others."""
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


class ChangelogReader(sd.DataSourceReader):
    """Reads the row-level changes between two snapshots.

    Args:
        span: The range of snapshots.
        schema: The columns as Spark sees them.
    """

    def __init__(self, span: ChangelogSpan, schema: st.StructType) -> None:
        table = span.place.load()
        check_schema(schema, span.schema(table))
        self._span: ChangelogSpan | None = span
        if span.until is None:
            # A later commit is none of this query's, nor is the first one.
            current = table.current_snapshot
            self._span = None if current is None else replace(span, until=current.snapshot_id)

    def partitions(self) -> list[sd.InputPartition]:
        """The one task."""
        return [ChangelogPartition(self._span)]

    def read(self, partition: sd.InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes, on an executor."""
        assert isinstance(partition, ChangelogPartition)
        return partition.read()


def changelog_span(options: ReadOptions) -> ChangelogSpan:
    """The range of history that the options ask for."""
    assert options.changelog is not None
    return ChangelogSpan(
        place=options.place,
        columns=options.columns,
        filter=options.filter,
        options=options.changelog,
        after=options.after,
        until=options.until,
    )
