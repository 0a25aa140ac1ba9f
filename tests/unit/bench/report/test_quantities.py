from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.report.quantities import count, digits, factor, interval, listed, quantity, signed_percent, times


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0123, "s", "12.3 ms"),
        (123.456, "ms", "123 ms"),
        (1234, "ms", "1.23 s"),
        (5e-7, "s", "500 ns"),
        (0, "s", "0 s"),
        (2.5e6, "rows/s", "2.5 M rows/s"),
        (999, "rows/s", "999 rows/s"),
        (61, "files", "61 files"),
        (2_880_404, "rows", "2,880,404 rows"),
        (0.1234, "ratio", "12.3%"),
        (0, "ratio", "0%"),
        (1_500_000, "bytes", "1.43 MB"),
        (0, "bytes", "0 B"),
        (-0.002, "s", "-2 ms"),
    ],
)
def test_a_quantity_is_scaled_to_what_people_read(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_an_interval_shares_the_unit_of_its_middle() -> None:
    assert interval(0.95, 1.2, "s", like=0.99) == "[950, 1,200]"
    assert interval(0.95, 1.2, "s", like=1.05) == "[0.95, 1.2]"
    assert quantity(1.2, "s", like=0.99) == "1,200 ms"


@given(st.floats(1e-6, 1e9))
def test_digits_keep_three_significant_figures(value: float) -> None:
    assert float(digits(value).replace(",", "")) == pytest.approx(value, rel=0.005)


def test_words() -> None:
    assert times(1.034) == "1.03x"
    assert times(12.34) == "12.3x"
    assert [times(ratio) for ratio in (0.1, 0.0951, 0.00234)] == ["0.10x", "0.0951x", "0.00234x"]
    assert [factor(end) for end in (12.34, 0.5, 0.0951)] == ["12.34", "0.50", "0.0951"]
    assert signed_percent(0.0312) == "+3.1%"
    assert [count(n, "file") for n in (0, 1, 1200)] == ["0 files", "1 file", "1,200 files"]
    assert count(2, "query", "queries") == "2 queries"
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
