"""Hypothesis strategies: primitive types and values in the internal representation."""

import math
import uuid
from decimal import Decimal

from hypothesis import strategies as st

from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    PrimitiveType,
)
from icebench.engine.spec.values import Value, decimal_of

PRIMITIVES: tuple[PrimitiveType, ...] = (
    BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS, STRING, UUID,
    BINARY, FixedType(3), FixedType(16), DecimalType(1, 0), DecimalType(7, 2), DecimalType(18, 6), DecimalType(38, 10),
)  # fmt: skip

_INT = st.integers(-(2**31), 2**31 - 1) | st.integers(-20, 20)
_LONG = st.integers(-(2**63), 2**63 - 1) | _INT
_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


def values(type_: PrimitiveType, *, nan: bool = False) -> st.SearchStrategy[Value]:
    """Non-null values of a type; NaN only on request, since it equals nothing."""
    match type_:
        case DecimalType(precision=precision, scale=scale):
            return _unscaled(precision).map(lambda number: decimal_of(number, scale))
        case FixedType(length=length):
            return st.binary(min_size=length, max_size=length)
    plain: dict[str, st.SearchStrategy[Value]] = {
        "boolean": st.booleans(),
        "int": _INT,
        "date": _INT,
        "time": st.integers(0, 86_399_999_999),
        "float": st.floats(width=32, allow_nan=nan),
        "double": st.floats(allow_nan=nan),
        "string": _TEXT,
        "binary": st.binary(max_size=20),
        "uuid": st.builds(lambda raw: uuid.UUID(bytes=raw), st.binary(min_size=16, max_size=16)),
    }
    return plain.get(type_.name, _LONG)


def _unscaled(precision: int) -> st.SearchStrategy[int]:
    limit = 10**precision - 1
    return st.integers(-limit, limit) | st.integers(-min(9, limit), min(9, limit))


def same(left: Value | None, right: Value | None) -> bool:
    """Equality in which NaN equals NaN and zeros differ by sign."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple() == right.as_tuple()
    return left == right and type(left) is type(right)
