from datetime import date
from decimal import localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icebench.bench.workloads.sales_calendar import date_key
from icebench.bench.workloads.scaling import row_count
from icebench.bench.workloads.tpcds import Tpcds

WORKLOAD = Tpcds(0.05, seed=11, wide_decimals=True)
BEGIN, END = date(1998, 1, 1), date(2002, 12, 31)
VALID = (
    (BEGIN, END),
    (BEGIN, date(2000, 12, 31)),
    (date(2001, 1, 1), END),
    (BEGIN, date(2000, 1, 1)),
    (date(2000, 1, 2), date(2001, 12, 31)),
    (date(2002, 1, 1), END),
)
"""Of items, by their place in six: one thing with one revision, one with two, one with three."""
TICKET_COLUMNS = (
    "ss_sold_date_sk",
    "ss_sold_time_sk",
    "ss_customer_sk",
    "ss_cdemo_sk",
    "ss_hdemo_sk",
    "ss_addr_sk",
    "ss_store_sk",
)


@pytest.fixture(scope="module")
def sales() -> pa.Table:
    table = pa.Table.from_batches([WORKLOAD.batch("store_sales", 0, WORKLOAD.row_count("store_sales"))])
    table.validate(full=True)
    return table


@pytest.mark.parametrize("skew", [0.0, 1.2])
def test_item_and_ticket_are_a_primary_key(skew: float) -> None:
    workload = Tpcds(0.05, seed=4, skew=skew)
    batch = workload.batch("store_sales", 0, workload.row_count("store_sales"))
    keys = pa.table([batch.column("ss_item_sk"), batch.column("ss_ticket_number")], names=["i", "t"])
    assert keys.group_by(["i", "t"]).aggregate([]).num_rows == batch.num_rows
    assert keys.column("i").null_count == keys.column("t").null_count == 0


def test_a_tickets_lines_agree_where_known(sales: pa.Table) -> None:
    for column in TICKET_COLUMNS:
        known = sales.select(["ss_ticket_number", column]).drop_null()
        values = known.group_by("ss_ticket_number").aggregate([(column, "min"), (column, "max")])
        assert values.column(f"{column}_min").equals(values.column(f"{column}_max")), column


def test_tickets_are_numbered_from_1_in_arrival_order(sales: pa.Table) -> None:
    tickets = sales.column("ss_ticket_number").to_numpy()
    assert tickets[0] == 1
    assert set(np.diff(tickets).tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("column", "target"),
    [
        ("ss_item_sk", "item"),
        ("ss_customer_sk", "customer"),
        ("ss_cdemo_sk", "customer_demographics"),
        ("ss_hdemo_sk", "household_demographics"),
        ("ss_addr_sk", "customer_address"),
        ("ss_store_sk", "store"),
        ("ss_promo_sk", "promotion"),
    ],
)
def test_foreign_keys_spread_over_their_table(sales: pa.Table, column: str, target: str) -> None:
    rows = row_count(target, WORKLOAD.scale)
    limits = pc.min_max(sales.column(column)).as_py()
    assert 1 <= limits["min"] <= 1 + rows // 100
    # Of the last thing in store, only the first revision of three is ever sold from.
    assert rows - max(2, rows // 100) <= limits["max"] <= rows


def test_an_item_is_sold_in_the_revision_valid_on_the_day(sales: pa.Table) -> None:
    known = sales.select(["ss_item_sk", "ss_sold_date_sk"]).drop_null()
    place = (known.column("ss_item_sk").to_numpy() - 1) % 6
    day = known.column("ss_sold_date_sk").to_numpy()
    for number, (first, last) in enumerate(VALID):
        sold = day[place == number]
        assert len(sold) > 1_000
        # Of the last thing, only the first revision may be there.
        assert ((sold >= date_key(first)) & (sold <= date_key(last))).mean() > 0.999


def test_nulls_fall_on_nine_percent_of_rows(sales: pa.Table) -> None:
    nullable = [field.name for field in sales.schema if field.nullable]
    unknown = np.stack([sales.column(name).is_null().to_numpy() for name in nullable])
    assert abs(unknown.any(axis=0).mean() - 0.09) < 0.002
    assert np.abs(unknown.mean(axis=1) - 0.045).max() < 0.002


def test_a_slice_of_one_percent_spans_the_calendar(sales: pa.Table) -> None:
    """Arrival order is unclustered by date, which is what makes layouts worth comparing."""
    dates = sales.column("ss_sold_date_sk")
    whole = pc.min_max(dates).as_py()
    for start in range(0, sales.num_rows - sales.num_rows // 100, sales.num_rows // 10):
        part = pc.min_max(dates.slice(start, sales.num_rows // 100)).as_py()
        assert part["max"] - part["min"] >= 0.9 * (whole["max"] - whole["min"])


@pytest.mark.parametrize(
    ("column", "scale", "bound"),
    [("ss_wide_15_2", 2, 10**15), ("ss_wide_20_2", 2, 10**20), ("ss_wide_38_6", 6, 10**38)],
)
def test_wide_decimals_use_their_range(sales: pa.Table, column: str, scale: int, bound: int) -> None:
    known = sales.column(column).slice(0, 5_000).drop_null().to_pylist()
    with localcontext() as exact:
        exact.prec = 60
        values = [int(value.scaleb(scale)) for value in known]
    assert all(-bound < value < bound for value in values)
    assert max(values) > bound * 0.9
    assert min(values) < -bound * 0.9
    assert abs(sum(value < 0 for value in values) / len(values) - 0.5) < 0.05


def test_wide_decimals_change_no_other_column() -> None:
    plain = Tpcds(0.05, seed=11).batch("store_sales", 0, 1_000)
    assert WORKLOAD.batch("store_sales", 0, 1_000).select(plain.schema.names).equals(plain)


def test_skew_changes_items_only() -> None:
    plain, skewed = (Tpcds(0.05, seed=11, skew=skew).batch("store_sales", 0, 5_000) for skew in (0.0, 1.0))
    for name in plain.schema.names:
        assert plain.column(name).equals(skewed.column(name)) == (name != "ss_item_sk"), name
    most = pc.max(pc.value_counts(skewed.column("ss_item_sk")).field("counts")).as_py()
    assert most / 5_000 > 0.03
