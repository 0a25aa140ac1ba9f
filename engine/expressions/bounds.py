"""Evaluates a filter on statistics, for many sets of rows at once.

A source has one row per thing that has statistics: a manifest, a data file, a Parquet row group. `Evaluator.outcomes`
returns for each the set of outcomes that any of its table rows may have, as bits `TRUE`, `FALSE` and `NULL`:

* no `TRUE`: nothing in there matches, skip it (what Iceberg Java calls inclusive evaluation);
* nothing but `TRUE`: everything in there matches, the filter need not be applied (strict evaluation);
* no bit at all: there are no rows.

One evaluator serves both because it computes sets rather than a yes or a no: a leaf looks up the intervals of the
column's order that the bounds touch, AND and OR combine sets by Kleene's tables, and the result contains the outcome of
every row.

Sources give evidence per column. There may be several pieces (the partition value through its transform, the file's
metrics); each is true, so a leaf's outcomes are in their intersection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from icebench.engine.expressions.bound import (
    BOUND_FALSE,
    BOUND_TRUE,
    BoundAnd,
    BoundComputed,
    BoundConstant,
    BoundIsNaN,
    BoundIsNull,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    conjunction,
    disjunction,
    leaves,
)
from icebench.engine.expressions.literal_intervals import FALSE, NULL, TRUE, LiteralIntervals, Outcomes, intervals_of
from icebench.engine.expressions.vectors import Vector

Flags = NDArray[np.bool_] | bool
"""A boolean per row of a source, or one for all rows."""


@dataclass(frozen=True)
class PreparedLeaf:
    """A leaf, prepared once per filter."""

    leaf: BoundLeaf
    intervals: LiteralIntervals | None


class Evidence(Protocol):
    """What is known of one column, for each row of a source."""

    def outcomes(self, test: PreparedLeaf) -> Outcomes:
        """The outcomes that the test may take, per row of the source."""


class Statistics(Protocol):
    """A source of statistics with `count` rows."""

    @property
    def count(self) -> int:
        """How many rows the source has."""

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        """All that is known of a column; empty if nothing is."""


@dataclass(frozen=True)
class Presence:
    """Which kinds of values a column may have: True unless it is certain that there is none of the kind.

    A value is neither null nor NaN.
    """

    null: Flags = True
    nan: Flags = True
    value: Flags = True

    def outcomes(self, count: int, test: PreparedLeaf, of_values: Callable[[LiteralIntervals], Outcomes]) -> Outcomes:
        """The test's outcomes over `count` rows, where `of_values` gives those of its values."""
        nan = self.nan if test.leaf.column.is_floating else False
        match test.leaf:
            case BoundIsNull(_, negated):
                found = _two_valued(self.null, np.logical_or(nan, self.value), negated=negated)
            case BoundIsNaN(_, negated):
                found = _two_valued(nan, np.logical_or(self.null, self.value), negated=negated)
            case _:
                assert test.intervals is not None
                found = _bits(self.null, NULL) | _bits(nan, test.intervals.nan_outcome)
                if self.value is not False:
                    found = found | of_values(test.intervals) * np.asarray(self.value, dtype=np.uint8)
        return np.broadcast_to(found, (count,))


def _bits(flags: Flags, outcome: int) -> Outcomes:
    return np.asarray(flags, dtype=np.uint8) * np.uint8(outcome)


def _two_valued(holds: Flags, fails: Flags, *, negated: bool) -> Outcomes:
    return _bits(holds, FALSE if negated else TRUE) | _bits(fails, TRUE if negated else FALSE)


@dataclass(frozen=True)
class ColumnBounds:
    """Bounds and presence of a column's values.

    Every value that is neither null nor NaN is at or above `lower` and at or below `upper`; None, or an invalid row,
    means not known. Bounds need not be values of the column: a truncated upper bound is above all of them.
    """

    count: int
    lower: Vector | None = None
    upper: Vector | None = None
    presence: Presence = Presence()

    def outcomes(self, test: PreparedLeaf) -> Outcomes:
        return self.presence.outcomes(self.count, test, self._of_values)

    def _of_values(self, intervals: LiteralIntervals) -> Outcomes:
        last = 2 * intervals.count
        low = 0 if self.lower is None else _known(self.lower, self.lower.intervals(intervals.cuts), 0)
        high = last if self.upper is None else _known(self.upper, self.upper.intervals(intervals.cuts), last)
        return intervals.between(low, high)


def _known(vector: Vector, intervals: NDArray[np.int64], otherwise: int) -> NDArray[np.int64]:
    return intervals if vector.valid is None else np.where(vector.valid, intervals, otherwise)


class Evaluator:
    """A bound filter, prepared to be evaluated against any number of sources. Immutable and thread-safe."""

    def __init__(self, bound: BoundPredicate) -> None:
        self.bound = bound
        self.leaves = tuple(PreparedLeaf(leaf, intervals_of(leaf)) for leaf in leaves(bound))

    def outcomes(self, source: Statistics) -> Outcomes:
        """The set of outcomes of the filter, per row of the source."""
        return self.combine(self.leaf_outcomes(source), source.count)

    def leaf_outcomes(self, source: Statistics) -> list[Outcomes]:
        """The set of outcomes of each leaf, in the order of `leaves`, per row of the source."""
        found = []
        evidence: dict[int, Sequence[Evidence]] = {}  # of each column once: decoding a footer's takes longest
        for test in self.leaves:
            field_id = test.leaf.column.field_id
            if field_id not in evidence:
                evidence[field_id] = source.evidence(field_id) or (ColumnBounds(source.count),)
            known = evidence[field_id]
            found.append(reduce(np.bitwise_and, [each.outcomes(test) for each in known]))
        return found

    def combine(self, leaf_outcomes: Sequence[Outcomes], count: int) -> Outcomes:
        """The filter's outcomes from those of its leaves, over `count` rows."""
        return _combine(self.bound, iter(leaf_outcomes), count)

    def residuals(
        self, leaf_outcomes: Sequence[Outcomes], count: int
    ) -> tuple[NDArray[np.int64], list[BoundPredicate]]:
        """The residual filter of each row: an index into the list of distinct residuals.

        A leaf that must be true there is dropped, one that cannot be true becomes false; of many parts of which most
        are left all are kept. `BOUND_TRUE` means that nothing is left to apply, `BOUND_FALSE` that no row matches.
        """
        states = [(outcomes & TRUE) + (outcomes == TRUE) for outcomes in leaf_outcomes]
        codes, rows = _numbered(states, count)
        whole = _stated(self.bound, iter([own[rows] for own in states]), len(rows))
        (reduced,) = (whole.states == _OPEN).nonzero()
        left = iter(_left(whole, reduced))
        found = [_DECIDED[s] if s in _DECIDED else next(left) for s in whole.states.tolist()]
        distinct = {id(each): each for each in found}
        if len(distinct) < len(found):
            place = {key: number for number, key in enumerate(distinct)}
            codes = np.array([place[id(each)] for each in found])[codes]
        return codes, list(distinct.values())


def _combine(bound: BoundPredicate, sets: Iterator[Outcomes], count: int) -> Outcomes:
    match bound:
        case BoundConstant(value):
            return np.full(count, TRUE if value else FALSE, dtype=np.uint8)
        case BoundAnd(children):
            return reduce(_and, [_combine(child, sets, count) for child in children])
        case BoundOr(children):
            return reduce(_or, [_combine(child, sets, count) for child in children])
        case BoundComputed():
            return np.full(count, TRUE | FALSE | NULL, dtype=np.uint8)
        case _:
            return next(sets)


def _and(a: Outcomes, b: Outcomes) -> Outcomes:
    """Kleene's AND of every pair: true of two, false of any, null of null with null or true (bit 4 is bit 1 << 2)."""
    null = (a & (b | b << 2)) | (b & (a << 2))
    return ((a & b & TRUE) | ((a | b) & FALSE) | (null & NULL)).astype(np.uint8, copy=False)


def _or(a: Outcomes, b: Outcomes) -> Outcomes:
    """Kleene's OR of every pair: true of any, false of two, null of null with null or false (bit 4 is bit 2 << 1)."""
    null = (a & (b | b << 1)) | (b & (a << 1))
    return (((a | b) & TRUE) | (a & b & FALSE) | (null & NULL)).astype(np.uint8, copy=False)


_States = NDArray[np.uint8]
"""Whether a filter is false or null for all rows, true for some, or true for all. In this order of the numbers, the
state of an AND is the least of its children's states, and that of an OR the greatest."""
_NEVER, _OPEN, _ALWAYS = 0, 1, 2
_DECIDED = {_NEVER: BOUND_FALSE, _ALWAYS: BOUND_TRUE}
_MANY = 100
"""Children of a part that may stay whole, although some are decided."""


def _numbered(states: Sequence[_States], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number `count` rows by their states of all leaves, and find a row of each number."""
    codes, numbers = np.zeros(count, dtype=np.int64), min(count, 1)
    for own in states:
        codes = codes * 3 + own
        (present,) = np.bincount(codes, minlength=3 * numbers).nonzero()
        place = np.zeros(3 * numbers, dtype=np.int64)
        numbers = len(present)
        place[present] = np.arange(numbers)
        codes = place[codes]
    rows = np.zeros(numbers, dtype=np.int64)
    rows[codes] = np.arange(count)
    return codes, rows


@dataclass(eq=False, slots=True)
class _Stated:
    """A part of a filter with its state in each pattern of the leaves' states."""

    bound: BoundPredicate
    states: _States
    children: tuple[_Stated, ...] = ()


def _stated(bound: BoundPredicate, states: Iterator[_States], patterns: int) -> _Stated:
    match bound:
        case BoundConstant(value):
            return _Stated(bound, np.full(patterns, _ALWAYS if value else _NEVER, dtype=np.uint8))
        case BoundAnd(parts) | BoundOr(parts):
            children = tuple([_stated(part, states, patterns) for part in parts])
            combine = np.minimum if isinstance(bound, BoundAnd) else np.maximum
            return _Stated(bound, combine.reduce([child.states for child in children]), children)
        case BoundLeaf():
            return _Stated(bound, next(states))
        case _:
            return _Stated(bound, np.full(patterns, _OPEN, dtype=np.uint8))


def _left(part: _Stated, patterns: NDArray[np.int64]) -> list[BoundPredicate]:
    """What is left of a part in each of these patterns, in all of which it is open.

    Parts that are decided are not entered, so that this takes as long as what is left is long: of a filter of thousands
    of keys, a few are left in each of many files.
    """
    if not part.children:
        return [part.bound] * len(patterns)
    left: dict[int, list[BoundPredicate]] = {pattern: [] for pattern in patterns.tolist()}
    reduced = patterns
    if len(part.children) > _MANY:
        whole = _stays_whole(part, patterns)
        left |= {pattern: [part.bound] for pattern in patterns[whole].tolist()}
        reduced = patterns[~whole]
    for child in part.children:
        entered = reduced[child.states[reduced] == _OPEN]
        for pattern, each in zip(entered.tolist(), _left(child, entered), strict=True):
            left[pattern].append(each)
    unite = conjunction if isinstance(part.bound, BoundAnd) else disjunction
    distinct = {tuple(map(id, parts)): parts for parts in left.values()}
    united = {key: unite(parts) for key, parts in distinct.items()}
    return [united[tuple(map(id, parts))] for parts in left.values()]


def _stays_whole(part: _Stated, patterns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether more than half of the children are open, per pattern. Files that are not clustered each decide a few
    other ones of many keys: a filter of its own for each takes longer to make, and to prepare when the file is read,
    than rows take to pass the decided ones."""
    states = np.array([child.states for child in part.children])[:, patterns]
    return 2 * np.count_nonzero(states == _OPEN, axis=0) > len(part.children)
