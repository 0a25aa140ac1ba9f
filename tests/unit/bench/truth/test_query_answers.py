"""Answers that are wrong in one place are noticed; those that the query allows are not."""

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from icebench.bench.truth.query_answers import RankedRows, Row
from icebench.bench.truth.sql import NoTruth

ROWS: tuple[Row, ...] = (
    ("a", 1, Decimal("10.25"), 0.1),
    ("a", 2, Decimal("10.25"), 0.3),
    ("b", 3, None, None),
    ("", 4, Decimal("0.00"), 1e9),
)


def ordered(*rows: Row, **window: int) -> RankedRows:
    """Rows of which each has a rank of its own."""
    return RankedRows(tuple(enumerate(rows, 1)), **window)


def unordered(*rows: Row, **window: int) -> RankedRows:
    """Rows in any order."""
    return RankedRows(tuple((1, row) for row in rows), **window)


def with_value(place: int, column: int, value: Any) -> list[Row]:
    rows = [list(row) for row in ROWS]
    rows[place][column] = value
    return [tuple(row) for row in rows]


def test_the_right_rows_are_right() -> None:
    assert ordered(*ROWS).fault_of(ROWS) is None
    assert unordered(*ROWS).fault_of(ROWS[::-1]) is None
    assert ordered().fault_of([]) is None


@pytest.mark.parametrize("make", [ordered, unordered])
@pytest.mark.parametrize(
    "rows",
    [
        [ROWS[0], ROWS[0], *ROWS[2:]],
        [ROWS[0], *ROWS[2:], ROWS[2]],
        with_value(3, 0, None),
        with_value(2, 2, ""),
        with_value(2, 3, 0.0),
        with_value(0, 2, Decimal("10.24")),
        with_value(0, 2, Decimal("10.250001")),
        with_value(0, 1, True),
        with_value(0, 0, "a "),
        with_value(3, 3, 1e9 + 2),
        with_value(1, 3, 0.3 + 1e-6),
        with_value(1, 3, float("nan")),
    ],
)
def test_one_wrong_row_is_noticed(make: Any, rows: list[Row]) -> None:
    fault = make(*ROWS).fault_of(rows)
    assert fault is not None
    assert " at rank " in fault


def test_rows_out_of_a_total_order_are_noticed() -> None:
    assert "at rank 1" in str(ordered(*ROWS).fault_of([ROWS[1], ROWS[0], *ROWS[2:]]))


def test_rows_of_one_rank_may_come_in_any_order_but_not_among_others() -> None:
    ranked = RankedRows(((1, ("x", 1)), (1, ("x", 2)), (3, ("y", 1))))
    assert ranked.fault_of([("x", 2), ("x", 1), ("y", 1)]) is None
    assert ranked.fault_of([("x", 2), ("y", 1), ("x", 1)]) is not None


def test_rows_and_columns_that_are_too_many_or_too_few_are_noticed() -> None:
    assert ordered(*ROWS).fault_of(ROWS[:3]) == "3 rows, not 4"
    assert ordered(*ROWS).fault_of([*ROWS, ROWS[0]]) == "5 rows, not 4"
    assert ordered(*ROWS).fault_of([(*row, 1) for row in ROWS]) == "5 columns, not 4"


def test_sums_of_doubles_may_differ_in_their_last_digits() -> None:
    found = with_value(0, 3, 0.1 + 1e-12)
    assert unordered(*ROWS).fault_of(found[::-1]) is None
    # An engine may give a decimal where a sum of doubles is exact.
    assert unordered(*ROWS).fault_of(with_value(3, 3, Decimal(10**9))) is None
    # Rows that are alike but for doubles, in another order by each of these.
    close = unordered((1.0, 7.0), (1.0 + 1e-12, 5.0))
    assert close.fault_of([(1.0, 5.0), (1.0, 7.0)]) is None
    assert close.fault_of([(1.0, 5.0), (1.0, 5.0)]) is not None


def test_small_doubles_are_compared_by_the_greatest_of_their_column() -> None:
    assert ordered((6e-12,)).fault_of([(5e-10,)]) is not None
    assert ordered((6e-12,)).fault_of([(6e-12 + 1e-26,)]) is None
    assert unordered((6e-12,), (0.0,), (float("inf"),)).fault_of([(1e-23,), (6e-12,), (float("inf"),)]) is None
    # Of zeros alone nothing says how great the numbers were that cancelled each other.
    assert ordered((0.0,)).fault_of([(1e-12,)]) is None


def test_a_limit_keeps_any_rows_of_its_last_rank_and_none_twice() -> None:
    tied = RankedRows(((1, ("x",)), (2, ("p",)), (2, ("q",)), (2, ("r",))), limit=3)
    assert len(tied) == 3
    assert tied.fault_of([("x",), ("r",), ("p",)]) is None
    assert tied.fault_of([("x",), ("r",), ("r",)]) is not None
    assert tied.fault_of([("p",), ("q",), ("r",)]) is not None
    assert tied.fault_of([("x",), ("p",), ("q",), ("r",)]) == "4 rows, not 3"


def test_an_offset_begins_within_a_rank() -> None:
    tied = RankedRows(((1, ("x",)), (1, ("y",)), (3, ("z",))), offset=1, limit=2)
    assert tied.fault_of([("x",), ("z",)]) is None
    assert tied.fault_of([("y",), ("z",)]) is None
    assert tied.fault_of([("z",), ("y",)]) is not None
    assert len(RankedRows(((1, ("x",)),), offset=5)) == 0


def test_dates_times_and_zones_are_distinguished() -> None:
    zoned = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    local = zoned.replace(tzinfo=None)
    elsewhere = zoned.astimezone(dt.timezone(dt.timedelta(hours=2)))
    assert ordered((zoned,)).fault_of([(elsewhere,)]) is None
    assert ordered((zoned,)).fault_of([(local,)]) is not None
    assert ordered((local.date(),)).fault_of([(local,)]) is not None
    assert ordered((b"x",)).fault_of([(bytearray(b"x"),)]) is None
    number = "12345678-1234-5678-1234-567812345678"
    assert ordered((UUID(number),)).fault_of([(number,)]) is None


def test_values_without_a_rule_are_no_fault_of_anybody() -> None:
    with pytest.raises(NoTruth, match="no rule for comparing values such as"):
        ordered(([1],)).fault_of([([1],)])
