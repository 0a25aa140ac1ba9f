"""Intervals of a column's order, between the literals of a test, and the outcome of the test in each.

Sorted literals ``c0 < c1 < ...`` cut the order into ``2n + 1`` intervals: below ``c0``, at ``c0``, between ``c0`` and
``c1``, and so on. The test has one outcome within an interval. For values in a range of intervals, the possible
outcomes are those of the intervals in the range, found by prefix sums: a comparison, an IN list of any length and a
prefix test are the same two lookups.

Intervals that no value of the type can be in (between 4 and 5 of an int) have no outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from icebench.engine.expressions.bound import BoundCompare, BoundIn, BoundLeaf, BoundStartsWith
from icebench.engine.expressions.literals import INTEGER_RANGES
from icebench.engine.expressions.predicate import Operator
from icebench.engine.expressions.vectors import Cuts, cuts_of, key, representation
from icebench.engine.spec.types import DecimalType, PrimitiveType
from icebench.engine.spec.values import Value, unscaled

TRUE, FALSE, NULL = 1, 2, 4

Outcomes = NDArray[np.uint8]
"""A set of outcomes, as bits, per row of a source."""
Positions = NDArray[np.int64] | int

# Of the types that physically end there.
_LIMITS: dict[str, tuple[float, float]] = {
    **{name: limits for name, limits in INTEGER_RANGES.items() if name != "time"},
    "boolean": (0, 1),
    "float": (-math.inf, math.inf),
    "double": (-math.inf, math.inf),
}
# Whether a comparison holds below, at and above its literal.
_HOLDS: dict[Operator, tuple[bool, bool, bool]] = {
    "=": (False, True, False),
    "!=": (True, False, True),
    "<": (True, False, False),
    "<=": (True, True, False),
    ">": (False, False, True),
    ">=": (False, True, True),
}


@dataclass(frozen=True, eq=False)
class LiteralIntervals:
    """The intervals of a test.

    `points` are the literals as values where every cut is one (not for a prefix, whose end need not be a value), with
    `point_outcomes` TRUE or FALSE for each; `open_outcomes` are the outcomes between, below and above the cuts.
    """

    cuts: Cuts
    count: int
    true_before: NDArray[np.int64]
    false_before: NDArray[np.int64]
    nan_outcome: int
    open_outcomes: int
    points: tuple[Value, ...] | None
    point_outcomes: tuple[int, ...]

    def between(self, low: Positions, high: Positions) -> Outcomes:
        """The outcomes of the intervals from `low` to `high`, both included; none where `low` is above `high`."""
        after = high + 1
        true = (self.true_before[after] > self.true_before[low]).astype(np.uint8)
        false = (self.false_before[after] > self.false_before[low]).astype(np.uint8)
        return true * np.uint8(TRUE) | false * np.uint8(FALSE)


def intervals_of(leaf: BoundLeaf) -> LiteralIntervals | None:
    """The intervals of a comparison, an IN list or a prefix test; None for the tests of null and NaN."""
    match leaf:
        case BoundCompare(column, operator, value):
            below, at, above = _HOLDS[operator]
            return _of_values(column.primitive, (value,), [below, at, above])
        case BoundIn(column, values, negated):
            holds = [negated] * (2 * len(values) + 1)
            holds[1::2] = [not negated] * len(values)
            return _of_values(column.primitive, values, holds)
        case BoundStartsWith(column, prefix, negated):
            return _of_prefix(column.primitive, prefix, negated=negated)
    return None


def _of_values(type_: PrimitiveType, values: Sequence[Value], holds: list[bool]) -> LiteralIntervals:
    keys = [key(type_, v) for v in values]
    return _intervals(type_, keys, holds, _empty(type_, values), tuple(values))


def _of_prefix(type_: PrimitiveType, prefix: str | bytes, *, negated: bool) -> LiteralIntervals:
    raw = prefix.encode("utf-8") if isinstance(prefix, str) else prefix
    end = _successor(raw)
    keys, holds = ([raw], [False, True, True]) if end is None else ([raw, end], [False, True, True, False, False])
    return _intervals(type_, keys, [h != negated for h in holds], set(), None)


def _intervals(
    type_: PrimitiveType,
    keys: Sequence[int | float | bytes],
    holds: list[bool],
    empty: set[int],
    points: tuple[Value, ...] | None,
) -> LiteralIntervals:
    outcomes = [0 if i in empty else TRUE if held else FALSE for i, held in enumerate(holds)]
    true, false = (
        np.concatenate(([0], np.cumsum([outcome == wanted for outcome in outcomes]))) for wanted in (TRUE, FALSE)
    )
    open_outcomes = 0
    for outcome in outcomes[0::2]:
        open_outcomes |= outcome
    return LiteralIntervals(
        cuts=cuts_of(type_, keys),
        count=len(keys),
        true_before=true.astype(np.int64),
        false_before=false.astype(np.int64),
        nan_outcome=TRUE if holds[-1] else FALSE,  # NaN is above every number
        open_outcomes=open_outcomes,
        points=points,
        point_outcomes=tuple(outcomes[1::2]),
    )


def _empty(type_: PrimitiveType, values: Sequence[Value]) -> set[int]:
    """The intervals that no value of the type is in, NaN apart: past the least and greatest, and between neighbours."""
    numbers = [unscaled(v, type_.scale) if isinstance(type_, DecimalType) else v for v in values]  # type: ignore[arg-type]
    least, greatest = _LIMITS.get(type_.name, (None, None))
    found = {0} if numbers[0] == least else set()
    if numbers[-1] == greatest:
        found.add(2 * len(numbers))
    if representation(type_) == "whole" or isinstance(type_, DecimalType):
        found |= {2 * i + 2 for i, (a, b) in enumerate(pairwise(numbers)) if int(b) - int(a) == 1}
    return found


def _successor(prefix: bytes) -> bytes | None:
    """The least byte string above all that begin with `prefix`; None if there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
