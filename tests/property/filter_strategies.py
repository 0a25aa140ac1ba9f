"""Random schemas, values and filters, and the meaning of an unbound filter written down a second time."""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from icebench.engine.expressions.literals import INTEGER_RANGES
from icebench.engine.expressions.predicate import (
    And,
    Compare,
    Constant,
    In,
    IsNaN,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
)
from icebench.engine.expressions.scalar import LiteralValue
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalKind, TemporalLiteral, parse_temporal
from icebench.engine.spec.schema import Schema
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
    NestedField,
    PrimitiveType,
    StructType,
)
from icebench.engine.spec.values import Value, decimal_of

ORDERED_TYPES: tuple[PrimitiveType, ...] = (
    BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS, STRING, UUID,
    BINARY, FixedType(2), DecimalType(4, 2), DecimalType(18, 3), DecimalType(20, 2), DecimalType(38, 0),
)  # fmt: skip

UNITS = {
    "date": NANOS_PER_DAY,
    "time": 1000,
    "timestamp": 1000,
    "timestamptz": 1000,
    "timestamp_ns": 1,
    "timestamptz_ns": 1,
}
_GREATEST_FLOAT = 2.0**128 - 2.0**104
_NUMERIC_TEXT = st.sampled_from(
    ["0.5", "-0.005", "1e30", "-1e400", "2147483648", "-3", "9223372036854775807.5", "99.99"]
)
_TEXT = st.text(alphabet="ab\u007f\u00e9\ud7ff\uffff\U0001f600", max_size=5)
_BYTES = st.text(alphabet="\x00\x01\x7f\x80\xfe\xff", max_size=4).map(lambda s: s.encode("latin-1"))


def values(type_: PrimitiveType) -> st.SearchStrategy[Value]:
    """Values of a type, mostly of a small range so that they meet, with the extremes."""
    name = type_.name
    if isinstance(type_, DecimalType):
        greatest = 10**type_.precision - 1
        numbers = st.one_of(st.integers(-30, 30), st.sampled_from([-greatest, greatest, greatest // 3]))
        return numbers.map(lambda n: decimal_of(n, type_.scale))
    if isinstance(type_, FixedType):
        return _BYTES.map(lambda b: b[: type_.length].ljust(type_.length, b"\x01"))
    if name in ("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"):
        unit = NANOS_PER_DAY // UNITS[name]
        spread = st.integers(-800, 800).map(lambda n: n * unit)
        near = st.integers(-30, 30)
        return st.one_of(near, spread, spread.map(lambda n: n + unit // 3), st.sampled_from(INTEGER_RANGES[name]))
    if name in INTEGER_RANGES:
        least, greatest = INTEGER_RANGES[name]
        small = st.integers(max(-30, least), 30)
        return st.one_of(small, small, st.sampled_from([least, least + 1, greatest - 1, greatest]))
    if name in ("float", "double"):
        few: st.SearchStrategy[Any] = st.sampled_from(
            [0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, -2.0, _GREATEST_FLOAT, -_GREATEST_FLOAT]
        )
        if name == "float":
            few |= st.floats(-4, 4, width=32) | st.floats(width=32)
            return few
        few |= st.floats(-4, 4) | st.floats()
        return few
    others: dict[str, st.SearchStrategy[Any]] = {
        "boolean": st.booleans(),
        "string": _TEXT,
        "binary": _BYTES,
        "uuid": st.one_of(st.integers(0, 9), st.integers(2**127, 2**127 + 9)).map(lambda n: uuid.UUID(int=n)),
    }
    return others[name]


def literals(type_: PrimitiveType) -> st.SearchStrategy[LiteralValue]:
    """Literals that a column of the type may be compared with, also such as are not values of it."""
    own = values(type_)
    name = type_.name
    if name in UNITS:
        kinds: dict[str, list[TemporalKind]] = {"date": ["date", "timestamp"], "timestamp": ["date", "timestamp"]}
        kind = st.sampled_from(kinds.get(name.removesuffix("_ns"), [name.removesuffix("_ns")]))
        ticks = own.map(lambda v: int(v) * UNITS[name])
        off = st.one_of(
            ticks, ticks.map(lambda n: n + 1), st.sampled_from([-(10**30), 10**30]) if name != "time" else ticks
        )
        moments = st.builds(TemporalLiteral, kind, off).map(_whole_date)
        return st.one_of(moments, moments.map(_text_of)) if name != "time" else moments
    if isinstance(type_, DecimalType) or name in ("int", "long"):
        return st.one_of(own, st.integers(-31, 31), _NUMERIC_TEXT.map(Decimal), st.just(-math.inf), st.just(0.5))
    if name in ("float", "double"):
        number = own.filter(lambda v: v == v)  # noqa: PLR0124 - NaN is no literal
        return st.one_of(number, st.integers(-4, 4), _NUMERIC_TEXT.map(Decimal))
    if name == "fixed":
        return _BYTES
    return own


def _whole_date(moment: TemporalLiteral) -> TemporalLiteral:
    days = moment.nanoseconds // NANOS_PER_DAY
    return TemporalLiteral("date", days * NANOS_PER_DAY) if moment.kind == "date" else moment


def _text_of(moment: TemporalLiteral) -> TemporalLiteral | str:
    text = str(moment)
    return text if len(text.lstrip("+-").split("-")[0]) <= 6 else moment


OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """One to four columns of any ordered type, required or not, one of them perhaps in a struct."""
    types = draw(st.lists(st.sampled_from(ORDERED_TYPES), min_size=1, max_size=4))
    fields = [
        NestedField(field_id=i + 1, name=f"c{i}", type=type_, required=draw(st.booleans()))
        for i, type_ in enumerate(types)
    ]
    if len(fields) > 1 and draw(st.booleans()):
        inner = fields.pop()
        fields.append(NestedField(field_id=100, name="s", type=StructType((inner,)), required=draw(st.booleans())))
    return Schema(tuple(fields))


def columns_of(schema: Schema) -> dict[str, NestedField]:
    """The primitive columns of a schema by full name."""
    return {schema.name_of[f.field_id]: f for f in schema.walk() if isinstance(f.type, PrimitiveType)}


@st.composite
def rows(draw: st.DrawFn, schema: Schema) -> dict[int, Value | None]:
    """A row as internal values by field id; null only where the schema allows it."""
    found: dict[int, Value | None] = {}
    for column in columns_of(schema).values():
        parent = schema.parent_of.get(column.field_id)
        nullable = not column.required or (parent is not None and not schema.by_id[parent].required)
        own = values(column.type)  # type: ignore[arg-type]
        found[column.field_id] = draw(st.one_of(st.none(), own, own, own) if nullable else own)
    return found


def leaves(schema: Schema) -> st.SearchStrategy[Predicate]:
    """Tests of one column."""
    choices: list[st.SearchStrategy[Predicate]] = []
    for name, column in columns_of(schema).items():
        assert isinstance(column.type, PrimitiveType)
        literal = literals(column.type)
        choices += [
            st.builds(Compare, st.just(name), st.sampled_from(OPERATORS), literal),
            st.builds(Compare, st.just(name), st.sampled_from(OPERATORS), literal),
            st.builds(In, st.just(name), st.lists(literal, min_size=1, max_size=4).map(tuple)),
            st.just(IsNull(name)),
        ]
        if column.type.name in ("float", "double"):
            choices.append(st.just(IsNaN(name)))
        if column.type.name in ("string", "binary", "fixed"):
            prefix: st.SearchStrategy[Any] = _TEXT if column.type.name == "string" else _BYTES
            choices.append(st.builds(StartsWith, st.just(name), prefix))
    return st.one_of(choices)


def predicates(schema: Schema) -> st.SearchStrategy[Predicate]:
    """Filters of some depth."""

    def deeper(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(st.builds(And, several), st.builds(Or, several), st.builds(Not, inner))

    return st.recursive(
        st.one_of(leaves(schema), leaves(schema), st.builds(Constant, st.booleans())), deeper, max_leaves=5
    )


def truth(predicate: Predicate, schema: Schema, row: Mapping[int, Value | None]) -> bool | None:
    """A filter's truth by exact arithmetic on the literals themselves."""
    match predicate:
        case Constant(value):
            return value
        case Not(child):
            inner = truth(child, schema, row)
            return None if inner is None else not inner
        case And(children):
            found = [truth(c, schema, row) for c in children]
            return False if False in found else None if None in found else True
        case Or(children):
            found = [truth(c, schema, row) for c in children]
            return True if True in found else None if None in found else False
        case IsNull(name):
            return row[schema.find(name).field_id] is None
        case IsNaN(name):
            number = row[schema.find(name).field_id]
            return isinstance(number, float) and math.isnan(number)
        case Compare(name, operator, literal):
            order = _order(schema, name, row, literal)
            return None if order is None else _HOLDS[operator](order)
        case In(name, literals_):
            orders = [_order(schema, name, row, literal) for literal in literals_]
            return None if None in orders else 0 in orders
        case StartsWith(name, prefix):
            text: Any = row[schema.find(name).field_id]
            return None if text is None else text.startswith(prefix)
    raise TypeError(predicate)


_HOLDS = {
    "=": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def _order(schema: Schema, name: str, row: Mapping[int, Value | None], literal: LiteralValue) -> int | None:
    column = schema.find(name)
    assert isinstance(column.type, PrimitiveType)
    value = row[column.field_id]
    if value is None:
        return None
    if isinstance(value, float) and math.isnan(value):
        return 1
    left, right = _exact(column.type, value), _exact_literal(column.type, literal)
    return int(left > right) - int(left < right)


def _exact(type_: PrimitiveType, value: Value) -> Any:
    if type_.name in UNITS:
        return Fraction(int(value) * UNITS[type_.name])
    match value:
        case str():
            return value.encode()
        case uuid.UUID():
            return value.bytes
        case float() if math.isinf(value):
            return value
        case int() | float() | Decimal():
            return Fraction(value)
        case _:
            return value


def _exact_literal(type_: PrimitiveType, literal: LiteralValue) -> Any:
    if type_.name in UNITS:
        moment = parse_temporal(literal) if isinstance(literal, str) else literal
        assert isinstance(moment, TemporalLiteral)
        return Fraction(moment.nanoseconds)
    if type_.name in ("float", "double"):
        try:
            rounded = struct.unpack("<f", struct.pack("<f", literal))[0] if type_.name == "float" else float(literal)  # type: ignore[arg-type]
        except OverflowError:
            return Fraction(literal)  # type: ignore[arg-type]
        overflowed = math.isinf(rounded) and not (isinstance(literal, float) and math.isinf(literal))
        return Fraction(literal) if overflowed else _exact(type_, rounded)  # type: ignore[arg-type]
    return _exact(type_, literal)  # type: ignore[arg-type]
