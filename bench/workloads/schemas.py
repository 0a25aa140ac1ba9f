"""Columns of the generated tables (TPC-DS specification, clause 2.3 and 2.4), as Arrow schemas.

Identifiers and integers are 32 bits wide except the ticket number; `char` and `varchar` are strings, without padding.
A field is nullable as in dsdgen: keys and business keys never are, and all of date_dim is known.
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
    "date_dim": """
        d_date_sk int!, d_date_id string!, d_date date!, d_month_seq int!, d_week_seq int!, d_quarter_seq int!,
        d_year int!, d_dow int!, d_moy int!, d_dom int!, d_qoy int!, d_fy_year int!, d_fy_quarter_seq int!,
        d_fy_week_seq int!, d_day_name string!, d_quarter_name string!, d_holiday string!, d_weekend string!,
        d_following_holiday string!, d_first_dom int!, d_last_dom int!, d_same_day_ly int!, d_same_day_lq int!,
        d_current_day string!, d_current_week string!, d_current_month string!, d_current_quarter string!,
        d_current_year string!""",
    "item": """
        i_item_sk int!, i_item_id string!, i_rec_start_date date, i_rec_end_date date, i_item_desc string,
        i_current_price decimal(7,2), i_wholesale_cost decimal(7,2), i_brand_id int, i_brand string, i_class_id int,
        i_class string, i_category_id int, i_category string, i_manufact_id int, i_manufact string, i_size string,
        i_formulation string, i_color string, i_units string, i_container string, i_manager_id int,
        i_product_name string""",
    "store": """
        s_store_sk int!, s_store_id string!, s_rec_start_date date, s_rec_end_date date, s_closed_date_sk int,
        s_store_name string, s_number_employees int, s_floor_space int, s_hours string, s_manager string,
        s_market_id int, s_geography_class string, s_market_desc string, s_market_manager string, s_division_id int,
        s_division_name string, s_company_id int, s_company_name string, s_street_number string, s_street_name string,
        s_street_type string, s_suite_number string, s_city string, s_county string, s_state string, s_zip string,
        s_country string, s_gmt_offset decimal(5,2), s_tax_percentage decimal(5,2)""",
    "customer": """
        c_customer_sk int!, c_customer_id string!, c_current_cdemo_sk int, c_current_hdemo_sk int,
        c_current_addr_sk int!, c_first_shipto_date_sk int, c_first_sales_date_sk int, c_salutation string,
        c_first_name string, c_last_name string, c_preferred_cust_flag string, c_birth_day int, c_birth_month int,
        c_birth_year int, c_birth_country string, c_login string, c_email_address string, c_last_review_date_sk int""",
}

_WHO = ("customer_sk", "cdemo_sk", "hdemo_sk", "addr_sk")
_LINE = (
    "wholesale_cost", "list_price", "sales_price", "ext_discount_amt", "ext_sales_price", "ext_wholesale_cost",
    "ext_list_price", "ext_tax", "coupon_amt", "ext_ship_cost", "net_paid", "net_paid_inc_tax", "net_paid_inc_ship",
    "net_paid_inc_ship_tax", "net_profit",
)  # fmt: skip
_BACK = (
    "return_tax", "return_amt_inc_tax", "fee", "return_ship_cost", "refunded_cash", "reversed_charge", "store_credit",
    "net_loss",
)  # fmt: skip


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
_TYPES = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string(), "date": pa.date32()}


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


def spark_ddl(arrow_schema: pa.Schema) -> str:
    """The same columns in Spark's DDL, for `mapInArrow`."""
    names = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", pa.date32(): "date"}
    columns = []
    for field in arrow_schema:
        kind = f"decimal({field.type.precision},{field.type.scale})" if pa.types.is_decimal(field.type) else None
        columns.append(f"`{field.name}` {kind or names[field.type]}{'' if field.nullable else ' not null'}")
    return ", ".join(columns)
