"""Columns of the generated tables (TPC-DS specification, clause 2.3 and 2.4), as Arrow schemas.

Identifiers and integers are 32 bits wide except the ticket number. A field is nullable as in dsdgen: keys never are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

_COLUMNS = {
    "store_sales": """
        ss_sold_date_sk int, ss_sold_time_sk int, ss_item_sk int!, ss_customer_sk int, ss_cdemo_sk int,
        ss_hdemo_sk int, ss_addr_sk int, ss_store_sk int, ss_promo_sk int, ss_ticket_number bigint!, ss_quantity int,
        ss_wholesale_cost decimal(7,2), ss_list_price decimal(7,2), ss_sales_price decimal(7,2),
        ss_ext_discount_amt decimal(7,2), ss_ext_sales_price decimal(7,2), ss_ext_wholesale_cost decimal(7,2),
        ss_ext_list_price decimal(7,2), ss_ext_tax decimal(7,2), ss_coupon_amt decimal(7,2), ss_net_paid decimal(7,2),
        ss_net_paid_inc_tax decimal(7,2), ss_net_profit decimal(7,2)""",
}

_WHO = ("customer_sk", "cdemo_sk", "hdemo_sk", "addr_sk")
_LINE = (
    "wholesale_cost",
    "list_price",
    "sales_price",
    "ext_discount_amt",
    "ext_sales_price",
    "ext_wholesale_cost",
    "ext_list_price",
    "ext_tax",
    "coupon_amt",
    "ext_ship_cost",
    "net_paid",
    "net_paid_inc_tax",
    "net_paid_inc_ship",
    "net_paid_inc_ship_tax",
    "net_profit",
)
_BACK = (
    "return_tax",
    "return_amt_inc_tax",
    "fee",
    "return_ship_cost",
    "refunded_cash",
    "reversed_charge",
    "store_credit",
    "net_loss",
)


def _columns(prefix: str, keys: Sequence[str], number: str, quantity: str, money: Sequence[str]) -> str:
    """Columns of a channel: keys, the item and the order's number (never null), a quantity, and amounts of money."""
    kinds = {"item_sk": "int!", number: "bigint!"}
    texts = [f"{name} {kinds.get(name, 'int')}" for name in (*keys, number, quantity)]
    return ", ".join(f"{prefix}_{text}" for text in (*texts, *(f"{name} decimal(7,2)" for name in money)))


def _who(*roles: str) -> list[str]:
    return [f"{role}_{name}" for role in roles for name in _WHO]


_COLUMNS |= {
    "store_returns": _columns(
        "sr", ["returned_date_sk", "return_time_sk", "item_sk", *_WHO, "store_sk", "reason_sk"], "ticket_number",
        "return_quantity", ["return_amt", *_BACK],
    ),
    "catalog_sales": _columns(
        "cs", ["sold_date_sk", "sold_time_sk", "ship_date_sk", *_who("bill", "ship"), "call_center_sk",
               "catalog_page_sk", "ship_mode_sk", "warehouse_sk", "item_sk", "promo_sk"],
        "order_number", "quantity", _LINE,
    ),
    "catalog_returns": _columns(
        "cr", ["returned_date_sk", "returned_time_sk", "item_sk", *_who("refunded", "returning"), "call_center_sk",
               "catalog_page_sk", "ship_mode_sk", "warehouse_sk", "reason_sk"],
        "order_number", "return_quantity", ["return_amount", *_BACK],
    ),
    "web_sales": _columns(
        "ws", ["sold_date_sk", "sold_time_sk", "ship_date_sk", "item_sk", *_who("bill", "ship"), "web_page_sk",
               "web_site_sk", "ship_mode_sk", "warehouse_sk", "promo_sk"],
        "order_number", "quantity", _LINE,
    ),
    "web_returns": _columns(
        "wr", ["returned_date_sk", "returned_time_sk", "item_sk", *_who("refunded", "returning"), "web_page_sk",
               "reason_sk"],
        "order_number", "return_quantity", ["return_amt", *_BACK],
    ).replace("store_credit", "account_credit"),
    "inventory": "inv_date_sk int!, inv_item_sk int!, inv_warehouse_sk int!, inv_quantity_on_hand int",
}  # fmt: skip

# Not in TPC-DS, whose decimals all fit in 64 bits: one that Iceberg stores as INT64 and two that it stores as FIXED.
_WIDE_DECIMALS = "ss_wide_15_2 decimal(15,2), ss_wide_20_2 decimal(20,2), ss_wide_38_6 decimal(38,6)"

TABLES = tuple(_COLUMNS)

_FIELD = re.compile(r"(\w+) (\w+(?:\((\d+),(\d+)\))?)(!?)")
_TYPES = {"int": pa.int32(), "bigint": pa.int64()}


def _parsed(columns: str) -> list[pa.Field]:
    fields = []
    for name, kind, precision, scale, required in _FIELD.findall(columns):
        arrow_type = pa.decimal128(int(precision), int(scale)) if precision else _TYPES[kind]
        fields.append(pa.field(name, arrow_type, nullable=not required))
    return fields


def schema(table: str, *, wide_decimals: bool) -> pa.Schema:
    """The Arrow schema of a generated table.

    Args:
        table: One of `TABLES`.
        wide_decimals: Whether store_sales ends with ss_wide_15_2, ss_wide_20_2 and ss_wide_38_6.

    Raises:
        ValueError: No such table.
    """
    if table not in _COLUMNS:
        raise ValueError(f"no such table: {table!r} (generated: {', '.join(TABLES)})")
    wide = wide_decimals and table == "store_sales"
    return pa.schema(_parsed(_COLUMNS[table]) + (_parsed(_WIDE_DECIMALS) if wide else []))
