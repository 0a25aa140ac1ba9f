"""Evaluates a bound filter on one row, value by value: the reference that every vectorized form is tested against."""

from __future__ import annotations

import math
from collections.abc import Mapping

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
)
from icebench.engine.expressions.predicate import Operator
from icebench.engine.spec.values import Value


def evaluate(bound: BoundPredicate, row: Mapping[int, Value | None]) -> bool | None:
    """Evaluate a filter on a row: True, False, or None for SQL's null.

    `row` holds internal values by field id; an absent id is null. A struct column's presence may be any value.
    """
    match bound:
        case BoundConstant(value):
            return value
        case BoundAnd(children):
            found = [evaluate(child, row) for child in children]
            return False if False in found else None if None in found else True
        case BoundOr(children):
            found = [evaluate(child, row) for child in children]
            return True if True in found else None if None in found else False
        case BoundIsNull(column, negated):
            return (row.get(column.field_id) is None) != negated
        case BoundIsNaN(column, negated):
            return is_nan(row.get(column.field_id)) != negated
        case BoundCompare(column, operator, literal):
            found_value = row.get(column.field_id)
            return None if found_value is None else _holds(operator, ordering(found_value, literal))
        case BoundIn(column, values, negated):
            found_value = row.get(column.field_id)
            return None if found_value is None else any(ordering(found_value, v) == 0 for v in values) != negated
        case BoundStartsWith(column, prefix, negated):
            found_value = row.get(column.field_id)
            return None if found_value is None else found_value.startswith(prefix) != negated  # type: ignore[union-attr, arg-type]
    raise TypeError(f"{bound!r} is not a bound filter")


def is_nan(value: Value | None) -> bool:
    """Whether a value is NaN; null is not."""
    return isinstance(value, float) and math.isnan(value)


def ordering(left: Value, right: Value) -> int:
    """Compare two values of one type: -1, 0 or 1. NaN is equal to itself and above all numbers.

    Python orders text by code points, as its UTF-8 bytes are ordered, uuids and bytes unsigned, and -0.0 equals 0.0.
    """
    if is_nan(left) or is_nan(right):
        return is_nan(left) - is_nan(right)
    return (left > right) - (left < right)  # type: ignore[operator]


def _holds(operator: Operator, order: int) -> bool:
    match operator:
        case "=":
            return order == 0
        case "!=":
            return order != 0
        case "<":
            return order < 0
        case "<=":
            return order <= 0
        case ">":
            return order > 0
        case ">=":
            return order >= 0
