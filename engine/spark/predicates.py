"""Bound filters as Spark SQL.

Spark orders values as the engine does: NaN equals itself and is above all numbers, -0.0 equals 0.0, strings by UTF-8
bytes, binary unsigned. Parquet's statistics and dictionaries, by which Spark skips row groups, do so for NaN and zeros
only where neither can matter: for tests that are false for NaN, of numbers other than zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
from engine.spark.types import not_pushed, sql_literal

ColumnOf = Callable[[int], str]
"""Field id -> the text of the Spark column that holds it."""


def spark_filter(bound: BoundPredicate, column_of: ColumnOf) -> str:
    """SQL of a condition that is true, false or null exactly where the filter is."""
    match bound:
        case BoundConstant(value):
            return "true" if value else "false"
        case BoundAnd(children):
            return _joined(" AND ", (spark_filter(child, column_of) for child in children))
        case BoundOr(children):
            return _joined(" OR ", (spark_filter(child, column_of) for child in children))
        case BoundIsNull(column, negated):
            return f"({column_of(column.field_id)} IS {'NOT ' if negated else ''}NULL)"
        case BoundIsNaN(column, negated):
            return f"({'NOT ' if negated else ''}isnan({column_of(column.field_id)}))"
        case BoundCompare(column, operator, value):
            text = column_of(column.field_id)
            if column.is_floating and not (operator in ("=", "<", "<=") and value):
                text = not_pushed(text)
            return f"({text} {operator} {sql_literal(column.primitive, value)})"
        case BoundIn(column, values, negated):
            text = column_of(column.field_id)
            if column.is_floating and (negated or not all(values)):
                text = not_pushed(text)
            literals = ", ".join(sql_literal(column.primitive, v) for v in values)
            return f"({text} {'NOT ' if negated else ''}IN ({literals}))"
        case BoundStartsWith(column, prefix, negated):
            literal = sql_literal(column.primitive, prefix)
            return f"({'NOT ' if negated else ''}startswith({column_of(column.field_id)}, {literal}))"
    raise TypeError(f"{bound!r} is not a bound filter")


def _joined(operator: str, parts: Iterable[str]) -> str:
    return f"({operator.join(parts)})"
