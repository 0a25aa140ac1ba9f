"""The fact tables of returns: each row is of one sale of its channel, and no sale is returned twice.

The sales are divided into as many runs of consecutive rows as there are returns, and one of each run, drawn by the
return's number, comes back: its item, its ticket or order, and who and where it was sold, null where the sale's are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebench.bench.workloads.arrays import BatchBuilder, null_masks
from icebench.bench.workloads.channels import NULLS_PER_TEN_THOUSAND, own_seed
from icebench.bench.workloads.draws import Int64s, draw
from icebench.bench.workloads.sales_calendar import FIRST_KEY
from icebench.bench.workloads.scaling import row_count

_MOST_DAYS = 90
_COPIED: Mapping[str, str] = {
    "customer_sk": "customer_sk",
    "cdemo_sk": "cdemo_sk",
    "hdemo_sk": "hdemo_sk",
    "addr_sk": "addr_sk",
    "store_sk": "store_sk",
    "item_sk": "item_sk",
    "ticket_number": "ticket_number",
    "order_number": "order_number",
    "call_center_sk": "call_center_sk",
    "catalog_page_sk": "catalog_page_sk",
    "ship_mode_sk": "ship_mode_sk",
    "warehouse_sk": "warehouse_sk",
    "web_page_sk": "web_page_sk",
    **{f"refunded_{who}": f"bill_{who}" for who in ("customer_sk", "cdemo_sk", "hdemo_sk", "addr_sk")},
    **{f"returning_{who}": f"ship_{who}" for who in ("customer_sk", "cdemo_sk", "hdemo_sk", "addr_sk")},
}
"""Column of the return -> column of the sale, both without their prefixes."""


@dataclass(frozen=True, kw_only=True)
class Returns:
    """A table of returns; `sales_schema` is of the table of its sales."""

    table: str
    seed: int
    scale: float
    sales_schema: pa.Schema
    schema: pa.Schema

    def batch(self, start: int, stop: int, sales_of: Callable[[int, int], pa.RecordBatch]) -> pa.RecordBatch:
        """Rows `start` to `stop`, exclusive; `sales_of` gives rows of the sales."""
        seed, prefix = own_seed(self.seed, self.table), self.schema.names[0][:2]
        rows = np.arange(start, stop)
        builder = BatchBuilder(self.schema, len(rows), null_masks(seed, self.table, rows, NULLS_PER_TEN_THOUSAND))
        of = self.sold(rows)
        sales = sales_of(int(of[0]), int(of[-1]) + 1).take(pa.array(of - of[0])) if len(rows) else sales_of(0, 0)
        values = {field.name[3:]: _filled(sales.column(field.name)) for field in self.sales_schema}
        for column, source in _COPIED.items():
            if f"{prefix}_{column}" in self.schema.names:
                builder.integers(f"{prefix}_{column}", *values[source])
        sold, known = values["sold_date_sk"]
        days = np.where(known, sold, FIRST_KEY) + 1 + draw(seed, "days", rows, _MOST_DAYS)
        builder.integers(f"{prefix}_returned_date_sk", days, known)
        time = "return_time_sk" if prefix == "sr" else "returned_time_sk"
        builder.integers(f"{prefix}_{time}", draw(seed, "time", rows, row_count("time_dim", self.scale)))
        builder.integers(f"{prefix}_reason_sk", 1 + draw(seed, "reason", rows, row_count("reason", self.scale)))
        self._put_money(builder, seed, rows, values["quantity"][0], values["sales_price"][0])
        return builder.finish()

    def sold(self, rows: Int64s) -> Int64s:
        """The row of the sale of each return: increasing, and each once."""
        returns = row_count(self.table, self.scale)
        sales = row_count(self.table.replace("returns", "sales"), self.scale)
        runs = draw(own_seed(self.seed, self.table), "sale", rows, sales // returns)
        whole, rest = divmod(sales, returns)  # `rows * sales` exceeds 64 bits at scale 10,000
        return rows * whole + rows * rest // returns + runs

    def _put_money(self, builder: BatchBuilder, seed: int, rows: Int64s, sold: Int64s, price: Int64s) -> None:
        prefix = self.schema.names[0][:2]
        quantity = 1 + draw(seed, "quantity", rows, 1 << 20) * np.maximum(sold, 1) // (1 << 20)
        amount = quantity * price
        tax = amount * draw(seed, "tax", rows, 10) // 100
        fee = 50 + draw(seed, "fee", rows, 9_951)
        ship = amount * draw(seed, "ship", rows, 51) // 100
        cash = amount * draw(seed, "cash", rows, 101) // 100
        charge = (amount - cash) * draw(seed, "charge", rows, 101) // 100
        money = [amount, tax, amount + tax, fee, ship, cash, charge, amount - cash - charge, fee + ship + tax]
        names = self.schema.names[-len(money) :]
        builder.integers(f"{prefix}_return_quantity", quantity)
        for name, value in zip(names, money, strict=True):
            builder.decimals(name, value)


def _filled(column: pa.Array) -> tuple[Int64s, np.ndarray]:
    """Whole numbers, unscaled where they are decimals, with 0 for null; and which are known."""
    known = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(column.type):
        words = np.frombuffer(column.buffers()[1], np.int64)
        low = words.reshape(-1, 2)[column.offset : column.offset + len(column), 0]
        return np.where(known, low, 0), known
    return column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), known
