"""Bound filters as Spark columns.

Spark orders values as the engine does: NaN equal to itself and above all numbers, -0.0 equal to 0.0, text by UTF-8
bytes, binary unsigned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from engine.expressions.bound import (
    BoundAnd,
    BoundCompare,
    BoundConstant,
    BoundIn,
    BoundIsNaN,
    BoundIsNull,
    BoundOr,
    BoundPredicate,
    BoundStartsWith,
)
from engine.spark.types import literal

ColumnOf = Callable[[int], Column]
"""Field id -> the Spark column that holds it."""


def spark_filter(bound: BoundPredicate, column_of: ColumnOf) -> Column:
    """A Spark column that is true, false or null exactly where the filter is."""
    match bound:
        case BoundConstant(value):
            return F.lit(value)
        case BoundAnd(children):
            return reduce(Column.__and__, (spark_filter(child, column_of) for child in children))
        case BoundOr(children):
            return reduce(Column.__or__, (spark_filter(child, column_of) for child in children))
        case BoundIsNull(column, negated):
            own = column_of(column.field_id)
            return own.isNotNull() if negated else own.isNull()
        case BoundIsNaN(column, negated):
            nan = F.isnan(column_of(column.field_id))
            return ~nan if negated else nan
        case BoundCompare():
            return _compare(bound, column_of)
        case BoundIn(column, values, negated):
            found = column_of(column.field_id).isin(*[literal(column.primitive, v) for v in values])
            return ~found if negated else found
        case BoundStartsWith(column, prefix, negated):
            found = F.startswith(column_of(column.field_id), literal(column.primitive, prefix))
            return ~found if negated else found
    raise TypeError(f"{bound!r} is not a bound filter")


def _compare(bound: BoundCompare, column_of: ColumnOf) -> Column:
    own, value = column_of(bound.column.field_id), literal(bound.column.primitive, bound.value)
    match bound.operator:
        case "=":
            return own == value
        case "!=":
            return own != value
        case "<":
            return own < value
        case "<=":
            return own <= value
        case ">":
            return own > value
        case ">=":
            return own >= value
