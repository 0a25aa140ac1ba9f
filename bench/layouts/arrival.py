"""Rows as they arrived: the layout that nobody chose."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Arrival:
    """Unpartitioned, in arrival order. Tickets come in no order of date, so nearly every file spans all dates and
    items: bounds prune nothing but the ticket number, which makes this the control."""

    name: str = "unpartitioned"
    description: str = "unpartitioned, in arrival order"
    partition_fields: tuple[tuple[str, str], ...] = ()
    sort_columns: tuple[str, ...] = ()
    revision: int = 1

    def arrange(self, rows: DataFrame, *, files: int) -> DataFrame:
        # The source was asked for `files` partitions of consecutive rows; any shuffle would lose the order.
        found = rows.rdd.getNumPartitions()
        if found != files:
            raise ValueError(f"arrival order needs the source in {files} partitions, not {found}")
        return rows
