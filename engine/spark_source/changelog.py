"""Changelogs through ``format("icebench")``: what happened to rows, for batches and streams.

A changelog is read by one task: rows that a snapshot takes and brings are matched with each other, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource as sd

from engine.read.changelog import ChangelogScan
from engine.spark.arrow_batches import spark_batch
from engine.spark_source.options import ChangelogOptions, TablePlace
from engine.spec.schema import Schema
from engine.table import Table


class ChangelogPartition(sd.InputPartition):
    """What the one task reads.

    Args:
        span: The snapshots.
    """

    def __init__(self, span: ChangelogSpan) -> None:
        super().__init__(None)
        self.span = span

    def read(self) -> Iterator[pa.RecordBatch]:
        """The changes, on an executor, which plans them too."""
        scan = self.span.scan(self.span.place.load())
        for batch in scan.to_batches():
            yield spark_batch(batch, scan.schema)


@dataclass(frozen=True, kw_only=True)
class ChangelogSpan:
    """A stretch of a table's history.

    Args:
        place: The table.
        columns: Full names; None for all.
        filter: Rows that matter.
        options: What is made of the changes.
        after: The last snapshot that was seen; None for all since the table was made.
        until: The last one to see; None for the current one.
    """

    place: TablePlace
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    options: ChangelogOptions
    after: int | None = None
    until: int | None = None

    def scan(self, table: Table) -> ChangelogScan:
        """The changelog; errors as `Table.changelog_scan`."""
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
        """The columns that come out."""
        return self.scan(table).schema
