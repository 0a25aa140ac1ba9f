"""Fact tables with the date, which TPC-DS keeps only as a key of date_dim, as their last column: tables can be
partitioned by it, and a date filter means the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from icebench.bench.workloads.rows import KeyRange, Rows
from icebench.bench.workloads.sales_calendar import UNIX_DAY_0
from icebench.bench.workloads.scaling import row_count
from icebench.bench.workloads.schemas import TABLES
from icebench.bench.workloads.tpcds import Tpcds

_CUSTOMERS = ("customer_sk", "bill_customer_sk", "refunded_customer_sk")
_SAMPLE_ROWS = 100_000


@dataclass(frozen=True, kw_only=True)
class DatedSales(Rows):
    """One of the fact tables of a TPC-DS-derived data set."""

    tpcds: Tpcds
    table: str = TABLES[0]

    @classmethod
    def of(cls, tpcds: Tpcds, table: str = TABLES[0]) -> Self:
        """All rows of one of `TABLES`."""
        return cls(rows=tpcds.row_count(table), seed=tpcds.seed, tpcds=tpcds, table=table)

    @property
    def name(self) -> str:
        return "tpcds" if self.table == TABLES[0] else f"tpcds, {self.table}"

    @property
    def date(self) -> str:
        """The date's column, which is the last."""
        return self._facts.names[0].removesuffix("_sk")

    @property
    def schema(self) -> pa.Schema:
        return self._facts.append(pa.field(self.date, pa.date32(), nullable=self._facts.field(0).nullable))

    @property
    def _facts(self) -> pa.Schema:
        return self.tpcds.schema(self.table)

    @property
    def filters(self) -> Mapping[str, str]:
        date = self.date
        found = {
            "one_month": f"{date} >= '2000-11-01' and {date} < '2000-12-01'",
            "one_item": f"{date.partition('_')[0]}_item_sk = 77",
        }
        return {**found, "no_date": f"{date} is null"} if self._facts.field(0).nullable else found

    @property
    def identifier_columns(self) -> tuple[str, ...]:
        """The table's primary key in TPC-DS: item and order; of inventory date, item and warehouse."""
        return tuple(field.name for field in self._facts if not field.nullable)

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        batch = self.tpcds.batch(self.table, start, stop)
        days = pc.subtract(batch.column(0), pa.scalar(UNIX_DAY_0, pa.int32()))
        return pa.RecordBatch.from_arrays([*batch.columns, days.cast(pa.date32())], schema=self.schema)

    def delete_keys(self, share: float, spread: str) -> KeyRange:
        """Spread at random it is an erasure of customers, who are independent of date, item and arrival, or of items
        where there are none; else a range of tickets, or of the dates of the inventory."""
        names, prefix = self._facts.names, self.date.partition("_")[0]
        if spread == "random":
            column = next((f"{prefix}_{who}" for who in _CUSTOMERS if f"{prefix}_{who}" in names), f"{prefix}_item_sk")
            sample = self.tpcds.batch(self.table, 0, min(_SAMPLE_ROWS, self.rows))
            known = 1 - sample.column(column).null_count / sample.num_rows
            keys = row_count("item" if column.endswith("item_sk") else "customer", self.tpcds.scale)
            return KeyRange(column=column, start=1, stop=1 + max(1, round(min(1.0, share / known) * keys)))
        column = next((name for name in names if name.endswith("_number")), names[0])
        low, high = (self.tpcds.batch(self.table, row, row + 1).column(column)[0].as_py() for row in (0, self.rows - 1))
        count = max(1, round((high + 1 - low) * share))
        first = low if spread == "first" else low + (high + 1 - low - count) // 2
        return KeyRange(column=column, start=first, stop=first + count)

    def refresh_deletes(self, refresh: int = 0) -> str:
        ranges = self.tpcds.delete_ranges(refresh)
        days = (f"({self.date} >= '{first}' and {self.date} <= '{last}')" for first, last in ranges)
        return " or ".join(days)
