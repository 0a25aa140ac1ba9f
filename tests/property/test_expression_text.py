"""The text of an expression is read back as the same expression."""

from __future__ import annotations

import math
from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st

from icebench.engine.expressions.like_patterns import like_pattern
from icebench.engine.expressions.parse import parse
from icebench.engine.expressions.parse_scalar import sql
from icebench.engine.expressions.predicate import Computed, Predicate, all_of, any_of, literal, negation
from icebench.engine.expressions.scalar import Call, CaseNode, CastNode, ColumnValue, LiteralNode, Node, text_of
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
    TIMESTAMPTZ,
    DecimalType,
)

FAR = 10**26
NAMES = st.sampled_from(["a", "B", "date", "case", "odd name", 'quo"te', "é", "x"])
TEXTS = st.text("ab'\"\\%_\n é", max_size=4)
DECIMALS = st.builds(
    lambda digits, scale: Decimal(digits).scaleb(-scale), st.integers(-(10**20), 10**20), st.integers(-3, 20)
)
MOMENTS = st.one_of(
    st.builds(TemporalLiteral, st.sampled_from(["timestamp", "timestamptz"]), st.integers(-FAR, FAR)),
    st.builds(TemporalLiteral, st.just("time"), st.integers(0, NANOS_PER_DAY - 1)),
    st.integers(-(10**6), 10**6).map(lambda days: TemporalLiteral("date", days * NANOS_PER_DAY)),
)
FLOATS = st.floats(allow_nan=False) | st.sampled_from([1.0, -0.0, 0.1, 1e16, 1e22, 5e-324])
LITERALS = st.one_of(
    st.none(), st.booleans(), st.integers(), FLOATS, DECIMALS, TEXTS, st.binary(max_size=4), st.uuids(), MOMENTS
).map(lambda value: LiteralNode(None if value is None else literal(value)))
COLUMNS = st.lists(NAMES, min_size=1, max_size=5).map(lambda path: ColumnValue(tuple(path)))
TYPES = st.sampled_from(
    [BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMPTZ, DecimalType(9, 2), DecimalType(38, 0)]
)
UNARY = st.sampled_from(
    ["negate", "not", "upper", "lower", "length", "abs", "is_nan", "year", "month", "day", "hour", "trim", "is_null",
     "is_true", "is_false"]
)  # fmt: skip
BINARY = st.sampled_from(
    ["add", "subtract", "multiply", "divide", "remainder", "equal", "not_equal", "less", "less_equal", "greater",
     "greater_equal", "and", "or", "concat", "nullif", "same", "starts_with"]
)  # fmt: skip


def inner_nodes(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    whole = st.integers(0, 9).map(LiteralNode)
    return st.one_of(
        st.builds(lambda name, one: Call(name, (one,)), UNARY, nodes),
        st.builds(lambda name, one, other: Call(name, (one, other)), BINARY, nodes, nodes),
        st.builds(lambda several: Call("coalesce", tuple(several)), st.lists(nodes, min_size=1, max_size=3)),
        st.builds(lambda several: Call("concat", tuple(several)), st.lists(nodes, min_size=3, max_size=4)),
        st.builds(
            lambda one, text: Call("like", (one, LiteralNode(str(like_pattern(text, "!"))))),
            nodes,
            TEXTS,
        ),
        st.builds(lambda one, digits: Call("round", (one, digits)), nodes, whole),
        st.builds(
            lambda one, start, length: Call("substr", (one, LiteralNode(start), *length)),
            nodes,
            st.integers(1, 9),
            st.lists(whole, max_size=1),
        ),
        st.builds(CastNode, nodes, TYPES),
        st.builds(
            CaseNode,
            st.lists(st.tuples(nodes, nodes), min_size=1, max_size=2).map(tuple),
            nodes,
        ),
    )


NODES = st.recursive(LITERALS | COLUMNS, inner_nodes, max_leaves=8)
ID = ColumnValue(("id",))


@given(tree=NODES)
@example(tree=Call("negate", (LiteralNode(1 << 63),)))
@example(tree=Call("negate", (LiteralNode(-1),)))
@example(tree=Call("trim", (Call("like", (ID, LiteralNode(""))),)))
@example(tree=Call("multiply", (ID, LiteralNode(-math.inf))))
@example(tree=Call("add", (ID, LiteralNode(Decimal("1E+3")))))
def test_the_text_of_an_expression_is_read_back(tree: Node) -> None:
    assert sql(text_of(tree)).tree == tree


# A filter's AND, OR and NOT are not part of its tests, and a test of one column with a literal is none that computes.
TESTS = st.builds(
    lambda name, one, other: Computed(Call(name, (Call("add", (one, ID)), other))),
    st.sampled_from(["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same"]),
    NODES,
    NODES,
)


def inner_filters(filters: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(filters, min_size=2, max_size=3)
    return st.builds(all_of, several) | st.builds(any_of, several) | st.builds(negation, filters)


@given(filter=st.recursive(TESTS, inner_filters, max_leaves=4))
def test_the_text_of_a_filter_that_computes_is_read_back(filter: Predicate) -> None:
    assert parse(str(filter)) == filter
