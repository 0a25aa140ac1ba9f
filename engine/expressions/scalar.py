"""Expressions over the columns of a row, as trees. `icebench.engine.expressions.parse_scalar` makes them of SQL,
`icebench.engine.columnar.scalar_evaluation` evaluates them."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from icebench.engine.expressions.sql import literal_text, name_text
from icebench.engine.expressions.temporal_literals import TemporalLiteral
from icebench.engine.spec.types import LONG, STRING, PrimitiveType

LiteralValue: TypeAlias = bool | int | float | Decimal | str | bytes | uuid.UUID | TemporalLiteral
"""A literal as a node holds it."""
Argument: TypeAlias = LiteralValue | dt.date | dt.time | dt.datetime
"""A literal as a caller may give it; standard library dates and times become `TemporalLiteral`."""


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """The value of a column; `path` goes down into structs."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LiteralNode:
    """A literal of the text. Numbers with a point are decimals, those with an exponent doubles.

    Equal nodes compute the same: ``1.0`` and ``1e0`` are not equal, nor ``1.0`` and ``1.00``, nor ``0e0`` and ``-0e0``.
    """

    value: LiteralValue | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiteralNode) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[type, str]:
        # Python's own equality ignores what decides the arithmetic: True == 1 == 1.0 == Decimal("1.00").
        return type(self.value), _kept_kind(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator of SQL, by its name here, on its arguments."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CastNode:
    """A value as another type."""

    value: Node
    type: PrimitiveType


@dataclass(frozen=True, slots=True)
class CaseNode:
    """The value of the first condition that is true, else the default."""

    branches: tuple[tuple[Node, Node], ...]
    default: Node


Node: TypeAlias = ColumnValue | LiteralNode | Call | CastNode | CaseNode


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """An expression over the columns of a row; made by `icebench.sql`."""

    text: str
    tree: Node


def columns_of(node: Node) -> Iterator[tuple[str, ...]]:
    """The paths of all columns in a tree."""
    if isinstance(node, ColumnValue):
        yield node.path
    for child in _children(node):
        yield from columns_of(child)


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Call(_, arguments):
            return arguments
        case CastNode(value):
            return (value,)
        case CaseNode(branches, default):
            return (*(each for branch in branches for each in branch), default)
    return ()


def with_columns(node: Node, name_of: Callable[[tuple[str, ...]], str]) -> Node:
    """The tree with other names of columns: each path becomes one full name."""
    match node:
        case ColumnValue(path):
            return ColumnValue((name_of(path),))
        case Call(name, arguments):
            return Call(name, tuple(with_columns(each, name_of) for each in arguments))
        case CastNode(value, type_):
            return CastNode(with_columns(value, name_of), type_)
        case CaseNode(branches, default):
            return CaseNode(
                tuple((with_columns(test, name_of), with_columns(value, name_of)) for test, value in branches),
                with_columns(default, name_of),
            )
    return node


_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "remainder": "%",
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "and": "and",
    "or": "or",
    "concat": "||",
    "same": "is not distinct from",
}
_AFTER = {"is_null": "is null", "is_true": "is true", "is_false": "is false"}
_BEFORE = {"negate": "-", "not": "not "}
_NAMES = {"is_nan": "isnan"}


def text_of(node: Node) -> str:
    """SQL that `icebench.engine.expressions.parse_scalar` reads back as the same tree."""
    match node:
        case ColumnValue(path):
            return name_text(".".join(path))
        case LiteralNode(value):
            return _kept_kind(value)
        case CastNode(value, type_):
            name = {LONG: "bigint", STRING: "varchar"}.get(type_, str(type_))
            return f"cast({text_of(value)} as {name})"
        case CaseNode(branches, default):
            tests = "".join(f" when {text_of(test)} then {text_of(value)}" for test, value in branches)
            return f"case{tests} else {text_of(default)} end"
        case Call("like", (value, LiteralNode(str() as pattern))):
            escape = r" escape '\'" if "\\" in pattern else ""
            return f"{_operand(value)} like {literal_text(pattern)}{escape}"
        case Call(name, (left, right)) if name in _INFIX:
            return f"{_operand(left)} {_INFIX[name]} {_operand(right)}"
        case Call(name, (value,)) if name in _AFTER:
            return f"{_operand(value)} {_AFTER[name]}"
        case Call("negate", (LiteralNode(value),)):
            return f"-({_kept_kind(value)})"  # without brackets it would be a negative literal
        case Call(name, (value,)) if name in _BEFORE:
            return f"{_BEFORE[name]}{_operand(value)}"
        case Call("trim", (value,)):
            return f"trim({_operand(value)})"  # SQL's own syntax takes no test there: `trim(from a)`
        case Call(name, arguments):
            return f"{_NAMES.get(name, name)}({', '.join(map(text_of, arguments))})"
    raise TypeError(f"{node!r} is not an expression")


def _kept_kind(value: LiteralValue | None) -> str:
    """The text of a literal that says by its form what kind of number it is."""
    text = "null" if value is None else literal_text(value)
    match value:
        case float() if math.isfinite(value) and "e" not in text:
            return f"{text}e0"
        case Decimal() if text.lstrip("-").isdecimal():
            return f"{text}."
    return text


def _operand(node: Node) -> str:
    text = text_of(node)
    is_whole = isinstance(node, ColumnValue | CastNode) or (isinstance(node, LiteralNode) and not text.startswith("-"))
    return text if is_whole else f"({text})"
