"""Laws of parsing and binding filters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.expressions.parse import parse
from icebench.engine.spec.schema import Schema
from tests.property.evaluate import evaluate
from tests.property.filter_strategies import predicates, rows, schemas, truth


@given(data=st.data())
def test_a_bound_filter_is_true_for_the_same_rows(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    predicate = data.draw(predicates(schema))
    bound = bind(predicate, schema)
    for row in data.draw(st.lists(rows(schema), min_size=1, max_size=8)):
        assert (evaluate(bound, row) is True) == (truth(predicate, schema, row) is True), (str(bound), row)


@given(data=st.data())
def test_text_of_a_filter_is_read_back(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    bound = bind(data.draw(predicates(schema)), schema)
    assert _rebound(str(bound), schema) == bound


@given(data=st.data())
def test_text_of_an_unbound_filter_means_the_same(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    predicate = data.draw(predicates(schema))
    assert _rebound(str(predicate), schema) == bind(predicate, schema)


@given(data=st.data())
def test_negation_is_true_exactly_where_the_filter_is_false(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    predicate = data.draw(predicates(schema))
    negated = bind(~predicate, schema)
    for row in data.draw(st.lists(rows(schema), min_size=1, max_size=8)):
        assert (evaluate(negated, row) is True) == (truth(predicate, schema, row) is False)


def _rebound(text: str, schema: Schema) -> BoundPredicate:
    return bind(parse(text), schema)
