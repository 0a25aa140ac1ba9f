from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from icebench.engine.expressions.predicate import (
    FALSE,
    MIRRORED,
    NEGATED,
    TRUE,
    And,
    Compare,
    In,
    IsNull,
    Not,
    Or,
    all_of,
    any_of,
    equal,
    greater,
    greater_equal,
    is_in,
    is_nan,
    is_null,
    less,
    less_equal,
    not_equal,
    not_null,
    starts_with,
)
from icebench.engine.expressions.temporal_literals import TemporalLiteral
from icebench.errors import Invalid


def test_combining_flattens_and_folds() -> None:
    a, b, c = equal("a", 1), less("b", 2), is_null("c")
    assert a & b & c == And((a, b, c))
    assert a | b | c == Or((a, b, c))
    assert all_of([]) == TRUE
    assert any_of([]) == FALSE
    assert a & TRUE == a
    assert a & FALSE == FALSE
    assert a | TRUE == TRUE
    assert a | FALSE == a
    assert ~~a == a
    assert ~TRUE == FALSE
    assert not_null("c") == Not(IsNull("c"))


def test_lists_hold_each_value_once() -> None:
    assert is_in("a", [1, 2, 1]) == In("a", (1, 2))
    assert is_in("a", []) == FALSE


@pytest.mark.parametrize("value", [math.nan, Decimal("NaN"), None, object(), [1]])
def test_what_is_no_literal_is_refused(value: Any) -> None:
    with pytest.raises(Invalid):
        equal("a", value)


def test_dates_become_moments() -> None:
    assert greater("d", dt.date(1970, 1, 1)) == Compare("d", ">", TemporalLiteral("date", 0))


def test_operators_are_involutions() -> None:
    for table in (NEGATED, MIRRORED):
        assert all(table[table[operator]] == operator for operator in table)


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (equal("a", 1), "a = 1"),
        (not_equal("a.b", "it's"), "a.b != 'it''s'"),
        (less_equal("odd name", Decimal("1.50")), '"odd name" <= 1.50'),
        (greater_equal("order", math.inf), "\"order\" >= cast('Infinity' as double)"),
        (less("d", dt.date(2024, 2, 29)), "d < date '2024-02-29'"),
        (less("d", dt.datetime(2024, 2, 29, tzinfo=dt.UTC)), "d < timestamp '2024-02-29T00:00:00+00:00'"),
        (is_in("x", [b"\x00", b"\xff"]), "\"x\" in (X'00', X'ff')"),
        (equal("f", True), "f = true"),
        (starts_with("a", "x"), "starts_with(a, 'x')"),
        (not_null("a"), "a is not null"),
        (~is_nan("a"), "a is not nan"),
        (~equal("a", 1), "not (a = 1)"),
        ((equal("a", 1) | equal("b", 2)) & equal("c", 3), "(a = 1 or b = 2) and c = 3"),
        (TRUE, "true"),
    ],
)
def test_text(predicate: object, text: str) -> None:
    assert str(predicate) == text
