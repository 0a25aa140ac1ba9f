"""Filters as objects: ``(col("a") > 1) & ~col("s.f").startswith("x")``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from icebench.engine.expressions import predicate
from icebench.engine.expressions.like_patterns import like, like_pattern
from icebench.engine.expressions.predicate import MIRRORED, Computed, Operator, Predicate, all_of, any_of
from icebench.engine.expressions.scalar import Argument, Call, CastNode, ColumnValue, LiteralNode, Node
from icebench.engine.spec.types import PrimitiveType

Operand: TypeAlias = "Expression | Argument"

_CALLS: dict[Operator, str] = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def col(name: str) -> Expression:
    """Refer to a column by its full name, with dots into structs.

    ::

        table.scan((col("a") > 1) & col("s.f").is_null())

    Comparisons and tests return filters, which combine by ``&``, ``|`` and ``~``; the other methods return values,
    which can be compared like columns. All mean the same as in filters given as text; see
    `icebench.engine.expressions.parse`.
    """
    return Expression(ColumnValue(tuple(name.split("."))))


class Expression:
    """A value computed from the columns of a row; see `col`."""

    __slots__ = ("_node",)
    __hash__ = None  # type: ignore[assignment] # `==` makes a filter

    def __init__(self, node: Node) -> None:
        self._node = node

    def __bool__(self) -> bool:
        raise TypeError("a filter has no truth of its own: combine filters with &, | and ~, in brackets")

    def as_predicate(self) -> Predicate:
        """The value, a boolean, as a filter."""
        return compare(self, "=", True) if isinstance(self._node, ColumnValue) else Computed(self._node)

    def __eq__(self, other: Operand) -> Predicate:  # type: ignore[override]
        return compare(self, "=", other)

    def __ne__(self, other: Operand) -> Predicate:  # type: ignore[override]
        return compare(self, "!=", other)

    def __lt__(self, other: Operand) -> Predicate:
        return compare(self, "<", other)

    def __le__(self, other: Operand) -> Predicate:
        return compare(self, "<=", other)

    def __gt__(self, other: Operand) -> Predicate:
        return compare(self, ">", other)

    def __ge__(self, other: Operand) -> Predicate:
        return compare(self, ">=", other)

    def __and__(self, other: Predicate | Expression) -> Predicate:
        return self.as_predicate() & _as_predicate(other)

    def __or__(self, other: Predicate | Expression) -> Predicate:
        return self.as_predicate() | _as_predicate(other)

    def __invert__(self) -> Predicate:
        return ~self.as_predicate()

    def __add__(self, other: Operand) -> Expression:
        return self._call("add", other)

    def __radd__(self, other: Argument) -> Expression:
        return _call("add", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return self._call("subtract", other)

    def __rsub__(self, other: Argument) -> Expression:
        return _call("subtract", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return self._call("multiply", other)

    def __rmul__(self, other: Argument) -> Expression:
        return _call("multiply", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return self._call("divide", other)

    def __rtruediv__(self, other: Argument) -> Expression:
        return _call("divide", other, self)

    def __mod__(self, other: Operand) -> Expression:
        return self._call("remainder", other)

    def __neg__(self) -> Expression:
        return self._call("negate")

    def is_null(self) -> Predicate:
        """Whether the value is null; never null itself."""
        return self._test(predicate.is_null, "is_null")

    def not_null(self) -> Predicate:
        """Whether the value is not null."""
        return ~self.is_null()

    def is_nan(self) -> Predicate:
        """Whether the value is NaN; false for null."""
        return self._test(predicate.is_nan, "is_nan")

    def isin(self, values: Iterable[Operand]) -> Predicate:
        """Whether the value is one of `values`; false if there are none."""
        given = list(values)
        if isinstance(self._node, ColumnValue) and not any(isinstance(each, Expression) for each in given):
            return predicate.is_in(".".join(self._node.path), given)  # type: ignore[arg-type]
        return any_of(compare(self, "=", each) for each in given)

    def between(self, low: Operand, high: Operand) -> Predicate:
        """Whether the value is neither below `low` nor above `high`."""
        return all_of([compare(self, ">=", low), compare(self, "<=", high)])

    def startswith(self, prefix: str | bytes) -> Predicate:
        """Whether the text or bytes begin with `prefix`."""
        if isinstance(self._node, ColumnValue):
            return predicate.starts_with(".".join(self._node.path), prefix)
        return self._call("starts_with", prefix).as_predicate()

    def like(self, pattern: str, escape: str | None = None) -> Predicate:
        """SQL's LIKE: ``%`` stands for any text, ``_`` for a character; `escape` before either makes it literal."""
        return like(self._node, like_pattern(pattern, escape))

    def lower(self) -> Expression:
        """The text in lower case."""
        return self._call("lower")

    def upper(self) -> Expression:
        """The text in upper case."""
        return self._call("upper")

    def length(self) -> Expression:
        """The number of characters of a text."""
        return self._call("length")

    def substr(self, start: int, length: int | None = None) -> Expression:
        """The text from character `start` on, counted from 1, at most `length` characters."""
        return self._call("substr", start, *([] if length is None else [length]))

    def abs(self) -> Expression:
        """The number without its sign."""
        return self._call("abs")

    def year(self) -> Expression:
        """The year of a date or timestamp, in UTC."""
        return self._call("year")

    def month(self) -> Expression:
        """The month of a date or timestamp, 1 to 12, in UTC."""
        return self._call("month")

    def day(self) -> Expression:
        """The day of the month of a date or timestamp, in UTC."""
        return self._call("day")

    def hour(self) -> Expression:
        """The hour of a timestamp, in UTC."""
        return self._call("hour")

    def cast(self, type: PrimitiveType) -> Expression:
        """The value as another type, such as `icebench.LONG`."""
        return Expression(CastNode(self._node, type))

    def coalesce(self, *others: Operand) -> Expression:
        """The first of these values that is not null."""
        return self._call("coalesce", *others)

    def _call(self, name: str, *arguments: Operand) -> Expression:
        return _call(name, self, *arguments)

    def _test(self, of_column: object, name: str) -> Predicate:
        if isinstance(self._node, ColumnValue):
            return of_column(".".join(self._node.path))  # type: ignore[operator]
        return self._call(name).as_predicate()


def compare(left: Expression, operator: Operator, right: Operand) -> Predicate:
    """`left operator right`; statistics can answer it if one side is a column and the other a literal."""
    one, other = left._node, _node(right)  # noqa: SLF001 - this module's own
    if isinstance(one, ColumnValue) and isinstance(other, LiteralNode):
        return predicate.compare(".".join(one.path), operator, right)  # type: ignore[arg-type]
    if isinstance(one, LiteralNode) and isinstance(other, ColumnValue) and one.value is not None:
        return predicate.compare(".".join(other.path), MIRRORED[operator], one.value)
    return Computed(Call(_CALLS[operator], (one, other)))


def _as_predicate(given: Predicate | Expression) -> Predicate:
    return given.as_predicate() if isinstance(given, Expression) else given


def _call(name: str, *arguments: Operand) -> Expression:
    return Expression(Call(name, tuple(map(_node, arguments))))


def _node(operand: Operand) -> Node:
    return operand._node if isinstance(operand, Expression) else LiteralNode(predicate.literal(operand))  # noqa: SLF001
