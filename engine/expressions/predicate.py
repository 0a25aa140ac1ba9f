"""Filters as written: column names and literals, not yet checked against a schema.

Truth is three-valued, as in SQL. A comparison with null is null; NOT, AND and OR follow Kleene's tables; a filter keeps
the rows for which it is true. Two tests are never null: ``is null`` and ``is nan`` (null is not NaN).

Floating point is ordered as Java, Spark and DuckDB order it: ``-0.0 = 0.0``, and NaN equals itself and is greater than
every number, so ``x > 5`` holds for NaN. NaN is not a literal: ``x is nan`` asks for it.

Make filters with the functions below or with `icebench.engine.expressions.parse.parse`; bind them with
`icebench.engine.expressions.binding.bind`. `str()` of a filter is text that `parse` reads back.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias

from icebench.engine.errors import Invalid
from icebench.engine.expressions.scalar import Argument, LiteralValue, Node, text_of
from icebench.engine.expressions.sql import binary_operator, literal_text, name_text
from icebench.engine.expressions.temporal_literals import TemporalLiteral, to_temporal

Operator = Literal["=", "!=", "<", "<=", ">", ">="]

NEGATED: dict[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""The operator that is true where the key is false."""
MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The operator with its sides exchanged."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """Base of all filters."""

    def __and__(self, other: Predicate) -> Predicate:
        return all_of([self, other])

    def __or__(self, other: Predicate) -> Predicate:
        return any_of([self, other])

    def __invert__(self) -> Predicate:
        return negation(self)

    def __bool__(self) -> bool:
        raise TypeError("a filter has no truth of its own: combine filters with &, | and ~, in brackets")


class ForeignFilter(Protocol):
    """A filter of another kind: a column of `icebench.col`, or an expression of pyarrow or PyIceberg."""

    def __invert__(self) -> Any:  # noqa: ANN401 - its own kind
        ...


Filter: TypeAlias = str | Predicate | ForeignFilter
"""Whatever can be given as a filter."""


@dataclass(frozen=True, slots=True)
class Constant(Predicate):
    """True or false for every row."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True, slots=True)
class And(Predicate):
    """True where all of two or more children are."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return binary_operator("and", self.children, (Or,))


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    """True where one of two or more children is."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return binary_operator("or", self.children, (And,))


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """True where the child is false, null where it is null."""

    child: Predicate

    def __str__(self) -> str:
        match self.child:
            case IsNull(column):
                return f"{name_text(column)} is not null"
            case IsNaN(column):
                return f"{name_text(column)} is not nan"
            case _:
                return f"not ({self.child})"


@dataclass(frozen=True, slots=True)
class Compare(Predicate):
    """`column operator literal`."""

    column: str
    operator: Operator
    literal: LiteralValue

    def __str__(self) -> str:
        return f"{name_text(self.column)} {self.operator} {literal_text(self.literal)}"


@dataclass(frozen=True, slots=True)
class In(Predicate):
    """`column in (literals)`."""

    column: str
    literals: tuple[LiteralValue, ...]

    def __str__(self) -> str:
        return f"{name_text(self.column)} in ({', '.join(literal_text(v) for v in self.literals)})"


@dataclass(frozen=True, slots=True)
class StartsWith(Predicate):
    """The text or bytes of `column` begin with `prefix`."""

    column: str
    prefix: str | bytes

    def __str__(self) -> str:
        return f"starts_with({name_text(self.column)}, {literal_text(self.prefix)})"


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    """`column is null`; never null itself."""

    column: str

    def __str__(self) -> str:
        return f"{name_text(self.column)} is null"


@dataclass(frozen=True, slots=True)
class IsNaN(Predicate):
    """`column is nan`; false for null."""

    column: str

    def __str__(self) -> str:
        return f"{name_text(self.column)} is nan"


@dataclass(frozen=True, slots=True)
class Computed(Predicate):
    """True where a boolean expression over the columns of the row is."""

    tree: Node

    def __str__(self) -> str:
        return f"({text_of(self.tree)})"


TRUE = Constant(True)
FALSE = Constant(False)


def compare(column: str, operator: Operator, value: Argument) -> Predicate:
    """`column operator value`. Raises Invalid for NaN and for null."""
    return Compare(column, operator, literal(value))


def equal(column: str, value: Argument) -> Predicate:
    """`column = value`."""
    return compare(column, "=", value)


def not_equal(column: str, value: Argument) -> Predicate:
    """`column != value`; null for null."""
    return compare(column, "!=", value)


def less(column: str, value: Argument) -> Predicate:
    """`column < value`."""
    return compare(column, "<", value)


def less_equal(column: str, value: Argument) -> Predicate:
    """`column <= value`."""
    return compare(column, "<=", value)


def greater(column: str, value: Argument) -> Predicate:
    """`column > value`."""
    return compare(column, ">", value)


def greater_equal(column: str, value: Argument) -> Predicate:
    """`column >= value`."""
    return compare(column, ">=", value)


def is_in(column: str, values: Iterable[Argument]) -> Predicate:
    """`column in (values)`; without values, false."""
    literals = tuple(dict.fromkeys(literal(v) for v in values))
    return In(column, literals) if literals else FALSE


def starts_with(column: str, prefix: str | bytes) -> Predicate:
    """The text or bytes of `column` begin with `prefix`."""
    return StartsWith(column, prefix)


def is_null(column: str) -> Predicate:
    """`column is null`."""
    return IsNull(column)


def not_null(column: str) -> Predicate:
    """`column is not null`."""
    return Not(IsNull(column))


def is_nan(column: str) -> Predicate:
    """`column is nan`; false for null."""
    return IsNaN(column)


def all_of(predicates: Iterable[Predicate]) -> Predicate:
    """The conjunction; true for none."""
    children: list[Predicate] = []
    for each in predicates:
        if each == FALSE:
            return FALSE
        if each != TRUE:
            children.extend(each.children if isinstance(each, And) else (each,))
    return TRUE if not children else children[0] if len(children) == 1 else And(tuple(children))


def any_of(predicates: Iterable[Predicate]) -> Predicate:
    """The disjunction; false for none."""
    children: list[Predicate] = []
    for each in predicates:
        if each == TRUE:
            return TRUE
        if each != FALSE:
            children.extend(each.children if isinstance(each, Or) else (each,))
    return FALSE if not children else children[0] if len(children) == 1 else Or(tuple(children))


def negation(predicate: Predicate) -> Predicate:
    """`not predicate`."""
    match predicate:
        case Constant(value):
            return Constant(not value)
        case Not(child):
            return child
        case _:
            return Not(predicate)


def literal(value: Argument) -> LiteralValue:
    """A literal as nodes hold it.

    Raises:
        Invalid: NaN, null, or no literal at all.
    """
    if isinstance(value, (dt.date, dt.time)):  # a datetime is a date
        return to_temporal(value)
    if value is None:
        raise Invalid("null is not comparable; use `is null` or `is not null`")
    if isinstance(value, (float, Decimal)) and math.isnan(value):
        raise Invalid("NaN is not a literal; use `is nan` or `is not nan`")
    if not isinstance(value, (bool, int, float, Decimal, str, bytes, uuid.UUID, TemporalLiteral)):
        raise Invalid(f"{value!r} is not a literal")
    if isinstance(value, float) or (isinstance(value, Decimal) and value.is_infinite()):
        return float(value)  # NumPy's are written differently, and infinity is no decimal
    return value
