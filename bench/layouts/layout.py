"""What a layout is: a rearrangement of rows and how the table that takes them is partitioned and sorted."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame

DATE = "ss_sold_date"
"""The sale date, which TPC-DS keeps only as a key of date_dim. Every layout carries it, as the last column, so that all
tables have the same columns and the same rows, and a date filter means the same everywhere."""

ITEM = "ss_item_sk"


class Layout(Protocol):
    """One way to arrange the rows of store_sales in about `files` data files.

    `partition_fields` are pairs of a column and the spec's name of a transform; `sort_columns` are what the table's
    sort order declares, ascending with nulls first. `revision` changes whenever the arrangement does, so that cached
    tables of the old one are not used.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def partition_fields(self) -> tuple[tuple[str, str], ...]: ...

    @property
    def sort_columns(self) -> tuple[str, ...]: ...

    @property
    def revision(self) -> int: ...

    def arrange(self, rows: DataFrame, *, files: int) -> DataFrame:
        """The same rows with one Spark partition per data file, in the order in which they are to be written.

        Args:
            rows: All rows in arrival order, in any number of partitions.
            files: How many data files to aim at.
        """
        ...
