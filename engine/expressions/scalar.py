"""Expressions over the columns of a row, as trees. `engine.expressions.parse_scalar` makes them of SQL,
`engine.columnar.scalar_evaluation` evaluates them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from engine.spec.types import PrimitiveType


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """The value of a column; `path` goes down into structs."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LiteralNode:
    """A value that the text says. Numbers with a point are decimals, those with an exponent doubles."""

    value: bool | int | float | Decimal | str | None


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
    """An expression over the columns of a row; made by `engine.sql`."""

    text: str
    tree: Node
