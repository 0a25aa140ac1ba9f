"""Is a case slower? Decided by pairs of processes, one of each revision, on the same files.

1. *Screening.* After 6, 8, 12, 18, 26 and 36 pairs a case is *clear* when the upper bound of its ratio is below 1.10,
   and drops out; from 8 on it is *suspected* when the lower bound is above 1 and the estimate above 1.05. What is left
   after 36 is inconclusive: too much noise to say either. Few cases come that far, so that their pairs are short.
2. *Confirmation.* Suspects alone run up to 30 pairs more, and are looked at after 14, 20 and 30. Of these alone a case
   is clear as before; otherwise it *regressed* when the lower bound is above 1 and the estimate above 1.05. The level
   of that bound, 0.1 %, is shared by all suspects and looks, with one more at the end of the budget.

Both ask first whether the case is clear: one that is known to be less than 10 % slower passes, however well it is known
that it is slower.

Confirmation sees nothing of what made a case suspected, so it alone bounds false alarms: at most 0.1 % of decisions
have any, however many cases there are and however often screening looked, and screening makes it fewer. Bounds are of
the signed-rank test, the estimate is Hodges and Lehmann's: a few pairs that something disturbed do not move them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

from icebench.bench.statistics.claims import Floats, hodges_lehmann

LOOKS = (6, 8, 12, 18, 26, 36)
SUSPECTING = 8
CONFIRMING = (14, 20, 30)
SCREENING_LEVEL = 0.05
CLEARING_LEVEL = 0.035
CONFIRMING_LEVEL = 0.001
LEAST_EFFECT = math.log(1.05)
LARGEST_OVERLOOKED = math.log(1.10)


class Stand(StrEnum):
    """What is known of a case, or of all."""

    PASS = "pass"  # noqa: S105 - a verdict
    SUSPECTED = "suspected"
    UNDECIDED = "undecided"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"
    INCOMPARABLE = "incomparable"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """How many times the base the head takes: estimate, and one-sided bounds at the level of screening; None where the
    pairs are too few to bound anything."""

    estimate: float
    low: float | None
    high: float | None
    pairs: int


def screen(logs: Sequence[float], *, last: bool = False) -> Stand:
    """What ln(head / base) of the first pairs of a case say; asked at the numbers of pairs in `LOOKS`, and where there
    is no time for more, which is the `last` look."""
    values = np.asarray(logs, np.float64)
    if upper_bound(values, CLEARING_LEVEL) < LARGEST_OVERLOOKED:
        return Stand.PASS
    if len(values) >= SUSPECTING and _is_slower(values, SCREENING_LEVEL):
        return Stand.SUSPECTED
    return Stand.INCONCLUSIVE if last or len(values) >= LOOKS[-1] else Stand.UNDECIDED


def confirm(logs: Sequence[float], suspects: int, *, last: bool = False) -> Stand:
    """What fresh pairs of a suspected case say; asked at the numbers of pairs in `CONFIRMING`, and where there is no
    time for more, which is the `last` look.

    Args:
        logs: ln(head / base) of each pair.
        suspects: How many cases are suspected.
        last: Whether there will be no more.
    """
    values = np.asarray(logs, np.float64)
    if upper_bound(values, CLEARING_LEVEL) < LARGEST_OVERLOOKED:
        return Stand.PASS
    if _is_slower(values, CONFIRMING_LEVEL / suspects / (len(CONFIRMING) + 1)):
        return Stand.REGRESSED
    return Stand.INCONCLUSIVE if last or len(values) >= CONFIRMING[-1] else Stand.UNDECIDED


WORST_FIRST = (Stand.REGRESSED, Stand.FAILED, Stand.INCOMPARABLE, Stand.INCONCLUSIVE, Stand.PASS)
"""The verdicts that can be final."""


def overall(cases: Mapping[str, Stand]) -> Stand:
    """The verdict on all cases: the worst of theirs."""
    return next((stand for stand in WORST_FIRST if stand in cases.values()), Stand.INCOMPARABLE)


def ratio_of(logs: Sequence[float]) -> Ratio:
    """The ratio that at least one pair shows."""
    values = np.asarray(logs, np.float64)
    bounds = lower_bound(values, SCREENING_LEVEL), upper_bound(values, SCREENING_LEVEL)
    low, high = (math.exp(bound) if math.isfinite(bound) else None for bound in bounds)
    return Ratio(estimate=math.exp(hodges_lehmann(values)), low=low, high=high, pairs=len(values))


def lower_bound(values: Floats, level: float) -> float:
    """The one-sided bound of the centre by the signed-rank test; minus infinity for too few values."""
    rows, columns = np.triu_indices(values.size)
    averages = np.sort((values[rows] + values[columns]) / 2)
    place = int(np.searchsorted(_signed_rank(values.size), level, side="right"))
    return float(averages[place - 1]) if place else -math.inf


def upper_bound(values: Floats, level: float) -> float:
    """As `lower_bound`, from above."""
    return -lower_bound(-values, level)


def _is_slower(values: Floats, level: float) -> bool:
    return lower_bound(values, level) > 0 and hodges_lehmann(values) > LEAST_EFFECT


@cache
def _signed_rank(count: int) -> Floats:
    """The distribution function of the signed-rank statistic of `count` values, from 0 on."""
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, count + 1):
        ways[rank:] += ways[:-rank].copy()
    return np.cumsum(ways) / 2.0**count
