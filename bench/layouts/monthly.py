"""Rows by the month of their sale."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from bench.layouts.layout import DATE


@dataclass(frozen=True)
class Monthly:
    """Partitioned by month of the sale date. Within a month rows keep arrival order; sales without a date have a
    partition of their own. Every month gets the same number of files, so files are as uneven as the months are."""

    name: str = "monthly"
    description: str = "partitioned by month of the sale date"
    partition_fields: tuple[tuple[str, str], ...] = ((DATE, "month"),)
    sort_columns: tuple[str, ...] = ()
    revision: int = 1

    def arrange(self, rows: DataFrame, *, files: int) -> DataFrame:
        month = F.trunc(F.col(DATE), "month")
        months = sorted(
            (row[0] for row in rows.select(month).distinct().collect()), key=lambda first: (first is None, first)
        )
        each = max(1, round(files / len(months)))
        ordinals = F.create_map(*(F.lit(v) for i, m in enumerate(months) if m is not None for v in (m, i)))
        ordinal = F.coalesce(ordinals[month], F.lit(len(months) - 1))
        # A ticket is one purchase; its lines stay together.
        part = F.pmod(F.col("ss_ticket_number"), F.lit(each)).cast("int")
        return rows.repartitionById(len(months) * each, ordinal * each + part).sortWithinPartitions(
            "ss_ticket_number", "ss_item_sk"
        )
