import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.workloads.scaling import LARGEST_SCALE, row_count
from icebench.bench.workloads.schemas import TABLES

SCALES = (1, 10, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)


@pytest.mark.parametrize(
    ("table", "scale", "rows"),
    [
        ("store_sales", 1, 2_880_404),
        ("store_sales", 10, 28_800_991),
        ("store_sales", 100, 287_997_024),
        ("store_sales", 1_000, 2_879_987_999),
        ("store_sales", 100_000, 287_997_818_084),
        ("item", 1, 18_000),
        ("item", 100, 204_000),
        ("store", 100, 402),
        ("customer", 10, 500_000),
        ("household_demographics", 1_000, 7_200),
        ("customer_demographics", 100, 1_920_800),
        ("customer_demographics", 0.1, 192_080),
        ("store_sales", 0.1, 288_040),
        ("item", 0.1, 1_800),
        ("customer", 0.1, 10_000),
        ("promotion", 0.1, 30),
    ],
)
def test_counts_of_the_specification(table: str, scale: float, rows: int) -> None:
    assert row_count(table, scale) == rows


@given(
    table=st.sampled_from([*TABLES, "promotion", "customer_address", "customer_demographics"]),
    scales=st.tuples(st.floats(1e-6, LARGEST_SCALE), st.floats(1e-6, LARGEST_SCALE)),
)
def test_larger_scales_never_have_fewer_rows(table: str, scales: tuple[float, float]) -> None:
    assert row_count(table, min(scales)) <= row_count(table, max(scales))


@given(place=st.sampled_from(range(len(SCALES) - 1)), share=st.floats(0, 1))
def test_between_named_scales_rows_grow_linearly(place: int, share: float) -> None:
    low, high = SCALES[place], SCALES[place + 1]
    few, many = row_count("store_sales", low), row_count("store_sales", high)
    assert abs(row_count("store_sales", low + (high - low) * share) - (few + (many - few) * share)) <= 1 + 1e-9 * many


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 100_001])
def test_scales_out_of_range_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale factor"):
        row_count("store_sales", scale)


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="no such table: 'web_pages'"):
        row_count("web_pages", 1)
