"""The fact tables catalog_sales and web_sales, made as store_sales is, from draws of their own.

Web orders come in no order of date. Catalog orders come in the order of their dates, but for the late ones: the two are
TPC-DS's natural controls for layouts by date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebench.bench.workloads.arrays import BatchBuilder, null_masks
from icebench.bench.workloads.assortment import assortment
from icebench.bench.workloads.draws import Int32s, Int64s, draw, words
from icebench.bench.workloads.pricing import prices
from icebench.bench.workloads.revisions import era_of
from icebench.bench.workloads.sales_calendar import FIRST_KEY, dates_in_order, sold_dates
from icebench.bench.workloads.scaling import row_count
from icebench.bench.workloads.tickets import TicketLayout

NULLS_PER_TEN_THOUSAND = 900
_MOST_DAYS_LATE = 90
_MOST_DAYS_TO_SHIP = 120
_MILLION = 1_000_000
_GIFTS_PER_CENT = 10

_CUSTOMERS = {
    "customer_sk": "customer",
    "cdemo_sk": "customer_demographics",
    "hdemo_sk": "household_demographics",
    "addr_sk": "customer_address",
}
_LINE_KEYS: Mapping[str, Mapping[str, str]] = {
    "cs": {"call_center_sk": "call_center", "catalog_page_sk": "catalog_page"},
    "ws": {"web_page_sk": "web_page", "web_site_sk": "web_site"},
}
_BOTH_KEYS = {"ship_mode_sk": "ship_mode", "warehouse_sk": "warehouse", "promo_sk": "promotion"}


def own_seed(seed: int, table: str) -> int:
    """A seed for a table whose draws are made by what draws for store_sales, so that the two are independent."""
    return int(words(seed, f"{table}.seed", np.zeros(1, np.int64))[0])


@dataclass(frozen=True, kw_only=True)
class ChannelSales:
    """One of the two tables: `table` is its name, the rest as of `icebench.bench.workloads.tpcds.Tpcds`."""

    table: str
    seed: int
    scale: float
    skew: float
    late: float
    schema: pa.Schema

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows `start` to `stop`, exclusive."""
        seed, prefix = own_seed(self.seed, self.table), self.schema.names[0][:2]
        rows = np.arange(start, stop)
        builder = BatchBuilder(self.schema, stop - start, null_masks(seed, self.table, rows, NULLS_PER_TEN_THOUSAND))
        layout = TicketLayout(seed, row_count(self.table, self.scale))
        orders, place, line = layout.lines(start, stop)
        dates = self._dates(seed, orders, layout.count)
        builder.integers(f"{prefix}_order_number", orders[place] + 1)
        builder.integers(f"{prefix}_sold_date_sk", dates[place])
        builder.integers(f"{prefix}_sold_time_sk", draw(seed, "time", orders, row_count("time_dim", self.scale))[place])
        shipped = 1 + draw(seed, "ship_date", rows, _MOST_DAYS_TO_SHIP)
        builder.integers(f"{prefix}_ship_date_sk", dates[place] + shipped)
        is_gift = draw(seed, "gift", orders, 100) < _GIFTS_PER_CENT
        for column, target in _CUSTOMERS.items():
            bill, other = (1 + draw(seed, f"{who}_{column}", orders, row_count(target, self.scale)) for who in "bo")
            builder.integers(f"{prefix}_bill_{column}", bill[place])
            builder.integers(f"{prefix}_ship_{column}", np.where(is_gift, other, bill)[place])
        for column, target in {**_LINE_KEYS[prefix], **_BOTH_KEYS}.items():
            builder.integers(f"{prefix}_{column}", 1 + draw(seed, column, rows, row_count(target, self.scale)))
        items = assortment(seed, row_count("item", self.scale), self.skew)
        starts = words(seed, "item_sk", orders)
        builder.integers(f"{prefix}_item_sk", items.pick(starts[place], line, era_of(dates)[place]))
        self._put_measures(builder, seed, prefix, rows)
        return builder.finish()

    def _dates(self, seed: int, orders: Int64s, count: int) -> Int32s:
        if self.table == "web_sales":
            return sold_dates(seed, orders)
        is_late = draw(seed, "is_late", orders, _MILLION) < round(self.late * _MILLION)
        delay = is_late * (1 + draw(seed, "delay", orders, _MOST_DAYS_LATE))
        return np.maximum(dates_in_order(orders, count) - delay, FIRST_KEY).astype(np.int32)

    def _put_measures(self, builder: BatchBuilder, seed: int, prefix: str, rows: Int64s) -> None:
        found = prices(seed, rows)
        builder.integers(f"{prefix}_quantity", found.quantity)
        for name in found._fields[1:]:
            builder.decimals(f"{prefix}_{name}", getattr(found, name))
        # Up to half of the list price for each piece.
        ship = found.ext_list_price * draw(seed, "ship_cost", rows, 51) // np.int32(100)
        builder.decimals(f"{prefix}_ext_ship_cost", ship)
        builder.decimals(f"{prefix}_net_paid_inc_ship", found.net_paid + ship)
        builder.decimals(f"{prefix}_net_paid_inc_ship_tax", found.net_paid_inc_tax + ship)
