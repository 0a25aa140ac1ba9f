"""The fact table inventory: each week, how many pieces of each item are in each warehouse, in this order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebench.bench.workloads.arrays import BatchBuilder
from icebench.bench.workloads.draws import draw
from icebench.bench.workloads.revisions import era_of, key_count, row_valid_in
from icebench.bench.workloads.sales_calendar import FIRST_KEY
from icebench.bench.workloads.scaling import row_count

_UNKNOWN_PER_CENT = 5
_MOST = 1_000


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """The inventory of a data set."""

    seed: int
    scale: float
    schema: pa.Schema

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows `start` to `stop`, exclusive."""
        rows = np.arange(start, stop)
        item_rows, warehouses = row_count("item", self.scale), row_count("warehouse", self.scale)
        week, rest = np.divmod(rows, key_count(item_rows) * warehouses)
        thing, warehouse = np.divmod(rest, warehouses)
        date = (FIRST_KEY + 7 * week).astype(np.int32)
        era = era_of(date)
        items = np.stack([row_valid_in(thing, number, item_rows) for number in range(4)])
        builder = BatchBuilder(self.schema, len(rows))
        builder.integers("inv_date_sk", date)
        builder.integers("inv_item_sk", items[era, np.arange(len(rows))])
        builder.integers("inv_warehouse_sk", 1 + warehouse)
        known = draw(self.seed, "inventory.known", rows, 100) >= _UNKNOWN_PER_CENT
        builder.integers("inv_quantity_on_hand", draw(self.seed, "inventory.quantity", rows, _MOST + 1), known)
        return builder.finish()
