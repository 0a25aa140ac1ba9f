import re
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icebench.bench.definition import Definition
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.definitions import WORKLOADS, RowsWorkload
from icebench.bench.workloads.rows import SPREADS, KeyRange
from icebench.bench.workloads.sales_calendar import date_key
from icebench.bench.workloads.schemas import TABLES
from icebench.bench.workloads.tpcds import Tpcds
from icebench.bench.workloads.wide import Wide

SALES = DatedSales.of(Tpcds(scale=0.05, seed=2))
WIDE = Wide(columns=3, rows=20_000)


@pytest.fixture(scope="module")
def sales() -> pa.RecordBatch:
    return SALES.batch(0, SALES.rows)


def places(batch: pa.RecordBatch, keys: KeyRange) -> list[int]:
    """The rows whose key is in the range."""
    column = batch.column(keys.column)
    chosen = pc.and_(pc.greater_equal(column, keys.start), pc.less(column, keys.stop))
    found: list[int] = pc.indices_nonzero(chosen).to_pylist()
    return found


def test_the_last_column_is_the_date_of_its_key(sales: pa.RecordBatch) -> None:
    assert sales.schema == SALES.schema
    assert sales.schema.names == [*SALES.tpcds.schema("store_sales").names, "ss_sold_date"]
    assert sales.drop_columns(["ss_sold_date"]) == SALES.tpcds.batch("store_sales", 0, SALES.rows)
    dates, keys = sales.column("ss_sold_date").to_pylist(), sales.column("ss_sold_date_sk").to_pylist()
    assert [None if day is None else date_key(day) for day in dates] == keys
    assert dates.count(None) > 0


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("skew", [0.0, 1.2])
def test_identifier_columns_identify_a_row(table: str, skew: float) -> None:
    rows = DatedSales.of(Tpcds(scale=0.01, skew=skew), table)
    batch = rows.batch(0, min(rows.rows, 30_000)).select(rows.identifier_columns)
    assert pa.Table.from_batches([batch]).group_by(batch.schema.names).aggregate([]).num_rows == batch.num_rows
    assert not any(column.null_count for column in batch.columns)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("share", [0.001, 0.01, 0.07, 0.5])
def test_keys_to_delete_are_about_that_share_of_the_rows(sales: pa.RecordBatch, spread: str, share: float) -> None:
    for rows, batch in ((SALES, sales), (WIDE, WIDE.batch(0, WIDE.rows))):
        found = len(places(batch, rows.delete_keys(share, spread))) / batch.num_rows
        assert found == pytest.approx(share, rel=0.4 if share < 0.01 else 0.15)


@pytest.mark.parametrize("rows", [SALES, WIDE], ids=["sales", "wide"])
def test_deletes_are_spread_as_they_say(rows: DatedSales | Wide) -> None:
    batch = rows.batch(0, rows.rows)
    by_spread = {spread: places(batch, rows.delete_keys(0.05, spread)) for spread in SPREADS}
    for spread in ("clustered", "first"):
        found = by_spread[spread]
        assert found == list(range(found[0], found[0] + len(found)))
    assert by_spread["first"][0] == 0
    middle = by_spread["clustered"]
    assert (middle[0] + middle[-1]) / 2 == pytest.approx(rows.rows / 2, rel=0.02)
    tenths = [sum(place // (rows.rows // 10) == tenth for place in by_spread["random"]) for tenth in range(10)]
    assert min(tenths) > 0.5 * max(tenths)


def test_even_the_smallest_share_deletes_somebody() -> None:
    assert SALES.delete_keys(1e-9, "random").filter == "ss_customer_sk >= 1 and ss_customer_sk < 2"


def test_a_range_is_split_into_ranges_that_make_it_up() -> None:
    keys = KeyRange(column="a", start=3, stop=10)
    parts = keys.split(3)
    assert [key for part in parts for key in range(part.start, part.stop)] == list(range(3, 10))
    assert len(parts) == 3
    assert len(keys.split(100)) == 7


def test_a_refresh_is_the_workloads_own() -> None:
    text = SALES.refresh_deletes()
    assert text is not None
    days = [date.fromisoformat(day) for day in re.findall(r"'([\d-]+)'", text)]
    assert list(zip(days[::2], days[1::2], strict=True)) == SALES.tpcds.delete_ranges()
    assert days[1] - days[0] == timedelta(days=1)
    assert text.count(" or ") == 2
    assert WIDE.refresh_deletes() is None


def test_a_definition_makes_its_rows() -> None:
    definition = WORKLOADS["tpcds"].parse(Definition({"scale": 0.5, "seed": 7, "skew": 0.3, "wide_decimals": True}))
    assert isinstance(definition, RowsWorkload)
    assert definition.rows == DatedSales.of(Tpcds(scale=0.5, seed=7, skew=0.3, wide_decimals=True))
    assert definition.name == "tpcds"
