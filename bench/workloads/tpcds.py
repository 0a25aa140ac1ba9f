"""The TPC-DS-derived workload: seven fact tables, any scale factor, any seed, the same rows however they are made.

Derived from the TPC-DS specification (version 3.2.0) and dsdgen's observed distributions; it is not dsdgen, its results
are not TPC-DS results, and docs/design/harness.md says where it differs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from icebench.bench.workloads import sales_calendar, scaling, schemas
from icebench.bench.workloads.channels import ChannelSales
from icebench.bench.workloads.inventory import Inventory
from icebench.bench.workloads.returns import Returns
from icebench.bench.workloads.store_sales import StoreSales


@dataclass(frozen=True)
class Tpcds:
    """One data set, decided by these values alone.

    Args:
        scale: Scale factor, above 0 and at most 100,000; 1 is 2,880,404 rows of store_sales.
        seed: Any integer; taken modulo 2**64.
        skew: Zipf exponent of the items' shares in store_sales; 0 (TPC-DS) makes all items equally likely.
        wide_decimals: Add ss_wide_15_2, ss_wide_20_2 and ss_wide_38_6 to store_sales, for decimals above 64 bits.
        correlation: Share of the tickets of store_sales whose date decides their items; 0, as in TPC-DS, is none, and
            with 1 an item sells in a few days of the five years only. Items of these tickets are not equally likely.
        late: Share of the orders of catalog_sales, which come in the order of their dates, that come late.

    Raises:
        ValueError: A value is out of range.
    """

    scale: float
    seed: int = 42
    skew: float = 0.0
    wide_decimals: bool = False
    correlation: float = 0.0
    late: float = 0.0

    def __post_init__(self) -> None:
        scaling.row_count("store_sales", self.scale)
        if not (math.isfinite(self.skew) and self.skew >= 0):
            raise ValueError(f"skew {self.skew} is not a finite number of 0 or more")
        for name, share in (("correlation", self.correlation), ("late", self.late)):
            if not 0 <= share <= 1:
                raise ValueError(f"{name} {share} is not a share between 0 and 1")

    def row_count(self, table: str) -> int:
        """Rows of a table, known without making them. Raises ValueError for a table not in `TABLES`."""
        self.schema(table)
        return scaling.row_count(table, self.scale)

    def schema(self, table: str) -> pa.Schema:
        """Arrow schema of a table; fields carry no metadata. Raises ValueError for a table not in `TABLES`."""
        return schemas.schema(table, wide_decimals=self.wide_decimals)

    def batch(self, table: str, start: int, stop: int) -> pa.RecordBatch:
        """Rows `start` to `stop` (exclusive) of a table, in arrival order.

        A pure function: the batches of any division of a range, put together, equal the range's own batch.
        Made fastest in pieces of 16,000 to 65,000 rows.

        Args:
            table: One of `icebench.bench.workloads.schemas.TABLES`.
            start: First row, from 0.
            stop: Row to stop before, at most `row_count(table)`; equal to `start` for an empty batch.

        Returns:
            A record batch with `schema(table)`.

        Raises:
            ValueError: No such table, or rows out of range.
        """
        schema = self.schema(table)
        rows = self.row_count(table)
        if not 0 <= start <= stop <= rows:
            raise ValueError(f"rows {start} to {stop} are not in {table}, which has rows 0 to {rows}")
        match table:
            case "store_sales":
                sales = StoreSales(
                    seed=self.seed, scale=self.scale, skew=self.skew, schema=schema, correlation=self.correlation
                )
                return sales.batch(start, stop)
            case "inventory":
                return Inventory(seed=self.seed, scale=self.scale, schema=schema).batch(start, stop)
            case "store_returns" | "catalog_returns" | "web_returns":
                return self._returns(table, start, stop)
            case _:
                return self._channel(table).batch(start, stop)

    def _channel(self, table: str) -> ChannelSales:
        return ChannelSales(
            table=table, seed=self.seed, scale=self.scale, skew=self.skew, late=self.late, schema=self.schema(table)
        )

    def _returns(self, table: str, start: int, stop: int) -> pa.RecordBatch:
        sales = table.replace("returns", "sales")
        returns = Returns(
            table=table, seed=self.seed, scale=self.scale, sales_schema=self.schema(sales), schema=self.schema(table)
        )
        return returns.batch(start, stop, lambda first, after: self.batch(sales, first, after))

    def delete_ranges(self, refresh: int = 0) -> list[tuple[date, date]]:
        """The date ranges whose sales one TPC-DS refresh deletes (DF_SS): 0.43 % of dated sales, 0.41 % of all.

        Args:
            refresh: Which refresh, from 0; each has ranges of its own.

        Returns:
            Three pairs (first day, last day), both inclusive: one in January to July, one in August to October, one in
            November to December. They meet rows whose ss_sold_date_sk is the key of such a day; null dates stay.
        """
        return sales_calendar.delete_ranges(self.seed, refresh)
