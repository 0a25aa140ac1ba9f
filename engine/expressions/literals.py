"""Finds the position of a literal among the values of a column's type.

A literal need not be a value of the column's type: 2.5 or three billion among ints, two digits too many for a decimal,
noon for a date, a byte too many for a fixed. `place` finds the greatest value of the type that is not above the literal
and whether it is equal, which allows every comparison to be rewritten exactly.

Floating point types are approximate, so a literal is first rounded to the nearest value of the column's type, as SQL
does; one that would be rounded to infinity stands below it and is not equal to it.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions.predicate import literal
from icebench.engine.expressions.scalar import Argument, LiteralValue
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalLiteral, parse_temporal
from icebench.engine.spec.types import DecimalType, FixedType, PrimitiveType
from icebench.engine.spec.values import Value, as_value, decimal_of, parse_uuid

INTEGER_RANGES: dict[str, tuple[int, int]] = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "date": (-(1 << 31), (1 << 31) - 1),
    "time": (0, 86_400_000_000 - 1),
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), (-(1 << 63), (1 << 63) - 1)),
}
"""Least and greatest value of the types that are stored as whole numbers."""

_KINDS = {
    "date": ("date", "timestamp"),
    "time": ("time",),
    "timestamp": ("date", "timestamp"),
    "timestamp_ns": ("date", "timestamp"),
    "timestamptz": ("timestamptz",),
    "timestamptz_ns": ("timestamptz",),
}
_NANOS_PER_UNIT = {
    "date": NANOS_PER_DAY,
    "time": 1000,
    "timestamp": 1000,
    "timestamptz": 1000,
    "timestamp_ns": 1,
    "timestamptz_ns": 1,
}
_TO_INFINITY = {"float": 2**128 - 2**103, "double": 2**1024 - 2**970}
"""The least number that IEEE 754 rounds to infinity: half a unit above the greatest finite value."""


@dataclass(frozen=True, slots=True)
class Place:
    """The greatest value of a type at or below a literal.

    `floor` is None if the literal is below all values; `exact` if it is one; `last` if no value is above `floor`.
    """

    floor: Value | None
    exact: bool
    last: bool = False


def place(type_: PrimitiveType, literal: LiteralValue, column: str) -> Place:
    """The literal's place among the values of `type_`; `column` is for messages.

    Raises:
        Invalid: The literal is of another kind than the column.
        Unsupported: The type has no order (variant, geometry, geography).
    """
    name = type_.name
    if name in _KINDS:
        return _place_moment(type_, literal, column)
    if name in ("int", "long"):
        least, greatest = INTEGER_RANGES[name]
        return _place_whole(_number(type_, literal, column), least, greatest)
    match name, literal:
        case "boolean", bool():
            return Place(literal, exact=True, last=literal)
        case "string", str():
            return Place(valid_text(literal), exact=True)
        case "uuid", uuid.UUID():
            return Place(literal, exact=True)
        case "uuid", str():
            return Place(uuid_literal(literal), exact=True)
        case "binary", bytes():
            return Place(literal, exact=True)
        case "fixed", bytes():
            assert isinstance(type_, FixedType)
            return _place_fixed(literal, type_.length)
        case "decimal", _:
            return _place_decimal(type_, literal, column)
        case (("float" | "double"), _):
            return _place_float(type_, literal, column)
        case (("variant" | "geometry" | "geography"), _):
            raise Unsupported(f"comparison of column {column!r} of type {type_}")
    raise _mismatch(type_, literal, column)


def exact_value(type_: PrimitiveType, given: Argument) -> Value:
    """The value of `type_` that a literal is, in the internal representation; floats are rounded to the type.

    Raises:
        ValueError: It is none: of another kind, beyond the type, or with digits that the type lacks.
    """
    if type_.name in ("float", "double"):
        return as_value(type_, given)
    try:
        found = place(type_, literal(given), "")
    except Invalid:
        raise ValueError(f"{given!r} is of another kind") from None
    if not found.exact or found.floor is None:
        raise ValueError(f"the type {type_} has no value that equals {given!r}")
    return found.floor


def _mismatch(type_: PrimitiveType, literal: LiteralValue, column: str) -> Invalid:
    kind = literal.kind if isinstance(literal, TemporalLiteral) else type(literal).__name__
    return Invalid(f"column {column!r} is {type_} and cannot be compared with the {kind} literal {str(literal)!r}")


def _number(type_: PrimitiveType, literal: LiteralValue, column: str) -> Fraction | float:
    """A number exactly, except infinities, which stay float. A float means its shortest decimal text."""
    match literal:
        case bool():
            raise _mismatch(type_, literal, column)
        case int():
            return literal
        case float() if math.isinf(literal):
            return literal
        case float():
            return Fraction(Decimal(repr(literal)))
        case Decimal() if literal.is_infinite():
            return float(literal)
        case Decimal():
            return _fraction(literal)
    raise _mismatch(type_, literal, column)


def _fraction(literal: Decimal) -> Fraction:
    """Exactly the literal; an exponent past any type's range is cut, lest a short text become a huge number."""
    limit = 5000
    exponent = literal.adjusted()
    if literal and exponent > limit:
        return Fraction(10**limit if literal > 0 else -(10**limit))
    if literal and exponent < -limit:
        return Fraction(1 if literal > 0 else -1, 10**limit)
    return Fraction(literal)


def _place_whole(number: Fraction | float, least: int, greatest: int) -> Place:
    if number > greatest:
        return Place(greatest, exact=False, last=True)
    if number < least:
        return Place(None, exact=False)
    floor = math.floor(number)
    return Place(floor, exact=floor == number, last=floor == greatest)


def _place_decimal(type_: PrimitiveType, literal: LiteralValue, column: str) -> Place:
    assert isinstance(type_, DecimalType)
    greatest = 10**type_.precision - 1
    found = _place_whole(_number(type_, literal, column) * 10**type_.scale, -greatest, greatest)
    if found.floor is None:
        return found
    assert isinstance(found.floor, int)
    return Place(decimal_of(found.floor, type_.scale), found.exact, found.last)


def _place_float(type_: PrimitiveType, literal: LiteralValue, column: str) -> Place:
    if isinstance(literal, float) and type_.name == "double":
        return Place(literal, exact=True)
    number = _number(type_, literal, column)
    if isinstance(number, float):
        return Place(number, exact=True)
    if abs(number) >= _TO_INFINITY[type_.name]:
        greatest = float(np.finfo(np.float32 if type_.name == "float" else np.float64).max)
        return Place(greatest if number > 0 else -math.inf, exact=False)
    return Place(float(number) if type_.name == "double" else _nearest_float32(Fraction(number)), exact=True)


def _nearest_float32(number: Fraction) -> float:
    """The nearest float32, in one rounding: by way of float64 a tie could be rounded twice."""
    with np.errstate(over="ignore"):
        guess = np.float32(float(number))
        candidates = [guess, np.nextafter(guess, np.float32(-np.inf)), np.nextafter(guess, np.float32(np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    # Ties go to the even mantissa, as IEEE 754 rounds.
    best = min(finite, key=lambda c: (abs(Fraction(float(c)) - number), int(c.view(np.uint32)) & 1))
    return float(best)


def _place_moment(type_: PrimitiveType, literal: LiteralValue, column: str) -> Place:
    moment = parse_temporal(literal) if isinstance(literal, str) else literal
    if not isinstance(moment, TemporalLiteral):
        raise _mismatch(type_, literal, column)
    if moment.kind not in _KINDS[type_.name]:
        hint = {
            "timestamptz": "; give the literal a zone, such as 2024-02-29T12:00:00+00:00",
            "timestamptz_ns": "; give the literal a zone, such as 2024-02-29T12:00:00+00:00",
            "timestamp": "; give a timestamp without a zone",
            "timestamp_ns": "; give a timestamp without a zone",
        }.get(type_.name, "")
        raise Invalid(f"column {column!r} is {type_} and cannot be compared with the {moment.kind} {moment}{hint}")
    least, greatest = INTEGER_RANGES[type_.name]
    return _place_whole(Fraction(moment.nanoseconds, _NANOS_PER_UNIT[type_.name]), least, greatest)


def _place_fixed(literal: bytes, length: int) -> Place:
    if len(literal) >= length:
        floor = literal[:length]
        return Place(floor, exact=len(literal) == length, last=floor == b"\xff" * length)
    # A shorter string is below all its extensions: the value before its zero-padded form is the one at or below it.
    below = int.from_bytes(literal.ljust(length, b"\0"), "big") - 1
    return Place(None if below < 0 else below.to_bytes(length, "big"), exact=False)


def valid_text(text: str) -> str:
    """The text; raises Invalid for one that UTF-8 does not hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Invalid(f"the text literal {text!r} is not Unicode: {error}") from error
    return text


def uuid_literal(text: str) -> uuid.UUID:
    """The uuid of a text in a filter; raises Invalid."""
    try:
        return parse_uuid(text)
    except ValueError as error:
        raise Invalid(str(error)) from error
