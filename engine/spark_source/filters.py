"""Filters that Spark pushes into a Python data source, as filters of the engine.

A converted filter has the same result for every row, null and NaN included, so Spark need not evaluate it again.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import datasource as sd

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import BoundCompare, BoundIn, BoundLeaf, leaves
from icebench.engine.expressions.predicate import (
    TRUE,
    Operator,
    Predicate,
    all_of,
    compare,
    is_in,
    is_null,
    not_null,
    starts_with,
)
from icebench.engine.spark.predicates import may_be_moved
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import UUID

_OPERATORS: dict[type[sd.Filter], Operator] = {
    sd.EqualTo: "=",
    sd.GreaterThan: ">",
    sd.GreaterThanOrEqual: ">=",
    sd.LessThan: "<",
    sd.LessThanOrEqual: "<=",
}


def pushed(filters: Sequence[sd.Filter], schema: Schema) -> tuple[Predicate, list[sd.Filter]]:
    """The conjunction of the filters that can be converted, and the filters that Spark must evaluate.

    Filters on the end or the middle of a string are not converted, nor are filters on uuid columns, which are strings
    in Spark, and on dates and moments whose literal may have changed on its way here (`may_be_moved`).
    """
    taken: list[Predicate] = []
    left: list[sd.Filter] = []
    for each in filters:
        found = _predicate(each, schema)
        if found is None:
            left.append(each)
        else:
            taken.append(found)
    return (all_of(taken) if taken else TRUE), left


def _predicate(pushed_filter: sd.Filter, schema: Schema) -> Predicate | None:
    """The filter as an unbound predicate; None where it cannot be converted."""
    try:
        found = _translated(pushed_filter, schema)
        if found is None or any(map(_may_be_moved, leaves(bind(found, schema)))):
            return None
    except (Invalid, Unsupported):
        return None  # Spark tests it instead
    return found


def _may_be_moved(leaf: BoundLeaf) -> bool:
    match leaf:
        case BoundCompare(column, _, value):
            return may_be_moved(column.primitive, value)
        case BoundIn(column, values, _):
            return any(may_be_moved(column.primitive, value) for value in values)
    return False


def _translated(pushed_filter: sd.Filter, schema: Schema) -> Predicate | None:
    match pushed_filter:
        case sd.Not(child):
            found = _translated(child, schema)
            return None if found is None else ~found
        case sd.IsNull(path) | sd.IsNotNull(path):
            name = ".".join(path)
            if name not in schema.id_of:
                return None
            return is_null(name) if isinstance(pushed_filter, sd.IsNull) else not_null(name)
        case sd.EqualNullSafe(path, value):
            if not _is_comparable(path, schema):
                return None
            name = ".".join(path)
            # Never null, so that its negation holds for null.
            return is_null(name) if value is None else compare(name, "=", value) & not_null(name)
        case sd.In(path, values):
            return is_in(".".join(path), values) if _is_comparable(path, schema) else None
        case sd.StringStartsWith(path, prefix):
            return starts_with(".".join(path), prefix) if _is_comparable(path, schema) else None
        case sd.EqualTo(path, value):
            return _comparison(pushed_filter, path, value, schema)
        case sd.GreaterThan(path, value) | sd.GreaterThanOrEqual(path, value):
            return _comparison(pushed_filter, path, value, schema)
        case sd.LessThan(path, value) | sd.LessThanOrEqual(path, value):
            return _comparison(pushed_filter, path, value, schema)
    return None


def _comparison(pushed_filter: sd.Filter, path: sd.ColumnPath, value: object, schema: Schema) -> Predicate | None:
    if not _is_comparable(path, schema):
        return None
    return compare(".".join(path), _OPERATORS[type(pushed_filter)], value)  # type: ignore[arg-type] # bind checks it


def _is_comparable(path: sd.ColumnPath, schema: Schema) -> bool:
    field_id = schema.id_of.get(".".join(path))
    return field_id is not None and schema.by_id[field_id].type != UUID
