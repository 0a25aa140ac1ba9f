"""Refreshes of a TPC-DS-derived fact table (specification, 5.3: data maintenance): each adds rows, and deletes those of
three ranges of two days from all that are there.

Added rows are the last ones in the table's order of arrival, so that before the first refresh the table has the others.
Which rows are left is computed here from the rows' dates alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icebench.bench.workloads.dated_sales import DatedSales


@dataclass(frozen=True, kw_only=True)
class Refreshes:
    """A fact table under `batches` refreshes, each of which adds `share` of its rows."""

    sales: DatedSales
    batches: int
    share: float

    def __post_init__(self) -> None:
        if self.first_rows < 1:
            raise ValueError(f"{self.batches} refreshes of {self.share} of the rows leave none before the first")

    @property
    def schema(self) -> pa.Schema:
        return self.sales.schema

    @property
    def filters(self) -> Mapping[str, str]:
        return self.sales.filters

    @property
    def first_rows(self) -> int:
        """How many rows there are before the first refresh."""
        return self.span(1)[0]

    def span(self, batch: int) -> tuple[int, int]:
        """The numbers of the rows that a refresh, from 1, adds: first, and first of the next; 0 is what was there."""
        each = max(1, round(self.sales.rows * self.share))
        start = self.sales.rows - each * (self.batches + 1 - batch)
        return (start, start + each) if batch else (0, start + each)

    def rows(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows of these numbers, in the table's order of arrival."""
        return self.sales.batch(start, stop)

    def added(self, batch: int) -> pa.Table:
        """The rows that a refresh adds."""
        return pa.Table.from_batches(self.sales.batches(*self.span(batch)), self.schema)

    def deleted(self, batch: int) -> str:
        """The rows that a refresh, from 1, deletes once its own are there, as SQL."""
        return self.sales.refresh_deletes(batch)

    def live(self, batch: int) -> pa.Table:
        """The rows that are left after a refresh."""
        parts = []
        for number in range(batch + 1):
            rows = self.added(number)
            dates = rows.column(self.sales.date).to_numpy().astype("datetime64[D]")
            gone = np.zeros(len(rows), np.bool_)
            for later in range(max(1, number), batch + 1):
                for first, last in self.sales.tpcds.delete_ranges(later):
                    gone |= (dates >= np.datetime64(first)) & (dates <= np.datetime64(last))
            parts.append(rows.filter(pa.array(~gone)))
        return pa.concat_tables(parts)

    def key(self) -> dict[str, Any]:
        """JSON values that decide the rows."""
        return {"workload": type(self).__name__, **asdict(self)}
