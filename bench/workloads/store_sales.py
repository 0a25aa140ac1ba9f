"""The fact table store_sales: rows start to stop, each made from its id alone.

What a ticket decides (date, time, customer, store ...) is drawn once a ticket and copied to its lines; nulls fall on
single rows, so a ticket's lines agree wherever both are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebench.bench.workloads.arrays import BatchBuilder, Words128, null_masks
from icebench.bench.workloads.assortment import assortment
from icebench.bench.workloads.draws import Int32s, Int64s, Words, below_wide, draw, words
from icebench.bench.workloads.pricing import prices
from icebench.bench.workloads.revisions import era_of, key_count, row_valid_in
from icebench.bench.workloads.sales_calendar import FIRST_KEY, LAST_KEY, sold_dates, sold_times
from icebench.bench.workloads.scaling import row_count
from icebench.bench.workloads.tickets import TicketLayout

_MILLION = 1_000_000

# 9 % of rows have nulls, half of the columns in each: 4.5 % a column.
_NULLS_PER_TEN_THOUSAND = 900

# Foreign keys that are the ticket's, with the table whose keys 1 to its row count are equally likely.
_TICKET_KEYS = {
    "ss_customer_sk": "customer",
    "ss_cdemo_sk": "customer_demographics",
    "ss_hdemo_sk": "household_demographics",
    "ss_addr_sk": "customer_address",
}


@dataclass(frozen=True, kw_only=True)
class StoreSales:
    """A store_sales table.

    Args:
        seed: Any integer.
        scale: Scale factor.
        skew: Zipf exponent of the items' shares; 0 makes items equally likely.
        schema: The table's columns, with or without the wide decimals.
        correlation: Share of the tickets whose date decides their items.
    """

    seed: int
    scale: float
    skew: float
    schema: pa.Schema
    correlation: float = 0.0

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows `start` to `stop`, exclusive; 0 <= start <= stop <= the table's row count."""
        rows = np.arange(start, stop)
        masks = null_masks(self.seed, "store_sales", rows, _NULLS_PER_TEN_THOUSAND)
        builder = BatchBuilder(self.schema, stop - start, masks)
        self._put_keys(builder, rows, start, stop)
        measures = prices(self.seed, rows)
        builder.integers("ss_quantity", measures.quantity)
        for name in measures._fields[1:]:
            builder.decimals(f"ss_{name}", getattr(measures, name))
        if "ss_wide_15_2" in self.schema.names:
            self._put_wide_decimals(builder, rows)
        return builder.finish()

    def _put_keys(self, builder: BatchBuilder, rows: Int64s, start: int, stop: int) -> None:
        tickets, place, line = TicketLayout(self.seed, row_count("store_sales", self.scale)).lines(start, stop)
        dates = sold_dates(self.seed, tickets)
        builder.integers("ss_ticket_number", tickets[place] + 1)
        builder.integers("ss_sold_date_sk", dates[place])
        builder.integers("ss_sold_time_sk", sold_times(self.seed, tickets)[place])
        for column, table in _TICKET_KEYS.items():
            key = 1 + draw(self.seed, f"store_sales.{column}", tickets, row_count(table, self.scale))
            builder.integers(column, key[place])
        builder.integers("ss_store_sk", self._stores(tickets)[place])
        promotions = row_count("promotion", self.scale)
        builder.integers("ss_promo_sk", 1 + draw(self.seed, "store_sales.ss_promo_sk", rows, promotions))
        items = assortment(self.seed, row_count("item", self.scale), self.skew)
        starts = words(self.seed, "store_sales.ss_item_sk", tickets)
        if self.correlation:
            is_tied = draw(self.seed, "store_sales.tied", tickets, _MILLION) < round(self.correlation * _MILLION)
            starts = np.where(is_tied, place_of(dates), starts)
        builder.integers("ss_item_sk", items.pick(starts[place], line, era_of(dates)[place]))

    def _stores(self, tickets: Int64s) -> Int32s:
        """A store's first revision, whenever the sale was: dsdgen never uses the later ones."""
        stores = row_count("store", self.scale)
        thing = draw(self.seed, "store_sales.ss_store_sk", tickets, key_count(stores))
        return row_valid_in(thing.astype(np.int64), 0, stores)

    def _put_wide_decimals(self, builder: BatchBuilder, rows: Int64s) -> None:
        """Uniform over nearly the whole range of each type, both signs: no high word is mere sign."""
        word = words(self.seed, "store_sales.ss_wide_15_2", rows)
        builder.decimals("ss_wide_15_2", below_wide(word, 2 * 10**15 - 1).astype(np.int64) - (10**15 - 1))
        for column, precision in (("ss_wide_20_2", 20), ("ss_wide_38_6", 38)):
            builder.wide_decimals(column, self._pairs(column, rows, 10**precision // 2**64))

    def _pairs(self, column: str, rows: Int64s, high_words: int) -> Words128:
        """128-bit values from -high_words * 2**64 up to, and not with, high_words * 2**64."""
        pairs = np.empty((len(rows), 2), np.int64)
        pairs[:, 0] = words(self.seed, f"store_sales.{column}.low", rows).view(np.int64)
        high = below_wide(words(self.seed, f"store_sales.{column}.high", rows), 2 * high_words)
        pairs[:, 1] = (high - np.uint64(high_words)).view(np.int64)
        return pairs


def place_of(dates: Int32s) -> Words:
    """Where the tickets of a day begin on the circle of items: the days of all years are a sixteenth of it, one after
    another, so that their lines reach every sixteenth, and each item sells in its own days."""
    day = (dates - FIRST_KEY).astype(np.uint64)
    return day * np.uint64((1 << 60) // (LAST_KEY - FIRST_KEY + 1))
