"""The generator against dsdgen itself (DuckDB's, scale factor 0.1): the same shape, within stated tolerances.

Both data sets are of the same size, so both have sampling noise: 24,000 tickets decide dates, times and keys, 288,000
rows decide prices and nulls. Each tolerance is a few standard deviations of the difference of two such samples. Seeds
are fixed on both sides, so a result never changes by chance.
"""

from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from icebench.bench.workloads.sales_calendar import UNIX_DAY_0
from icebench.bench.workloads.schemas import TABLES
from icebench.bench.workloads.tpcds import Tpcds

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

duckdb = pytest.importorskip("duckdb", reason="needs the extra 'peers'")
pytest.importorskip("duckdb_extension_tpcds", reason="needs the extra 'peers'")

pytestmark = pytest.mark.interop

SCALE = 0.1
WORKLOAD = Tpcds(SCALE)
COLUMNS = tuple(WORKLOAD.schema("store_sales").names)
MEASURES = COLUMNS[COLUMNS.index("ss_quantity") :]
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)

# The day that was drawn for each sale. dsdgen adds the day's number in the year to the first of January, one too many,
# and numbers the days of every year as if it had a 29 February: its sales fall a day or two after the day drawn. Where
# that crosses the new year it cannot be undone, so these few days are left out on both sides.
DAYS = {
    "ours": f"""
        select date '1970-01-01' + (ss_sold_date_sk - {UNIX_DAY_0}) as day
        from store_sales where ss_sold_date_sk is not null""",
    "theirs": """
        select d_date - case when d_year % 4 <> 0 and dayofyear(d_date) > 60 then 2 else 1 end as day
        from store_sales join date_dim on ss_sold_date_sk = d_date_sk
        where not (month(d_date) = 1 and day(d_date) <= 2)""",
}
NEW_YEAR = "(month(day), day(day)) in ((1, 1), (12, 30), (12, 31))"


@pytest.fixture(scope="module")
def theirs() -> "Iterator[DuckDBPyConnection]":
    """A database with the data of dsdgen. The extension is loaded from its package: nothing is downloaded."""
    extension = files("duckdb_extension_tpcds") / "extensions" / f"v{duckdb.__version__}" / "tpcds.duckdb_extension"
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute(f"load '{extension}'")
        connection.execute(f"call dsdgen(sf={SCALE})")
        yield connection


@pytest.fixture(scope="module")
def ours() -> "Iterator[DuckDBPyConnection]":
    """A database with the generator's data under the same names."""
    with duckdb.connect(config={"threads": 2}) as connection:
        for table in TABLES:
            rows = pa.Table.from_batches([WORKLOAD.batch(table, 0, WORKLOAD.row_count(table))])
            connection.register(table, rows)
        yield connection


@pytest.fixture
def both(ours: "DuckDBPyConnection", theirs: "DuckDBPyConnection") -> "tuple[DuckDBPyConnection, DuckDBPyConnection]":
    return ours, theirs


def row(connection: "DuckDBPyConnection", query: str) -> tuple[Any, ...]:
    found = connection.execute(query).fetchone()
    assert found is not None
    return found


def shares(connection: "DuckDBPyConnection", key: str, source: str) -> dict[Any, float]:
    """The share of rows of each value of an expression, nulls left out."""
    query = f"""select {key} as k, count(*) / sum(count(*)) over () from ({source})
                where ({key}) is not null group by k order by k"""
    return dict(connection.execute(query).fetchall())


def assert_shares_agree(ours: dict[Any, float], theirs: dict[Any, float], tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    worst = max(ours, key=lambda key: abs(ours[key] - theirs[key]))
    assert abs(ours[worst] - theirs[worst]) <= tolerance, f"{worst}: {ours[worst]:.4f} against {theirs[worst]:.4f}"


def test_row_counts(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    """Within 0.2 %: dsdgen does not fix rows of sales, but tickets."""
    made, reference = (row(connection, "select count(*) from store_sales")[0] for connection in both)
    assert abs(made - reference) <= 0.002 * reference


def test_columns_are_the_same(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    for table in TABLES:
        made, reference = (
            [column[0] for column in connection.execute(f"select * from {table} limit 0").description or []]
            for connection in both
        )
        assert made == reference


def test_months(ours: "DuckDBPyConnection", theirs: "DuckDBPyConnection") -> None:
    """Share of sales in each month of the year: within 0.6 percentage points (3 deviations of December's share)."""
    made = shares(ours, "month(day)", f"select * from ({DAYS['ours']}) where not {NEW_YEAR}")
    reference = shares(theirs, "month(day)", f"select * from ({DAYS['theirs']}) where not {NEW_YEAR}")
    assert_shares_agree(made, reference, 0.006)


def test_seasons_weigh_29_66_100(ours: "DuckDBPyConnection", theirs: "DuckDBPyConnection") -> None:
    """Sales per day, medium and high season against low: within 4 % of 66/29 and of 100/29, on both sides."""
    for connection, days in ((ours, DAYS["ours"]), (theirs, DAYS["theirs"])):
        season = "case when month(day) <= 7 then 'low' when month(day) <= 10 then 'medium' else 'high' end"
        found = dict(
            connection.execute(
                f"""select {season} as season, count(*) / count(distinct day)
                    from ({days}) where not {NEW_YEAR} group by season"""
            ).fetchall()
        )
        assert found["medium"] / found["low"] == pytest.approx(66 / 29, rel=0.04)
        assert found["high"] / found["low"] == pytest.approx(100 / 29, rel=0.04)


def test_years(ours: "DuckDBPyConnection", theirs: "DuckDBPyConnection") -> None:
    """Share of each of five years: within 1.2 percentage points."""
    made = shares(ours, "year(day)", f"select * from ({DAYS['ours']}) where not {NEW_YEAR}")
    reference = shares(theirs, "year(day)", f"select * from ({DAYS['theirs']}) where not {NEW_YEAR}")
    assert_shares_agree(made, reference, 0.012)
    assert list(made) == [1998, 1999, 2000, 2001, 2002]


def test_hours(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    """Share of each hour of the day, 8 to 20: within 0.8 percentage points."""
    made, reference = (shares(connection, "ss_sold_time_sk // 3600", "from store_sales") for connection in both)
    assert_shares_agree(made, reference, 0.008)


def test_ticket_sizes(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    """Lines a ticket: 8 to 16, each a ninth (within 0.8 percentage points), mean 12 (within 0.5 %)."""
    sizes = "select count(*) as size from store_sales group by ss_ticket_number"
    made, reference = (shares(connection, "size", sizes) for connection in both)
    assert list(made) == list(range(8, 17))
    assert_shares_agree(made, reference, 0.008)
    means = [row(connection, f"select avg(size) from ({sizes})")[0] for connection in both]
    assert means[0] == pytest.approx(means[1], rel=0.005)


@pytest.mark.parametrize("column", COLUMNS)
def test_null_rate(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]", column: str) -> None:
    """Within 0.2 percentage points of dsdgen's 4.42 to 4.49 %; exactly none in the two key columns."""
    made, reference = (
        row(connection, f"select 1 - count({column}) / count(*) from store_sales")[0] for connection in both
    )
    assert made == pytest.approx(reference, abs=0 if reference == 0 else 0.002)


def test_nulls_come_together(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    """Rows with any null: 9 %, within 0.3 percentage points; and how many of 23 columns are null in them."""
    nulls = f"select {' + '.join(f'({column} is null)::integer' for column in COLUMNS)} as n from store_sales"
    made, reference = (shares(connection, "n", nulls) for connection in both)
    assert made[0] == pytest.approx(reference[0], abs=0.003)
    for count in range(5, 17):
        assert made[count] == pytest.approx(reference[count], abs=0.001)


@pytest.mark.parametrize("column", MEASURES)
def test_measures(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]", column: str) -> None:
    """Mean and standard deviation within 1.5 %; six quantiles within 2.5 %, or 0.10.

    Near zero, where relative differences say little: within one of quantity, and 3.00 of coupons and profit.
    """
    query = f"""select avg({column})::double, stddev({column})::double,
                       quantile_cont({column}::double, {list(QUANTILES)}) from store_sales"""
    (mean, deviation, quantiles), (their_mean, their_deviation, their_quantiles) = (
        row(connection, query) for connection in both
    )
    assert mean == pytest.approx(their_mean, rel=0.015)
    assert deviation == pytest.approx(their_deviation, rel=0.015)
    near_zero = {"ss_quantity": 1.0, "ss_net_profit": 3.0, "ss_coupon_amt": 3.0, "ss_ext_discount_amt": 3.0}
    assert quantiles == pytest.approx(their_quantiles, rel=0.025, abs=near_zero.get(column, 0.1))


def test_measures_are_correlated_alike(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    """Every pair's correlation within 0.01."""
    pairs = [(a, b) for i, a in enumerate(MEASURES) for b in MEASURES[i + 1 :]]
    query = f"select {', '.join(f'corr({a}::double, {b}::double)' for a, b in pairs)} from store_sales"
    made, reference = (row(connection, query) for connection in both)
    for pair, own, their in zip(pairs, made, reference, strict=True):
        assert own == pytest.approx(their, abs=0.01), pair


def test_price_identities_hold_on_both_sides(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    """In every row whose columns are known, to the cent."""
    identities = (
        "ss_ext_sales_price = ss_sales_price * ss_quantity",
        "ss_ext_wholesale_cost = ss_wholesale_cost * ss_quantity",
        "ss_ext_list_price = ss_list_price * ss_quantity",
        "ss_net_paid = ss_ext_sales_price - ss_coupon_amt",
        "ss_net_paid_inc_tax = ss_net_paid + ss_ext_tax",
        "ss_net_profit = ss_net_paid - ss_ext_wholesale_cost",
        "ss_ext_discount_amt = ss_coupon_amt",
    )
    for connection in both:
        for identity in identities:
            wrong, known = row(
                connection,
                f"""select count(*) filter (where not ({identity})), count(*) filter (where ({identity}))
                    from store_sales""",
            )
            assert wrong == 0, identity
            assert known > 200_000


@pytest.mark.parametrize(
    "column", ["ss_customer_sk", "ss_cdemo_sk", "ss_hdemo_sk", "ss_addr_sk", "ss_promo_sk", "ss_item_sk"]
)
def test_foreign_keys(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]", column: str) -> None:
    """How many different keys are used within 1.5 %; the largest and the mean within 1.5 %: uniform over one domain."""
    query = f"select count(distinct {column}), max({column}), avg({column}) from store_sales"
    made, reference = (row(connection, query) for connection in both)
    assert made == pytest.approx(reference, rel=0.015)


def test_item_revisions(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    """Share of sales by the item's place in its group of six revisions: within 0.3 percentage points."""
    made, reference = (shares(connection, "ss_item_sk % 6", "from store_sales") for connection in both)
    assert_shares_agree(made, reference, 0.003)


def test_coupons(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    """Share of lines without a coupon: within 0.4 percentage points."""
    made, reference = (shares(connection, "ss_coupon_amt = 0", "from store_sales") for connection in both)
    assert_shares_agree(made, reference, 0.004)


def test_arrival_order_is_unclustered_by_date(both: "tuple[DuckDBPyConnection, DuckDBPyConnection]") -> None:
    """Every run of 1 % of the rows spans at least 95 % of the date range (dsdgen: 98 to 100 % at scale factor 1)."""
    for connection in both:
        span, whole = row(
            connection,
            """select min(last - first), max(last) - min(first) from (
                 select min(ss_sold_date_sk) as first, max(ss_sold_date_sk) as last
                 from (select ss_sold_date_sk, row_number() over () - 1 as r from store_sales)
                 where r < 288000 group by r // 2880)""",
        )
        assert span >= 0.95 * whole
