"""The rows that all layouts arrange, and the filters that pick rows to delete."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from bench.experiment import DeleteDefinition
from bench.layouts.layout import DATE
from bench.workloads.definitions import TpcdsWorkload
from bench.workloads.tpcds import Tpcds

FACTS = "store_sales"
CUSTOMER = "ss_customer_sk"
REFRESH = "refresh"
"""The delete variant with the workload's own refresh deletes."""

_SAMPLE_ROWS = 100_000


def workload_of(definition: TpcdsWorkload) -> Tpcds:
    """The generator of a definition."""
    return Tpcds(
        scale=definition.scale,
        seed=definition.seed,
        skew=definition.skew,
        wide_decimals=definition.wide_decimals,
    )


class SourceRows:
    """store_sales with the sale's date appended, in arrival order, in `files` Spark partitions of consecutive rows.

    The rows are generated at the first use and kept (in memory, or on Spark's disks) until the end of the context, as
    each layout reads them more than once.

    Args:
        workload: The generator.
        files: How many partitions.
        spark: Gives the session; called at the first use.
    """

    def __init__(self, workload: Tpcds, *, files: int, spark: Callable[[], SparkSession]) -> None:
        self._workload = workload
        self._files = files
        self._spark = spark
        self._kept: DataFrame | None = None

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return self._workload.schema(FACTS).append(pa.field(DATE, pa.date32()))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self._workload.row_count(FACTS)

    def frame(self) -> DataFrame:
        """All rows."""
        if self._kept is None:
            spark = self._spark()
            facts = self._workload.dataframe(spark, FACTS, partitions=self._files)
            days = self._workload.dataframe(spark, "date_dim", partitions=1)
            days = days.select(F.col("d_date_sk"), F.col("d_date").alias(DATE))
            # A broadcast join leaves the partitions, and the order in them, as they are.
            dated = facts.join(F.broadcast(days), facts["ss_sold_date_sk"] == days["d_date_sk"], "left")
            self._kept = dated.drop("d_date_sk").persist(StorageLevel.MEMORY_AND_DISK)
        return self._kept

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None


def delete_filters(deletes: DeleteDefinition, workload: Tpcds) -> dict[str, str]:
    """Variant -> the filter whose rows it has deleted.

    A fraction is the sales of that share of the customers, by a range of their keys: an erasure of customers. Customers
    are independent of date, item and arrival, so in every layout the deleted rows lie evenly over all files.
    """
    filters = {f"{fraction * 100:.6g}%": _customers(fraction, workload) for fraction in deletes.fractions}
    if deletes.refresh:
        days = (f"({DATE} >= '{first}' and {DATE} <= '{last}')" for first, last in workload.delete_ranges())
        filters[REFRESH] = " or ".join(days)
    return filters


def _customers(fraction: float, workload: Tpcds) -> str:
    """A range of customer keys that holds about `fraction` of all rows, those without a customer being made up for."""
    sample = workload.batch(FACTS, 0, min(_SAMPLE_ROWS, workload.row_count(FACTS)))
    known = 1 - sample.column(CUSTOMER).null_count / sample.num_rows
    last = max(1, round(min(1.0, fraction / known) * workload.row_count("customer")))
    return f"{CUSTOMER} <= {last}"
