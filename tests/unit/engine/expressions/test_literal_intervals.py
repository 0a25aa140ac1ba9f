from __future__ import annotations

import numpy as np
import pytest

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import BoundLeaf
from icebench.engine.expressions.literal_intervals import FALSE, TRUE, LiteralIntervals, intervals_of
from icebench.engine.expressions.parse import parse
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import BINARY, BOOLEAN, DOUBLE, INT, STRING, DecimalType, NestedField, PrimitiveType


def prepared(type_: PrimitiveType, text: str) -> LiteralIntervals:
    leaf = bind(parse(text), Schema((NestedField(field_id=1, name="c", type=type_),)))
    assert isinstance(leaf, BoundLeaf)
    found = intervals_of(leaf)
    assert found is not None
    return found


def outcomes(intervals: LiteralIntervals) -> str:
    """Each interval's outcome: t, f, or - where no value can be."""
    places = np.arange(2 * intervals.count + 1)
    return "".join("-tf"[o] for o in intervals.between(places, places).tolist())


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (INT, "c < 5", "tff"),
        (INT, "c >= 5", "ftt"),
        (INT, "c != 5", "tft"),
        (INT, "c in (1, 2, 5)", "ft-tftf"),
        (INT, "c not in (1, 2, 5)", "tf-ftft"),
        (INT, "c > 2147483647", "ff-"),
        (INT, "c < -2147483648", "-ff"),
        (BOOLEAN, "c", "ft-"),
        (BOOLEAN, "c in (true, false)", "-t-t-"),
        (DecimalType(4, 2), "c in (0.01, 0.02)", "ft-tf"),
        (DecimalType(38, 2), "c in (0.01, 0.02)", "ft-tf"),
        (DOUBLE, "c in (1, 2)", "ftftf"),
        (DOUBLE, "c < cast('Infinity' as double)", "tf-"),
        (STRING, "starts_with(c, 'ab')", "fttff"),
        (STRING, "not starts_with(c, 'ab')", "tfftt"),
        (BINARY, "starts_with(c, X'ffff')", "ftt"),
        (BINARY, "starts_with(c, X'01ff')", "fttff"),
    ],
)
def test_outcomes_of_segments(type_: PrimitiveType, text: str, expected: str) -> None:
    assert outcomes(prepared(type_, text)) == expected


def test_ranges_join_their_segments() -> None:
    found = prepared(INT, "c in (1, 5)")
    assert found.between(np.array([0, 1, 1, 2, 3]), np.array([0, 1, 3, 2, 4])).tolist() == [
        FALSE,
        TRUE,
        TRUE | FALSE,
        FALSE,
        TRUE | FALSE,
    ]
    assert found.between(3, 2).tolist() == 0


def test_nan_is_above_all_numbers() -> None:
    assert prepared(DOUBLE, "c > 5").nan_outcome == TRUE
    assert prepared(DOUBLE, "c != 5").nan_outcome == TRUE
    assert prepared(DOUBLE, "c <= 5").nan_outcome == FALSE
    assert prepared(DOUBLE, "c in (1, 2)").nan_outcome == FALSE
    assert prepared(DOUBLE, "c < cast('Infinity' as double)").nan_outcome == FALSE
