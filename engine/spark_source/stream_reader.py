"""The streaming reader of ``format("icebench")``: follows a branch, snapshot by snapshot.

Spark 4.1 asks a Python source for the latest offset without passing the query's current offset or a limit. It does pass
both offsets of each batch that it runs, in order, so the reader remembers where the last batch ended and limits the
next one by that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import datasource as sd
from pyspark.sql import types as st

from icebench.engine.errors import ValidationFailed
from icebench.engine.read.plans import request_for
from icebench.engine.spark.arrow_batches import check_schema, spark_schema
from icebench.engine.spark.arrow_tasks import read_task, task_files
from icebench.engine.spark_source.changelog import ChangelogPartition, ChangelogSpan, inserts
from icebench.engine.spark_source.options import StreamOptions
from icebench.engine.spark_source.reader import FilesPartition
from icebench.engine.spark_source.stream_offsets import Offset, Position, StreamPlanner
from icebench.engine.spec.schema import Schema
from icebench.engine.table import Table


class StreamReader(sd.DataSourceStreamReader):
    """Reads a branch as it grows.

    Args:
        options: What to read.
        schema: The columns as Spark sees them, for as long as the query runs.
    """

    def __init__(self, options: StreamOptions, schema: st.StructType) -> None:
        self._options = options
        self._schema = schema
        self._origin: Position | None = None
        self._reached: Position | None = None
        self._table_uuid = ""

    def initialOffset(self) -> dict[str, object]:  # noqa: N802 - Spark's name
        """The offset at which a new query begins."""
        origin = self._begun(self._planner(self._load()))
        return Offset(origin, origin, is_initial=True, table_uuid=self._table_uuid).encoded()

    def latestOffset(self) -> dict[str, object]:  # noqa: N802 - Spark's name
        """The offset at which the next micro-batch ends; that of the last one if there is nothing new."""
        planner = self._planner(self._load())
        origin = self._begun(planner)
        reached = origin if self._reached is None else self._reached
        return Offset(planner.following(reached), origin, table_uuid=self._table_uuid).encoded()

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[sd.InputPartition]:
        """The tasks of a micro-batch; none for an empty one. Equal offsets mark where a restarted query continues."""
        first, last = Offset.decoded(start), Offset.decoded(end)
        begin = last.origin if first.is_initial else first.position
        self._origin, self._reached = last.origin, last.position
        self._table_uuid = last.table_uuid or self._table_uuid
        if begin == last.position:
            return []
        table = self._load()
        span = changes_between(self._options, begin.snapshot_id, last.position.snapshot_id)
        if span is not None:
            check_schema(self._schema, span.schema(table))
        if span is not None and not begin.is_state:
            return [ChangelogPartition(span)]
        inserted_by = None if span is None else begin.snapshot_id
        made: list[sd.InputPartition] = []
        for part in self._planner(table).between(begin, last.position):
            if span is None:
                check_schema(self._schema, part.plan.projection)
            request = request_for(part.plan, table.store, table_name=table.name)
            tasks = task_files(part.plan, self._options.split_bytes, begin=part.begin, end=part.end)
            made += [FilesPartition(files, request, inserted_by) for files in tasks]
        return made

    def read(self, partition: sd.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, on an executor."""
        if isinstance(partition, ChangelogPartition):
            return partition.read()
        assert isinstance(partition, FilesPartition)
        assert partition.request is not None
        batches = read_task(partition.files, partition.request)
        if partition.inserted_by is None:
            return batches
        return inserts(batches, partition.inserted_by)

    def __getstate__(self) -> dict[str, object]:
        """Nothing: a partition has all that an executor needs."""
        return {}

    def _begun(self, planner: StreamPlanner) -> Position:
        if self._origin is None:
            self._origin = planner.initial()
        return self._origin

    def _load(self) -> Table:
        """The table at its current state; raises ValidationFailed if its name is another table's now."""
        table = self._options.place.load()
        own, found = self._table_uuid, table.metadata.table_uuid
        if own not in ("", found):  # a table of version 1 need not have one
            raise ValidationFailed(
                f"{table.name} was dropped or renamed: the table {found} has the name now, and this stream reads {own}"
            )
        self._table_uuid = found
        return table

    def _planner(self, table: Table) -> StreamPlanner:
        columns = self._options.columns
        if columns is None and self._options.changelog is None:
            columns = tuple(self._schema.names)
        return StreamPlanner(table, self._options, columns)


def stream_schema(options: StreamOptions) -> st.StructType:
    """The columns of a stream: those of the table at its current state."""
    table = options.place.load()
    # Columns do not depend on the snapshots, some of which may have expired: an empty range has them, too.
    head = None if table.current_snapshot is None else table.current_snapshot.snapshot_id
    span = changes_between(options, head, head)
    schema: Schema = table.scan(columns=options.columns).schema if span is None else span.schema(table)
    return spark_schema(schema)


def changes_between(options: StreamOptions, after: int | None, until: int | None) -> ChangelogSpan | None:
    """The changelog of a micro-batch; None for a stream of appended rows."""
    if options.changelog is None:
        return None
    return ChangelogSpan(
        place=options.place, columns=options.columns, options=options.changelog, after=after, until=until
    )
