from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from icebench.engine.expressions.literals import INTEGER_RANGES, Place, place
from icebench.engine.expressions.scalar import LiteralValue
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalLiteral
from icebench.engine.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    DecimalType,
    FixedType,
    PrimitiveType,
)
from icebench.errors import Invalid


@given(st.fractions(-10, 10, max_denominator=1 << 40))
def test_floats_are_rounded_once_to_the_nearest(number: Fraction) -> None:
    literal = Decimal(number.numerator) / Decimal(number.denominator)
    found = place(FLOAT, literal, "c")
    assert found.exact
    assert isinstance(found.floor, float)
    own = abs(Fraction(found.floor) - Fraction(literal))
    for neighbour in (np.nextafter(np.float32(found.floor), np.float32(d)) for d in (-np.inf, np.inf)):
        assert own <= abs(Fraction(float(neighbour)) - Fraction(literal))


def test_a_tie_is_not_rounded_twice() -> None:
    # A little above the middle of 1 and the next float32, by less than a float64 holds: rounding through it gives 1.
    literal = Decimal("1.000000059604644775390625000001")
    assert np.float32(float(literal)) == 1.0
    assert place(FLOAT, literal, "c") == Place(1.0 + 2.0**-23, exact=True)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (math.inf, Place(math.inf, exact=True)),
        (10**400, Place(float(np.finfo(np.float64).max), exact=False)),
        (-(10**400), Place(-math.inf, exact=False)),
        (Decimal("1e-5000"), Place(0.0, exact=True)),
    ],
)
def test_doubles_at_their_ends(literal: float | Decimal, expected: Place) -> None:
    assert place(DOUBLE, literal, "c") == expected


@pytest.mark.parametrize(("type_", "digits", "exponent"), [(FLOAT, 24, 128), (DOUBLE, 53, 1024)], ids=str)
def test_numbers_are_rounded_to_the_greatest_up_to_half_a_unit_above_it(
    type_: PrimitiveType, digits: int, exponent: int
) -> None:
    infinite = 2**exponent - 2 ** (exponent - digits - 1)
    greatest = float(2**exponent - 2 ** (exponent - digits))
    for sign in (1, -1):
        literals: tuple[LiteralValue, ...] = (
            greatest * sign,
            (int(greatest) + 1) * sign,
            Decimal((infinite - 1) * sign),
        )
        for literal in literals:
            assert place(type_, literal, "c") == Place(greatest * sign, exact=True)
    assert place(type_, infinite, "c") == Place(greatest, exact=False)
    assert place(type_, -infinite, "c") == Place(-math.inf, exact=False)


@given(st.integers(0, 3), st.binary(max_size=4), st.binary(min_size=3, max_size=3))
def test_fixed_literals_of_any_length(length: int, literal: bytes, raw: bytes) -> None:
    assume(length > 0)
    value = raw[:length]
    at = place(FixedType(length), literal, "c")
    assert at.exact == (len(literal) == length)
    # A value is at or below the literal exactly if it is at or below the floor.
    assert (value <= literal) == (at.floor is not None and value <= at.floor)  # type: ignore[operator]
    assert at.last == (at.floor == b"\xff" * length)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (Decimal("1.000000059604644775390625"), 1.0),
        (Decimal("1.000000178813934326171875"), 1.0 + 2.0**-22),
        (Decimal("-1.000000059604644775390625"), -1.0),
        (16777217, 16777216.0),
        (16777219, 16777220.0),
    ],
)
def test_ties_of_floats_go_to_the_even_mantissa(literal: int | Decimal, expected: float) -> None:
    assert place(FLOAT, literal, "c") == Place(expected, exact=True)


def test_a_float_literal_means_its_digits() -> None:
    assert place(DecimalType(4, 2), 0.1, "c") == Place(Decimal("0.10"), exact=True)
    assert place(DecimalType(4, 2), 0.115, "c") == Place(Decimal("0.11"), exact=False)
    assert place(FLOAT, 16777217.0, "c") == Place(16777216.0, exact=True)


@pytest.mark.parametrize("type_", [INT, LONG, DATE])
def test_nothing_is_at_or_below_what_is_below_all(type_: PrimitiveType) -> None:
    least, greatest = INTEGER_RANGES[type_.name]
    literals = (least - 1, least, greatest, greatest + 1)
    if type_ == DATE:
        found = [place(type_, TemporalLiteral("date", days * NANOS_PER_DAY), "c") for days in literals]
    else:
        found = [place(type_, number, "c") for number in literals]
    assert found == [
        Place(None, exact=False),
        Place(least, exact=True),
        Place(greatest, exact=True, last=True),
        Place(greatest, exact=False, last=True),
    ]


@pytest.mark.parametrize("type_", [TIMESTAMP, TIMESTAMP_NS])
def test_a_literal_with_a_zone_is_no_local_time(type_: PrimitiveType) -> None:
    with pytest.raises(Invalid, match="give a timestamp without a zone"):
        place(type_, "2024-02-29T12:00:00+00:00", "c")
    assert place(type_, "2024-02-29T12:00:00", "c").exact


@pytest.mark.parametrize("type_", [TIMESTAMPTZ, TIMESTAMPTZ_NS])
def test_a_literal_without_a_zone_is_no_instant(type_: PrimitiveType) -> None:
    with pytest.raises(Invalid, match="give the literal a zone"):
        place(type_, "2024-02-29T12:00:00", "c")
    assert place(type_, "2024-02-29T12:00:00+00:00", "c").exact


def test_huge_exponents_cost_nothing() -> None:
    assert place(INT, Decimal("1e999999999"), "c") == Place(2**31 - 1, exact=False, last=True)
    assert place(INT, Decimal("-1e-999999999"), "c") == Place(-1, exact=False)


def test_booleans_in_order() -> None:
    assert place(BOOLEAN, True, "c") == Place(True, exact=True, last=True)
    assert place(BOOLEAN, False, "c") == Place(False, exact=True)


def test_text_must_be_unicode() -> None:
    with pytest.raises(Invalid, match="not Unicode"):
        place(STRING, "\ud800", "c")
