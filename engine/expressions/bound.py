"""Filters bound to a schema: columns by id, literals in the internal representation of `icebench.engine.spec.values`.

A bound filter has no NOT: binding pushes negation to the leaves, which Kleene's tables allow exactly. With nothing but
AND and OR above them, null and false have the same effect, so binding may turn one into the other where a literal
cannot be equal to any value of the column (``int_column < 3e9`` becomes ``int_column is not null``). What a filter is
true for never changes.

The leaves, with `v` the column's value:

===================  ======================================================================================
`BoundCompare`       `v operator value`; null for null
`BoundIn`            `v` is one of at least two values, or (negated) none of them; null for null
`BoundStartsWith`    text (by characters) or binary (by bytes) begins with the prefix, or not; null for null
`BoundIsNull`        never null; `negated` is ``is not null``
`BoundIsNaN`         never null; false for null, so its negation is true for null
`BoundComputed`      an expression over any columns, which is no `BoundLeaf`: only rows decide it
===================  ======================================================================================

Order of values: numbers by size with ``-0.0 = 0.0`` and NaN above all, text by its UTF-8 bytes, binary and uuid by
unsigned bytes, false before true.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from icebench.engine.expressions.predicate import Operator
from icebench.engine.expressions.scalar import Node, text_of
from icebench.engine.expressions.sql import binary_operator, literal_text, name_text
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalKind, TemporalLiteral
from icebench.engine.spec.types import PrimitiveType, Type
from icebench.engine.spec.values import Value

_MOMENTS: dict[str, tuple[TemporalKind, int]] = {
    "date": ("date", NANOS_PER_DAY),
    "time": ("time", 1000),
    "timestamp": ("timestamp", 1000),
    "timestamptz": ("timestamptz", 1000),
    "timestamp_ns": ("timestamp", 1),
    "timestamptz_ns": ("timestamptz", 1),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a bound filter. Any may be null, a required one too: files that were written while it was optional
    stay readable from branches and by cherry-picks."""

    field_id: int
    name: str
    type: Type

    def __str__(self) -> str:
        return name_text(self.name)

    @property
    def primitive(self) -> PrimitiveType:
        """The type of a column with comparable values."""
        assert isinstance(self.type, PrimitiveType)
        return self.type

    @property
    def is_floating(self) -> bool:
        """Whether values may be NaN."""
        return isinstance(self.type, PrimitiveType) and self.type.name in ("float", "double")


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """Base of all bound filters. `str()` is SQL text that `parse` reads back."""

    @property
    def field_ids(self) -> frozenset[int]:
        """Ids of the columns that the filter reads."""
        found: set[int] = set()
        for each in _ends(self):
            if isinstance(each, BoundLeaf):
                found.add(each.column.field_id)
            elif isinstance(each, BoundComputed):
                found.update(column.field_id for column in each.columns)
        return frozenset(found)

    @property
    def leaf_ids(self) -> frozenset[int]:
        """Ids of the columns that statistics may answer for."""
        return frozenset(leaf.column.field_id for leaf in leaves(self))


@dataclass(frozen=True, slots=True)
class BoundConstant(BoundPredicate):
    """True or false for every row."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True, slots=True)
class BoundAnd(BoundPredicate):
    """True where all of two or more children are."""

    children: tuple[BoundPredicate, ...]

    def __str__(self) -> str:
        return binary_operator("and", self.children, (BoundOr,))


@dataclass(frozen=True, slots=True)
class BoundOr(BoundPredicate):
    """True where one of two or more children is."""

    children: tuple[BoundPredicate, ...]

    def __str__(self) -> str:
        return binary_operator("or", self.children, (BoundAnd,))


@dataclass(frozen=True, slots=True)
class BoundLeaf(BoundPredicate):
    """Base of the tests of one column."""

    column: Column


@dataclass(frozen=True, slots=True)
class BoundCompare(BoundLeaf):
    """`column operator value`."""

    operator: Operator
    value: Value

    def __str__(self) -> str:
        return f"{self.column} {self.operator} {value_text(self.column, self.value)}"


@dataclass(frozen=True, slots=True)
class BoundIn(BoundLeaf):
    """`column [not] in (values)`; the values are distinct and in the column's order."""

    values: tuple[Value, ...]
    negated: bool = False

    def __str__(self) -> str:
        values = ", ".join(value_text(self.column, v) for v in self.values)
        return f"{self.column} {'not in' if self.negated else 'in'} ({values})"


@dataclass(frozen=True, slots=True)
class BoundStartsWith(BoundLeaf):
    """`column` begins, or does not begin, with `prefix` (str for a string column, bytes for a binary one)."""

    prefix: str | bytes
    negated: bool = False

    def __str__(self) -> str:
        return f"{'not ' if self.negated else ''}starts_with({self.column}, {literal_text(self.prefix)})"


@dataclass(frozen=True, slots=True)
class BoundIsNull(BoundLeaf):
    """`column is [not] null`."""

    negated: bool = False

    def __str__(self) -> str:
        return f"{self.column} is {'not ' if self.negated else ''}null"


@dataclass(frozen=True, slots=True)
class BoundIsNaN(BoundLeaf):
    """`column is [not] nan`."""

    negated: bool = False

    def __str__(self) -> str:
        return f"{self.column} is {'not ' if self.negated else ''}nan"


@dataclass(frozen=True, slots=True)
class BoundComputed(BoundPredicate):
    """A boolean expression that only rows decide: statistics leave it open. A path in `tree` is a column's full name;
    `columns` are all of them."""

    tree: Node
    columns: tuple[Column, ...]

    def __str__(self) -> str:
        return f"({text_of(self.tree)})"


BOUND_TRUE = BoundConstant(True)
BOUND_FALSE = BoundConstant(False)


def leaves(bound: BoundPredicate) -> list[BoundLeaf]:
    """All tests of one column with literals, left to right."""
    return [each for each in _ends(bound) if isinstance(each, BoundLeaf)]


def tests_of_rows(bound: BoundPredicate) -> list[BoundComputed]:
    """All tests that only rows decide, left to right."""
    return [each for each in _ends(bound) if isinstance(each, BoundComputed)]


def _ends(bound: BoundPredicate) -> list[BoundPredicate]:
    found, stack = [], [bound]
    while stack:
        match stack.pop():
            case BoundAnd(children) | BoundOr(children):
                stack.extend(reversed(children))
            case end:
                found.append(end)
    return found


def conjunction(children: Iterable[BoundPredicate]) -> BoundPredicate:
    """AND, flattened, without constants and repetitions."""
    kept: dict[BoundPredicate, None] = {}
    for child in children:
        if child == BOUND_FALSE:
            return BOUND_FALSE
        if child != BOUND_TRUE:
            kept.update(dict.fromkeys(child.children if isinstance(child, BoundAnd) else (child,)))
    return BOUND_TRUE if not kept else next(iter(kept)) if len(kept) == 1 else BoundAnd(tuple(kept))


def disjunction(children: Iterable[BoundPredicate]) -> BoundPredicate:
    """OR, flattened, without constants and repetitions."""
    kept: dict[BoundPredicate, None] = {}
    for child in children:
        if child == BOUND_TRUE:
            return BOUND_TRUE
        if child != BOUND_FALSE:
            kept.update(dict.fromkeys(child.children if isinstance(child, BoundOr) else (child,)))
    return BOUND_FALSE if not kept else next(iter(kept)) if len(kept) == 1 else BoundOr(tuple(kept))


def value_text(column: Column, value: Value) -> str:
    """The SQL literal of an internal value of the column's type."""
    name = column.primitive.name
    if name in _MOMENTS:
        kind, nanoseconds = _MOMENTS[name]
        return literal_text(TemporalLiteral(kind, int(value) * nanoseconds))
    if name == "float" and isinstance(value, float) and np.isfinite(value):
        return np.format_float_positional(np.float32(value), unique=True, trim="0")
    return literal_text(value)
