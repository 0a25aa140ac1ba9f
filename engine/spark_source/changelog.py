"""Changelogs through ``format("icebench")``: row-level changes, for batch and streaming queries.

A changelog is read by one task: the rows that a snapshot removes and adds are matched with each other, in whichever
files they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource as sd

from icebench.engine.read.changelog import INSERT, ChangelogScan
from icebench.engine.spark.arrow_batches import spark_batch
from icebench.engine.spark.workers import prepare_worker
from icebench.engine.spark_source.options import ChangelogOptions, TablePlace
from icebench.engine.spec.metadata_columns import CHANGE_COLUMNS
from icebench.engine.spec.schema import Schema
from icebench.engine.table import Table


class ChangelogPartition(sd.InputPartition):
    """The input partition of the one task.

    Args:
        span: The range of snapshots; None for none.
    """

    def __init__(self, span: ChangelogSpan | None) -> None:
        super().__init__(None)
        self.span = span

    def read(self) -> Iterator[pa.RecordBatch]:
        """Plan and read the changes, on an executor."""
        prepare_worker()
        if self.span is None:
            return
        scan = self.span.scan(self.span.place.load())
        for batch in scan.to_batches():
            yield spark_batch(batch, scan.schema)


@dataclass(frozen=True, kw_only=True)
class ChangelogSpan:
    """A range of a table's history.

    Args:
        place: The table.
        columns: Full names; None for all.
        filter: Only changes of rows for which it is true.
        options: How changes are represented.
        after: The snapshot before the range; None to begin with the first snapshot.
        until: The last snapshot of the range; None for the current one.
    """

    place: TablePlace
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    options: ChangelogOptions
    after: int | None = None
    until: int | None = None

    def scan(self, table: Table) -> ChangelogScan:
        """The changelog scan; errors as `Table.changelog_scan`."""
        return table.changelog_scan(
            self.after,
            self.until,
            filter=self.filter,
            columns=self.columns,
            net_changes=self.options.net_changes,
            identifier_columns=self.options.identifier_columns,
            compute_updates=self.options.compute_updates,
        )

    def schema(self, table: Table) -> Schema:
        """The columns of the changelog."""
        return self.scan(table).schema


def inserts(batches: Iterator[pa.RecordBatch], snapshot_id: int) -> Iterator[pa.RecordBatch]:
    """Rows as the first changes of a changelog: all of them inserted by one snapshot."""
    values = pa.scalar(INSERT), pa.scalar(0, pa.int32()), pa.scalar(snapshot_id, pa.int64())
    for batch in batches:
        columns = [*batch.columns, *(pa.repeat(value, batch.num_rows) for value in values)]
        yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names, *(f.name for f in CHANGE_COLUMNS)])
