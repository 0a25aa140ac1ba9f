"""Laws of item, store and customer: keys, revisions, foreign keys, nulls."""

from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.workloads import vocabulary
from bench.workloads.scaling import row_count
from bench.workloads.tpcds import Tpcds

WORKLOAD = Tpcds(1.0, seed=3)


def table_of(name: str) -> pa.Table:
    return pa.Table.from_batches([WORKLOAD.batch(name, 0, WORKLOAD.row_count(name))])


@pytest.fixture(scope="module")
def item() -> pa.Table:
    return table_of("item")


@pytest.fixture(scope="module")
def store() -> pa.Table:
    large = Tpcds(100.0, seed=3)
    return pa.Table.from_batches([large.batch("store", 0, large.row_count("store"))])


@pytest.fixture(scope="module")
def customer() -> pa.Table:
    return table_of("customer")


@pytest.mark.parametrize(("name", "prefix"), [("item", "i"), ("store", "s"), ("customer", "c")])
def test_surrogate_keys_are_1_to_the_row_count(name: str, prefix: str, request: pytest.FixtureRequest) -> None:
    table = request.getfixturevalue(name)
    assert table.column(f"{prefix}_{name}_sk").to_pylist() == list(range(1, table.num_rows + 1))
    table.validate(full=True)


@pytest.mark.parametrize(("name", "prefix"), [("item", "i"), ("store", "s")])
def test_a_business_key_has_one_open_revision(name: str, prefix: str, request: pytest.FixtureRequest) -> None:
    table = request.getfixturevalue(name)
    by_key: dict[str, list[tuple[date | None, date | None]]] = {}
    identifiers, begins, ends = (
        table.column(f"{prefix}_{column}").to_pylist() for column in (f"{name}_id", "rec_start_date", "rec_end_date")
    )
    for identifier, begin, end in zip(identifiers, begins, ends, strict=True):
        by_key.setdefault(identifier, []).append((begin, end))
    assert len(by_key) == table.num_rows // 2
    assert sorted({len(revisions) for revisions in by_key.values()}) == [1, 2, 3]
    for revisions in by_key.values():
        assert revisions[-1][1] is None
        known = [begin for begin, _ in revisions if begin is not None]
        assert known == sorted(known)


@pytest.mark.parametrize(
    ("name", "rate", "tolerance"), [("item", 0.0025, 0.0015), ("store", 0.005, 0.011), ("customer", 0.035, 0.003)]
)
def test_null_rates(name: str, rate: float, tolerance: float, request: pytest.FixtureRequest) -> None:
    table = request.getfixturevalue(name)
    by_design_open = {"i_rec_end_date", "s_rec_end_date", "s_closed_date_sk"}
    for field in table.schema:
        nulls = table.column(field.name).null_count / table.num_rows
        if not field.nullable:
            assert nulls == 0
        elif field.name not in by_design_open:
            assert abs(nulls - rate) <= tolerance, field.name
    assert (
        abs(table.column(f"{name[0]}_rec_end_date").null_count / table.num_rows - 0.5) < 0.02
        if name != "customer"
        else True
    )


def test_foreign_keys_of_customers_stay_in_their_tables(customer: pa.Table) -> None:
    for column, target in (
        ("c_current_cdemo_sk", "customer_demographics"),
        ("c_current_hdemo_sk", "household_demographics"),
        ("c_current_addr_sk", "customer_address"),
    ):
        limits = pc.min_max(customer.column(column)).as_py()
        assert limits["min"] >= 1
        assert limits["max"] <= row_count(target, 1.0)
    shipped = pc.subtract(customer.column("c_first_shipto_date_sk"), customer.column("c_first_sales_date_sk"))
    assert pc.unique(shipped.drop_null()).to_pylist() == [30]


def test_birthdays_are_real_days(customer: pa.Table) -> None:
    known = customer.select(["c_birth_year", "c_birth_month", "c_birth_day"]).drop_null().to_pylist()
    days = [date(row["c_birth_year"], row["c_birth_month"], row["c_birth_day"]) for row in known]
    assert date(1924, 1, 1) <= min(days)
    assert max(days) <= date(1992, 12, 31)


def test_an_items_names_follow_from_its_numbers(item: pa.Table) -> None:
    known = item.select(["i_category_id", "i_category", "i_class_id", "i_class"]).drop_null()
    for row in known.to_pylist():
        assert row["i_category"] == vocabulary.CATEGORIES[row["i_category_id"] - 1]
        assert row["i_class"] == vocabulary.CLASSES[row["i_class_id"] - 1]


def test_first_revisions_have_brands_of_their_category_and_class(item: pa.Table) -> None:
    columns = ["i_item_sk", "i_category_id", "i_class_id", "i_brand_id", "i_wholesale_cost", "i_current_price"]
    first = [row for row in item.select(columns).drop_null().to_pylist() if row["i_item_sk"] % 6 in {1, 2, 4}]
    assert len(first) > 8_000
    for row in first:
        assert row["i_brand_id"] // 1_000_000 == row["i_category_id"]
        assert row["i_brand_id"] // 1_000 % 1_000 == row["i_class_id"]
        assert row["i_wholesale_cost"] <= row["i_current_price"]


def test_texts_vary_and_are_trimmed(item: pa.Table) -> None:
    texts = item.column("i_item_desc").drop_null()
    assert pc.all(pc.equal(texts, pc.utf8_trim_whitespace(texts))).as_py()
    assert pc.count_distinct(texts).as_py() > item.num_rows * 0.6
    assert pc.max(pc.utf8_length(texts)).as_py() <= 300
    assert pc.count_distinct(item.column("i_product_name").drop_null()).as_py() == len(
        item.column("i_product_name").drop_null()
    )


def test_offsets_belong_to_states(store: pa.Table) -> None:
    known = store.select(["s_state", "s_gmt_offset", "s_zip"]).drop_null().to_pylist()
    offsets = dict(zip(vocabulary.STATES, vocabulary.STATE_OFFSETS, strict=True))
    for row in known:
        assert row["s_gmt_offset"] == offsets[row["s_state"]]
        assert len(row["s_zip"]) == 5
