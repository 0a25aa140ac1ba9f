"""Bound filters as Spark SQL.

Spark orders values as the engine does: NaN equals itself and is above all numbers, -0.0 equals 0.0, strings by UTF-8
bytes, binary unsigned. Parquet's statistics and dictionaries, by which Spark skips row groups, do so for NaN and zeros
only where neither can matter: for tests that are false for NaN, of numbers other than zero.

Literals that are pushed into Parquet pass through `java.sql.Date` and `java.sql.Timestamp` (unless
``spark.sql.datetime.java8API.enabled``), which do not have all days and moments. So dates and timestamps with a zone
are compared as whole numbers, which are not pushed, with literals that may come back as others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

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
from icebench.engine.spark.types import LAST_DAY, not_pushed, sql_literal
from icebench.engine.spec.calendar import UNITS_PER_DAY, days_of
from icebench.engine.spec.types import DATE, INT, LONG, TIMESTAMPTZ, PrimitiveType
from icebench.engine.spec.values import Value

ColumnOf = Callable[[int], str]
"""Field id -> the text of the Spark column that holds it."""

_AS_NUMBER = {DATE: ("unix_date", INT), TIMESTAMPTZ: ("unix_micros", LONG)}
"""Type -> the function that gives the engine's value, and its type."""

_FIRST_EXACT_DAY = days_of(1900, 1, 1)
"""From here on the calendars of `java.sql` and of ISO 8601 agree in all time zones; before, the former lacks ten days
of 1582, and has other offsets of some zones."""

_SKIPPED_DAYS = frozenset(itertools.starmap(days_of, [(1993, 8, 21), (1994, 12, 31), (1995, 1, 1), (2011, 12, 30)]))
"""Later days that islands in the Pacific skipped, when they moved across the date line: `java.sql.Date` does not have
them in a virtual machine of their time zone."""


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
            text, literals = _comparable(column.primitive, column_of(column.field_id), [value])
            if column.is_floating and not (operator in ("=", "<", "<=") and value):
                text = not_pushed(text)
            return f"({text} {operator} {literals[0]})"
        case BoundIn(column, values, negated):
            text, literals = _comparable(column.primitive, column_of(column.field_id), values)
            if column.is_floating and (negated or not all(values)):
                text = not_pushed(text)
            return f"({text} {'NOT ' if negated else ''}IN ({', '.join(literals)}))"
        case BoundStartsWith(column, prefix, negated):
            literal = sql_literal(column.primitive, prefix)
            return f"({'NOT ' if negated else ''}startswith({column_of(column.field_id)}, {literal}))"
    raise TypeError(f"{bound!r} is not a bound filter")


def _comparable(type_: PrimitiveType, column: str, values: Sequence[Value]) -> tuple[str, list[str]]:
    """SQL of a column and of the values that it is compared with."""
    numbers = [value for value in values if isinstance(value, int)]
    if type_ in _AS_NUMBER and not all(_is_exact_in_java(type_, number) for number in numbers):
        function, kind = _AS_NUMBER[type_]
        return f"{function}({column})", [sql_literal(kind, number) for number in numbers]
    return column, [sql_literal(type_, value) for value in values]


def may_be_moved(type_: PrimitiveType, value: Value) -> bool:
    """Whether a literal that comes from `java.sql` may be the next one that those classes have, instead of what the
    query says."""
    if type_ not in _AS_NUMBER or not isinstance(value, int):
        return False
    days = UNITS_PER_DAY[type_.name]
    return not (_is_exact_in_java(type_, value) and _is_exact_in_java(type_, value - days))


def _is_exact_in_java(type_: PrimitiveType, value: int) -> bool:
    day = value // UNITS_PER_DAY[type_.name]
    return _FIRST_EXACT_DAY <= day <= LAST_DAY and not (type_ == DATE and day in _SKIPPED_DAYS)


def _joined(operator: str, parts: Iterable[str]) -> str:
    return f"({operator.join(parts)})"
