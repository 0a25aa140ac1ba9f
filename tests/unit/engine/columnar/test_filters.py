import math
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.filters import outcomes, row_mask
from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.schemas import to_arrow_field, to_arrow_schema
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import (
    BoundAnd,
    BoundCompare,
    BoundConstant,
    BoundIn,
    BoundIsNaN,
    BoundIsNull,
    BoundOr,
    BoundPredicate,
    BoundStartsWith,
    Column,
)
from icebench.engine.expressions.parse import parse
from icebench.engine.expressions.predicate import Operator
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import DOUBLE, FLOAT, INT, STRING, FixedType, NestedField, PrimitiveType, StructType
from icebench.engine.spec.values import Value
from icebench.errors import Invalid
from tests.property.evaluate import evaluate, is_nan, ordering
from tests.unit.engine.columnar.value_strategies import PRIMITIVES, values

OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def leaves(draw: st.DrawFn, field_id: int, type_: PrimitiveType, pool: list[Value]) -> BoundPredicate:
    """A leaf whose literals are often values of the rows."""
    column = Column(field_id, f"c{field_id}", type_)
    literals = st.sampled_from(pool) | values(type_, nan=True) if pool else values(type_, nan=True)
    kinds = ["null", "compare", "in"]
    kinds += ["nan"] if type_.name in ("float", "double") else []
    kinds += ["starts"] if type_.name in ("string", "binary", "fixed") else []
    negated = draw(st.booleans())
    match draw(st.sampled_from(kinds)):
        case "null":
            return BoundIsNull(column, negated)
        case "nan":
            return BoundIsNaN(column, negated)
        case "compare":
            return BoundCompare(column, draw(st.sampled_from(OPERATORS)), draw(literals))
        case "in":
            members = draw(st.lists(literals.filter(lambda v: not is_nan(v)), min_size=2, max_size=4))
            ordered = sorted(members, key=cmp_to_key(ordering))
            others = tuple(b for a, b in pairwise(ordered) if ordering(a, b) != 0)
            return BoundIn(column, (ordered[0], *others), negated)
    prefix = draw(literals)
    assert isinstance(prefix, (str, bytes))
    return BoundStartsWith(column, prefix[: draw(st.integers(0, 3))], negated)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schema, list[list[Value | None]], BoundPredicate]:
    types = draw(st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=3))
    rows = draw(st.integers(0, 6))
    columns = [draw(st.lists(st.none() | values(t, nan=True), min_size=rows, max_size=rows)) for t in types]
    fields = tuple(NestedField(field_id=i + 1, name=f"c{i + 1}", type=t) for i, t in enumerate(types))
    pools = [[v for v in column if v is not None] for column in columns]
    leaf = st.integers(0, len(types) - 1).flatmap(lambda i: leaves(i + 1, types[i], pools[i]))
    predicate = st.recursive(
        leaf | st.booleans().map(BoundConstant),
        lambda inner: (
            st.lists(inner, min_size=2, max_size=3).map(lambda c: BoundAnd(tuple(c)))
            | st.lists(inner, min_size=2, max_size=3).map(lambda c: BoundOr(tuple(c)))
        ),
        max_leaves=5,
    )
    return Schema(fields), columns, draw(predicate)


@given(cases())
def test_equals_the_scalar_evaluation_row_by_row(case: tuple[Schema, list[list[Value | None]], BoundPredicate]) -> None:
    schema, columns, bound = case
    arrays = [to_arrow_array(schema.primitive(i + 1), column) for i, column in enumerate(columns)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(schema))
    rows = [{i + 1: column[n] for i, column in enumerate(columns)} for n in range(batch.num_rows)]
    expected = [evaluate(bound, row) for row in rows]
    assert outcomes(batch, bound, schema).to_pylist() == expected
    mask = row_mask(batch, bound, schema)
    assert mask.null_count == 0
    assert mask.to_pylist() == [outcome is True for outcome in expected]


FLOATS = (None, math.nan, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf)
DOUBLES = Column(1, "d", DOUBLE)


@pytest.mark.parametrize(
    "bound",
    [
        *(BoundCompare(DOUBLES, operator, value) for operator in OPERATORS for value in FLOATS if value is not None),
        *(
            BoundIn(DOUBLES, members, negated)
            for members in ((-0.0, 1.5), (-1.5, 0.0), (1.5, math.inf))
            for negated in (False, True)
        ),
        *(test(DOUBLES, negated) for test in (BoundIsNull, BoundIsNaN) for negated in (False, True)),
    ],
    ids=str,
)
def test_floats_that_are_special_are_ordered_as_everywhere(bound: BoundPredicate) -> None:
    schema = Schema((NestedField(field_id=1, name="d", type=DOUBLE),))
    batch = pa.RecordBatch.from_arrays([to_arrow_array(DOUBLE, FLOATS)], schema=to_arrow_schema(schema))
    expected = [evaluate(bound, {1: value}) for value in FLOATS]
    assert outcomes(batch, bound, schema).to_pylist() == expected
    assert row_mask(batch, bound, schema).to_pylist() == [outcome is True for outcome in expected]


T, F, N = True, False, None
INTS: tuple[Value | None, ...] = (1, None, 2, 3, None)
TEXTS: tuple[Value | None, ...] = ("a", None, "ab", "b", None)
NUMBERS: tuple[Value | None, ...] = (1.0, None, math.nan, 0.0, -0.0)


@pytest.mark.parametrize(
    ("type_", "column", "text", "expected"),
    [
        (INT, INTS, "c in (1, 2)", [T, N, T, F, N]),
        (INT, INTS, "c not in (1, 2)", [F, N, F, T, N]),
        (INT, INTS, "not (c in (1, 2))", [F, N, F, T, N]),
        (INT, INTS, "not (c not in (1, 2))", [T, N, T, F, N]),
        (INT, INTS, "c not in (1)", [F, N, T, T, N]),
        (INT, INTS, "c != 1", [F, N, T, T, N]),
        (INT, INTS, "c not between 2 and 3", [T, N, F, F, N]),
        (INT, INTS, "c not in (1, 2) or c is null", [F, T, F, T, T]),
        (INT, INTS, "c is not null", [T, F, T, T, F]),
        (STRING, TEXTS, "c not in ('a', 'b')", [F, N, T, F, N]),
        (STRING, TEXTS, "c not like 'a%'", [F, N, F, T, N]),
        (DOUBLE, NUMBERS, "c not in (0.0, 5.0)", [T, N, T, F, F]),
        (DOUBLE, NUMBERS, "c in (1.0, 0.0)", [T, N, F, T, T]),
    ],
)
def test_null_is_neither_in_a_list_nor_outside_it(
    type_: PrimitiveType, column: tuple[Value | None, ...], text: str, expected: list[bool | None]
) -> None:
    schema = Schema((NestedField(field_id=1, name="c", type=type_),))
    bound = bind(parse(text), schema)
    batch = pa.RecordBatch.from_arrays([to_arrow_array(type_, column)], schema=to_arrow_schema(schema))
    assert outcomes(batch, bound, schema).to_pylist() == expected
    assert row_mask(batch, bound, schema).to_pylist() == [outcome is True for outcome in expected]
    assert [evaluate(bound, {1: value}) for value in column] == expected
    # A slice, in which the first value is null.
    assert outcomes(batch.slice(1), bound, schema).to_pylist() == expected[1:]


NESTED = Schema(
    (
        NestedField(
            field_id=1,
            name="s",
            type=StructType(
                (NestedField(field_id=2, name="a", type=INT), NestedField(field_id=3, name="t", type=STRING))
            ),
        ),
        NestedField(field_id=4, name="b", type=INT),
    )
)


@given(
    literal=st.decimals(-1000, 1000, places=3) | st.floats(-1e30, 1e30, allow_subnormal=False),
    operator=st.sampled_from(OPERATORS),
    type_=st.sampled_from([FLOAT, DOUBLE]),
)
def test_a_literal_cast_to_float_is_what_an_expression_makes_of_it(
    literal: Decimal | float, operator: Operator, type_: PrimitiveType
) -> None:
    schema = Schema((NestedField(field_id=1, name="c", type=type_),))
    narrow = float(np.float32(literal))
    values = to_arrow_array(type_, [float(literal), narrow, 0.0, None])
    batch = pa.RecordBatch.from_arrays([values], schema=to_arrow_schema(schema))
    # From text, as Arrow's own cast of a decimal may be off by a unit in the last place.
    text = f"c {operator} cast('{literal}' as float)"
    found = outcomes(batch, bind(parse(text), schema), schema)
    assert found == outcomes(batch, bind(parse(f"{text} + 0"), schema), schema)
    assert found.to_pylist() == [
        evaluate(BoundCompare(Column(1, "c", type_), operator, narrow), {1: value}) for value in values.to_pylist()
    ]


def test_prefixes_of_fixed_values() -> None:
    type_ = FixedType(3)
    schema = Schema((NestedField(field_id=1, name="c", type=type_),))
    values = to_arrow_array(type_, [b"abc", b"ab\xff", b"xab", None])
    batch = pa.RecordBatch.from_arrays([values], schema=to_arrow_schema(schema))
    for text, expected in (
        ("starts_with(c, X'6162')", [True, True, False, None]),
        ("not starts_with(c, X'616263')", [False, True, True, None]),
        ("starts_with(c, X'61626364')", [False, False, False, None]),
    ):
        assert outcomes(batch, bind(parse(text), schema), schema).to_pylist() == expected
    assert outcomes(batch.slice(1), bind(parse("starts_with(c, X'78')"), schema), schema).to_pylist() == [
        False, True, None,
    ]  # fmt: skip


def test_looks_inside_structs() -> None:
    rows = pa.array([{"a": 1, "t": "x"}, {"a": None, "t": "y"}, None], to_arrow_field(NESTED.fields[0]).type)
    batch = pa.RecordBatch.from_arrays([rows], schema=pa.schema([to_arrow_field(NESTED.fields[0])]))

    def masked(text: str) -> list[bool]:
        return row_mask(batch, bind(parse(text), NESTED), NESTED).to_pylist()

    assert masked("s.a = 1") == [True, False, False]
    assert masked("s.a is null") == [False, True, True]
    assert masked("s is null") == [False, False, True]
    assert masked("s.t >= 'y' or s is null") == [False, True, True]


def test_names_a_column_that_the_batch_lacks() -> None:
    batch = pa.RecordBatch.from_arrays([], schema=pa.schema([]))
    with pytest.raises(Invalid, match="'b'"):
        row_mask(batch, bind(parse("b = 1"), NESTED), NESTED)
