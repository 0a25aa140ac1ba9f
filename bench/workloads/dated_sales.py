"""store_sales with the sale's date, which TPC-DS keeps only as a key of date_dim, as its last column: tables can be
partitioned by it, and a date filter means the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from bench.workloads.date_dim import UNIX_DAY_0
from bench.workloads.generated import Generated
from bench.workloads.rows import KeyRange
from bench.workloads.tpcds import Tpcds

FACTS = "store_sales"
DATE = "ss_sold_date"
_CUSTOMER, _TICKET = "ss_customer_sk", "ss_ticket_number"
_SAMPLE_ROWS = 100_000


@dataclass(frozen=True, kw_only=True)
class DatedSales(Generated):
    """Sales of a TPC-DS-derived data set."""

    tpcds: Tpcds

    @classmethod
    def of(cls, tpcds: Tpcds) -> Self:
        """All of them."""
        return cls(rows=tpcds.row_count(FACTS), seed=tpcds.seed, tpcds=tpcds)

    @property
    def name(self) -> str:
        return "tpcds"

    @property
    def schema(self) -> pa.Schema:
        return self.tpcds.schema(FACTS).append(pa.field(DATE, pa.date32()))

    @property
    def filters(self) -> Mapping[str, str]:
        return {
            "one_month": f"{DATE} >= '2000-11-01' and {DATE} < '2000-12-01'",
            "one_item": "ss_item_sk = 77",
            "no_date": f"{DATE} is null",
        }

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        batch = self.tpcds.batch(FACTS, start, stop)
        days = pc.subtract(batch.column("ss_sold_date_sk"), pa.scalar(UNIX_DAY_0, pa.int32()))
        return pa.RecordBatch.from_arrays([*batch.columns, days.cast(pa.date32())], schema=self.schema)

    def delete_keys(self, share: float, spread: str) -> KeyRange:
        """Spread at random it is an erasure of customers, who are independent of date, item and arrival; else a range
        of tickets."""
        if spread == "random":
            sample = self.tpcds.batch(FACTS, 0, min(_SAMPLE_ROWS, self.rows))
            known = 1 - sample.column(_CUSTOMER).null_count / sample.num_rows
            customers = self.tpcds.row_count("customer")
            return KeyRange(column=_CUSTOMER, start=1, stop=1 + max(1, round(min(1.0, share / known) * customers)))
        tickets = self.tpcds.batch(FACTS, self.rows - 1, self.rows).column(_TICKET)[0].as_py()
        count = max(1, round(tickets * share))
        first = 1 if spread == "first" else 1 + (tickets - count) // 2
        return KeyRange(column=_TICKET, start=first, stop=first + count)

    def refresh_deletes(self) -> str | None:
        days = (f"({DATE} >= '{first}' and {DATE} <= '{last}')" for first, last in self.tpcds.delete_ranges())
        return " or ".join(days)
