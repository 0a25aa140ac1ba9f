"""Catalog and web sales, returns and inventory: what TPC-DS says of their keys, and the two knobs."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.revisions import key_count
from icebench.bench.workloads.scaling import WEEKS, row_count
from icebench.bench.workloads.schemas import TABLES
from icebench.bench.workloads.tpcds import Tpcds

WORKLOAD = Tpcds(0.02, seed=5)
NUMBERS = {
    "store": ("ss", "sr", "ticket_number"),
    "catalog": ("cs", "cr", "order_number"),
    "web": ("ws", "wr", "order_number"),
}


def whole(table: str, workload: Tpcds = WORKLOAD) -> pa.Table:
    found = pa.Table.from_batches([workload.batch(table, 0, workload.row_count(table))])
    found.validate(full=True)
    return found


@pytest.mark.parametrize(
    ("table", "scale", "rows"),
    [
        ("store_returns", 1, 287_514),
        ("catalog_sales", 1, 1_441_548),
        ("catalog_returns", 1, 144_067),
        ("web_sales", 1, 719_384),
        ("web_returns", 1, 71_763),
        ("inventory", 1, 11_745_000),
        ("inventory", 10, 133_110_000),
        ("inventory", 100, 399_330_000),
        ("inventory", 1_000, 783_000_000),
        ("web_sales", 1_000, 720_000_376),
        ("catalog_returns", 100_000, 14_400_175_879),
    ],
)
def test_rows_are_as_many_as_the_specification_says(table: str, scale: float, rows: int) -> None:
    assert row_count(table, scale) == rows


@pytest.mark.parametrize("channel", NUMBERS)
def test_a_return_is_of_one_sale_and_a_sale_is_returned_once(channel: str) -> None:
    sold, back, number = NUMBERS[channel]
    sales, returns = whole(f"{channel}_sales"), whole(f"{channel}_returns")
    assert sales.group_by([f"{sold}_item_sk", f"{sold}_{number}"]).aggregate([]).num_rows == sales.num_rows
    keys = [f"{back}_item_sk", f"{back}_{number}"]
    assert returns.group_by(keys).aggregate([]).num_rows == returns.num_rows
    both = returns.join(sales, keys, [f"{sold}_item_sk", f"{sold}_{number}"], "inner")
    assert both.num_rows == returns.num_rows
    assert pc.all(pc.less_equal(both[f"{back}_return_quantity"], both[f"{sold}_quantity"])).as_py()
    days = pc.subtract(both[f"{back}_returned_date_sk"], both[f"{sold}_sold_date_sk"]).drop_null()
    assert (pc.min(days).as_py(), pc.max(days).as_py()) == (1, 90)
    who = (
        (f"{back}_customer_sk", f"{sold}_customer_sk")
        if channel == "store"
        else (f"{back}_refunded_customer_sk", f"{sold}_bill_customer_sk")
    )
    assert pc.all(pc.equal(both[who[0]], both[who[1]])).as_py()
    assert both.column(who[0]).null_count > 0


@pytest.mark.parametrize("table", ["catalog_sales", "web_sales"])
def test_keys_are_of_the_tables_that_they_point_to_and_channels_differ(table: str) -> None:
    sales, prefix = whole(table), "cs" if table == "catalog_sales" else "ws"
    targets = {
        "item_sk": "item",
        "bill_customer_sk": "customer",
        "ship_addr_sk": "customer_address",
        "promo_sk": "promotion",
    }
    for column, target in targets.items():
        found = pc.min_max(sales[f"{prefix}_{column}"]).as_py()
        assert 1 <= found["min"] < found["max"] <= row_count(target, WORKLOAD.scale)
    same = pc.equal(sales[f"{prefix}_bill_customer_sk"], sales[f"{prefix}_ship_customer_sk"])
    assert pc.mean(same.cast(pa.int8())).as_py() == pytest.approx(0.9, abs=0.02)
    store = WORKLOAD.batch("store_sales", 0, 5_000)
    alike = pc.equal(store.column("ss_list_price"), sales[f"{prefix}_list_price"].slice(0, 5_000).combine_chunks())
    assert pc.mean(alike.cast(pa.int8())).as_py() < 0.01
    share = sum(sales[name].null_count for name in sales.column_names) / sales.num_rows / (len(sales.column_names) - 2)
    assert share == pytest.approx(0.045, abs=0.003)


@pytest.mark.parametrize(("late", "share"), [(0.0, 0.0), (0.2, 0.2)])
def test_catalog_orders_come_in_the_order_of_their_dates_but_for_the_late(late: float, share: float) -> None:
    sales = whole("catalog_sales", Tpcds(0.02, seed=5, late=late))
    orders = sales.select(["cs_order_number", "cs_sold_date_sk"]).drop_null()
    dates = orders.group_by("cs_order_number").aggregate([("cs_sold_date_sk", "min")]).sort_by("cs_order_number")
    dates = dates["cs_sold_date_sk_min"].to_numpy()
    behind = np.maximum.accumulate(dates) - dates
    assert (behind > 0).mean() == pytest.approx(share, abs=0.03)
    assert behind.max() <= 90
    assert (whole("web_sales")["ws_sold_date_sk"].drop_null().to_numpy()[:1000].max() - dates[0]) > 1_000


@pytest.mark.parametrize(("correlation", "least", "most"), [(0.0, 0.45, 1.0), (1.0, 0.0, 0.06)])
def test_with_correlation_an_item_sells_in_few_days(correlation: float, least: float, most: float) -> None:
    sales = whole("store_sales", Tpcds(0.05, seed=5, correlation=correlation)).drop_null()
    assert sales.num_rows > 100_000
    spans = sales.group_by("ss_item_sk").aggregate([("ss_sold_date_sk", "stddev"), ("ss_sold_date_sk", "count")])
    spread = pc.mean(spans["ss_sold_date_sk_stddev"]).as_py() / 527  # of five uniform years
    assert least <= spread <= most
    assert spans.num_rows > 0.9 * key_count(row_count("item", 0.05))


def test_inventory_has_each_item_in_each_warehouse_each_week() -> None:
    rows = whole("inventory")
    assert rows.group_by(["inv_date_sk", "inv_item_sk", "inv_warehouse_sk"]).aggregate([]).num_rows == rows.num_rows
    weeks = np.unique(rows["inv_date_sk"].to_numpy())
    assert len(weeks) == WEEKS
    assert set(np.diff(weeks)) == {7}
    assert rows["inv_quantity_on_hand"].null_count / rows.num_rows == pytest.approx(0.05, abs=0.005)
    assert pc.min_max(rows["inv_quantity_on_hand"]).as_py() == {"min": 0, "max": 1_000}


@pytest.mark.parametrize("table", TABLES)
def test_every_fact_table_is_a_workload(table: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs the extra 'peers'")
    facts = DatedSales.of(WORKLOAD, table)
    rows = facts.batch(0, facts.rows)
    assert rows.schema == facts.schema
    with duckdb.connect() as connection:
        connection.register("facts", rows)
        for text in facts.filters.values():
            assert 0 < connection.sql(f"select count(*) from facts where {text}").fetchall()[0][0] < facts.rows
        for spread in ("random", "clustered", "first"):
            text = facts.delete_keys(0.05, spread).filter
            share = connection.sql(f"select count(*) from facts where {text}").fetchall()[0][0] / facts.rows
            assert share == pytest.approx(0.05, abs=0.03)
