"""SQL expressions against a plain model of SQL: Python's whole numbers, decimals and three-valued logic, row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.scalar_evaluation import evaluate
from icebench.engine.expressions.parse_scalar import sql
from icebench.errors import Invalid

LEAST, MOST = -(1 << 63), (1 << 63) - 1
Row = dict[str, Any]
Kind = Literal["long", "decimal", "text", "boolean"]


class Fails(Exception):
    """The model overflows, or divides by zero."""


@dataclass(frozen=True)
class Term:
    """The text of an expression, and what it comes to for a row."""

    text: str
    value: Callable[[Row], Any]


TYPES = {"long": pa.int64(), "decimal": pa.decimal128(38, 8), "text": pa.string(), "boolean": pa.bool_()}
COLUMNS = {
    "long": [("i", pa.int32()), ("l", pa.int64())],
    "decimal": [("d", pa.decimal128(7, 2)), ("e", pa.decimal128(18, 4))],
    "text": [("s", pa.string())],
    "boolean": [("b", pa.bool_())],
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-5, 5) | st.integers(-(1 << 31), (1 << 31) - 1),
    "l": st.integers(-5, 5) | st.integers(LEAST, MOST),
    "d": st.integers(-9_999_999, 9_999_999).map(lambda n: Decimal(n).scaleb(-2)),
    "e": st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-4)),
    "s": st.text("aB é'", max_size=4),
    "b": st.booleans(),
}


def whole(value: int) -> int:
    if not LEAST <= value <= MOST:
        raise Fails
    return value


def strict(function: Callable[..., Any], *terms: Term) -> Callable[[Row], Any]:
    """A function that is null where an argument is."""

    def value(row: Row) -> Any:
        found = [term.value(row) for term in terms]
        return None if None in found else function(*found)

    return value


def remainder(a: int, b: int) -> int:
    if b == 0:
        raise Fails
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def logical(word: str, a: Term, b: Term) -> Callable[[Row], Any]:
    decisive = word == "or"

    def value(row: Row) -> Any:
        first = a.value(row)
        if first is decisive:
            return decisive
        second = b.value(row)
        if second is decisive:
            return decisive
        return None if first is None or second is None else not decisive

    return value


def case(branches: list[tuple[Term, Term]], default: Term | None) -> Term:
    text = "".join(f" when {c.text} then {v.text}" for c, v in branches)
    ending = "" if default is None else f" else {default.text}"

    def value(row: Row) -> Any:
        for condition, found in branches:
            if condition.value(row) is True:
                return found.value(row)
        return None if default is None else default.value(row)

    return Term(f"case{text}{ending} end", value)


def coalesce(terms: list[Term]) -> Term:
    def value(row: Row) -> Any:
        for term in terms:
            found = term.value(row)
            if found is not None:
                return found
        return None

    return Term(f"coalesce({', '.join(t.text for t in terms)})", value)


def binary(symbol: str, a: Term, b: Term, function: Callable[[Any, Any], Any]) -> Term:
    return Term(f"({a.text} {symbol} {b.text})", strict(function, a, b))


def one_of_kind(kind: Kind, depth: int) -> st.SearchStrategy[Term]:
    leaf = st.sampled_from(COLUMNS[kind]).map(lambda c: Term(c[0], lambda row: row[c[0]])) | LITERALS[kind]
    if depth == 0:
        return leaf
    same, truth = one_of_kind(kind, depth - 1), one_of_kind("boolean", depth - 1)
    branched = st.builds(case, st.lists(st.tuples(truth, same), min_size=1, max_size=2), st.none() | same)
    any_kind = [leaf, branched, st.lists(same, min_size=2, max_size=3).map(coalesce), nullif(same)]
    return st.one_of(*any_kind, *OWN[kind](same, depth))


def nullif(terms: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    def made(a: Term, b: Term) -> Term:
        def value(row: Row) -> Any:
            left, right = a.value(row), b.value(row)
            return None if left is not None and left == right else left

        return Term(f"nullif({a.text}, {b.text})", value)

    return st.builds(made, terms, terms)


def of_long(same: st.SearchStrategy[Term], depth: int) -> list[st.SearchStrategy[Term]]:
    texts = one_of_kind("text", depth - 1)
    return [
        st.builds(lambda a, b: binary("+", a, b, lambda x, y: whole(x + y)), same, same),
        st.builds(lambda a, b: binary("-", a, b, lambda x, y: whole(x - y)), same, same),
        st.builds(lambda a, b: binary("*", a, b, lambda x, y: whole(x * y)), same, same),
        st.builds(lambda a, b: binary("%", a, b, remainder), same, same),
        same.map(lambda a: Term(f"-({a.text})", strict(lambda x: whole(-x), a))),
        same.map(lambda a: Term(f"abs({a.text})", strict(lambda x: whole(abs(x)), a))),
        texts.map(lambda a: Term(f"length({a.text})", strict(len, a))),
    ]


def rounded(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)


def of_decimal(same: st.SearchStrategy[Term], depth: int) -> list[st.SearchStrategy[Term]]:
    longs = st.sampled_from(COLUMNS["long"][:1]).map(lambda c: Term(c[0], lambda row: row[c[0]]))
    return [
        st.builds(lambda a, b: binary("+", a, b, lambda x, y: x + y), same, same | longs),
        st.builds(lambda a, b: binary("-", a, b, lambda x, y: x - y), same | longs, same),
        st.builds(lambda a, b: binary("*", a, b, lambda x, y: x * y), same, same),
        same.map(lambda a: Term(f"-({a.text})", strict(lambda x: -x, a))),
        same.map(lambda a: Term(f"cast({a.text} as decimal(38, 3))", strict(lambda x: rounded(x, 3), a))),
    ]


def of_text(same: st.SearchStrategy[Term], depth: int) -> list[st.SearchStrategy[Term]]:
    longs = one_of_kind("long", depth - 1)
    return [
        st.builds(lambda a, b: binary("||", a, b, lambda x, y: x + y), same, same),
        same.map(lambda a: Term(f"upper({a.text})", strict(str.upper, a))),
        same.map(lambda a: Term(f"lower({a.text})", strict(str.lower, a))),
        same.map(lambda a: Term(f"trim({a.text})", strict(lambda x: x.strip(" "), a))),
        longs.map(lambda a: Term(f"cast({a.text} as string)", strict(str, a))),
    ]


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}


def of_boolean(same: st.SearchStrategy[Term], depth: int) -> list[st.SearchStrategy[Term]]:
    def compared(kind: Kind) -> st.SearchStrategy[Term]:
        terms = one_of_kind(kind, depth - 1)
        symbols = st.sampled_from(sorted(COMPARISONS))
        return st.builds(lambda a, symbol, b: binary(symbol, a, b, COMPARISONS[symbol]), terms, symbols, terms)

    def in_list(a: Term, others: list[Term]) -> Term:
        def value(row: Row) -> Any:
            found = a.value(row)
            tests = [None if found is None or (b := o.value(row)) is None else found == b for o in others]
            return True if True in tests else None if None in tests else False

        return Term(f"({a.text} in ({', '.join(o.text for o in others)}))", value)

    longs = one_of_kind("long", 0)
    return [
        compared("long"),
        compared("decimal"),
        compared("text"),
        same.map(lambda a: Term(f"(not {a.text})", strict(lambda x: not x, a))),
        st.builds(lambda a, b: Term(f"({a.text} and {b.text})", logical("and", a, b)), same, same),
        st.builds(lambda a, b: Term(f"({a.text} or {b.text})", logical("or", a, b)), same, same),
        same.map(lambda a: Term(f"({a.text} is null)", lambda row: a.value(row) is None)),
        same.map(lambda a: Term(f"({a.text} is not true)", lambda row: a.value(row) is not True)),
        st.builds(in_list, longs, st.lists(longs, min_size=1, max_size=3)),
    ]


def literal(text: str, value: Any) -> Term:
    return Term(text, lambda _: value)


NULLS = {"long": "cast(null as bigint)", "decimal": "null", "text": "null", "boolean": "null"}
LITERALS: dict[Kind, st.SearchStrategy[Term]] = {
    "long": st.integers(0, 3).map(lambda n: literal(str(n), n)),
    "decimal": st.integers(0, 999).map(lambda n: literal(f"{n / 100:.2f}", Decimal(n).scaleb(-2))),
    "text": VALUES["s"].map(lambda s: literal("'" + s.replace("'", "''") + "'", s)) | st.just(literal("null", None)),
    "boolean": st.booleans().map(lambda b: literal(str(b).lower(), b)) | st.just(literal("null", None)),
}
OWN: dict[Kind, Callable[[st.SearchStrategy[Term], int], list[st.SearchStrategy[Term]]]] = {
    "long": of_long,
    "decimal": of_decimal,
    "text": of_text,
    "boolean": of_boolean,
}
SCHEMA = pa.schema([column for columns in COLUMNS.values() for column in columns])
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), min_size=1, max_size=5
)
EXPRESSIONS = {kind: one_of_kind(kind, 2) for kind in OWN}


@pytest.mark.parametrize("kind", OWN)
@given(data=st.data())
def test_values_are_those_of_the_model(kind: Kind, data: st.DataObject) -> None:
    term, rows = data.draw(EXPRESSIONS[kind]), data.draw(ROWS)
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    field = pa.field("x", TYPES[kind])
    try:
        with localcontext(prec=100):
            expected = [term.value(row) for row in rows]
            if kind == "decimal":
                expected = [None if v is None else fitting(v) for v in expected]
    except Fails:
        with pytest.raises(Invalid):
            evaluate(sql(term.text), batch, field)
        return
    assert evaluate(sql(term.text), batch, field).to_pylist() == expected


def fitting(value: Decimal) -> Decimal:
    found = rounded(value, 8)
    if abs(found) >= Decimal(10) ** 30:
        raise Fails
    return found


@given(st.integers(-99_999, 99_999), st.integers(-9_999, 9_999), st.integers(0, 4), st.integers(0, 3))
def test_quotients_of_decimals_are_rounded_half_up(a: int, b: int, a_scale: int, b_scale: int) -> None:
    left, right = Decimal(a).scaleb(-a_scale), Decimal(b).scaleb(-b_scale)
    batch = pa.record_batch(
        {"a": pa.array([left], pa.decimal128(5, a_scale)), "b": pa.array([right], pa.decimal128(4, b_scale))}
    )
    field = pa.field("x", pa.decimal128(38, 6))
    if b == 0:
        with pytest.raises(Invalid, match=r"(?i)divide by zero"):
            evaluate(sql("a / b"), batch, field)
        return
    # Like Spark: first to the quotient's own scale, then to the column's.
    with localcontext(prec=100):
        expected = rounded(rounded(left / right, max(6, a_scale + 4 + 1)), 6)
    assert evaluate(sql("a / b"), batch, field).to_pylist() == [expected]


@st.composite
def decimal_columns(draw: st.DrawFn) -> tuple[pa.Array, int]:
    """Decimals of few digits, and to how many after the point they are rounded."""
    precision = draw(st.sampled_from([2, 9, 18, 19, 38]))
    scale = draw(st.integers(1, min(precision, 9)))
    most = 10**precision - 1
    near = st.integers(0, 60).map(lambda n: max(most - n, 0))
    whole = near | near.map(lambda n: -n) | st.integers(-most, most)
    with localcontext(prec=100):
        values = draw(st.lists(st.none() | whole.map(lambda n: Decimal(n).scaleb(-scale)), min_size=1, max_size=4))
    return pa.array(values, pa.decimal128(precision, scale)), draw(st.integers(0, scale))


@given(decimal_columns(), st.sampled_from(["x", "round(x, {})", "cast(x as decimal({}, {}))"]), st.integers(0, 2))
def test_decimals_that_grow_by_rounding(column: tuple[pa.Array, int], text: str, fewer: int) -> None:
    """A value whose digits are all nines grows by a digit: it is right, or refused where the type has no room."""
    values, scale = column
    digits = max(min(values.type.precision - fewer, 38), scale, 1)
    numbers = (scale,) if text.startswith("round") else (digits, scale)
    field = pa.field("y", pa.decimal128(38 if text.startswith("round") else digits, scale))
    with localcontext(prec=100):
        expected = [None if value is None else rounded(value, scale) for value in values.to_pylist()]
        fits = all(v is None or abs(v) < Decimal(10) ** (field.type.precision - scale) for v in expected)
    batch = pa.record_batch({"x": values})
    if fits:
        assert evaluate(sql(text.format(*numbers)), batch, field).to_pylist() == expected
    else:
        with pytest.raises(Invalid):
            evaluate(sql(text.format(*numbers)), batch, field)
