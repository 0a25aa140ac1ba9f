"""Rows sorted by item over the whole table."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from bench.layouts.layout import ITEM


@dataclass(frozen=True)
class ByItem:
    """Unpartitioned, range-sorted by item: a file holds a range of items that it shares with its neighbours at most at
    the ends, and is sorted inside. The ranges come from exact counts, not from Spark's sample, so that two builds make
    the same files."""

    name: str = "sorted"
    description: str = "unpartitioned, globally sorted by item"
    partition_fields: tuple[tuple[str, str], ...] = ()
    sort_columns: tuple[str, ...] = (ITEM,)
    revision: int = 1

    def arrange(self, rows: DataFrame, *, files: int) -> DataFrame:
        counts = {row[0]: row[1] for row in rows.groupBy(ITEM).count().collect()}
        first_items = range_starts(counts, files)
        # How many ranges start at or before the item: its range.
        starts = F.array(*(F.lit(item) for item in first_items[1:]))
        ordinal = F.size(F.filter(starts, lambda start: start <= F.col(ITEM))) if len(first_items) > 1 else F.lit(0)
        return rows.repartitionById(len(first_items), ordinal).sortWithinPartitions(ITEM, "ss_ticket_number")


def range_starts(counts: Mapping[int, int], ranges: int) -> list[int]:
    """The least key of each of at most `ranges` key ranges of about equal row counts; a key is never divided.

    Fewer ranges come out when single keys hold more than a range's share, or there are fewer keys than ranges.
    """
    keys = sorted(counts)
    rows_before = [0, *accumulate(counts[key] for key in keys)]
    total = rows_before.pop()
    wanted = (bisect_left(rows_before, total * ordinal / ranges) for ordinal in range(ranges))
    return sorted({keys[index] for index in wanted if index < len(keys)})
