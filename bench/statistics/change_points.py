"""Where a series of ratios changed its level, by ruptures: PELT with a bounded quadratic loss, weighted by errors.

A value costs the square of its distance from the level of its segment, in standard errors of its own, but at most that
of `_REACH` errors, so that a stalled measurement is no change (Fearnhead and Rigaill, Changepoint Detection in the
Presence of Outliers, JASA 2019). Each change costs `PENALTY` ln(n). Errors are as large as neighbours differ, if that
is more than they say. docs/design/gate.md has how often steps are found and false alarms given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import ruptures
from ruptures.base import BaseCost
from scipy.stats import t

from icebench.bench.statistics.claims import Floats

PENALTY = 3.0
LEAST = math.log(1.03)
"""Smaller changes are not reported."""
_LEAST_CONFIDENCE = 0.5
_REACH = 3.0
_LEVELS = np.linspace(-1.5, 1.5, 13)
"""Where levels are looked for around each value, in its errors: the mean of values that are further apart is none."""
_SHORTEST = 2
_FEWEST = 6
_LEAST_NOISE = 0.005
"""Less would make outliers of values that differ by less than what is reported."""


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """A change of level.

    Args:
        index: Of the first value with the new level.
        before: The ratio of the segment before: the weighted mean of its logarithms without outliers.
        now: The ratio of the segment that starts here.
        confidence: That the levels differ, by their errors, and by Student's t where errors are unknown or neighbours
            differ by more, as the noise is then that of the values; corrected for as many places as a change could be
            at.
    """

    index: int
    before: float
    now: float
    confidence: float


class _BoundedLoss(BaseCost):  # type: ignore[misc]
    """The loss of a segment at the best of the levels around the values of the whole series."""

    model = "bounded"
    min_size = _SHORTEST

    def __init__(self, errors: Floats) -> None:
        self._errors = errors

    def fit(self, signal: Floats) -> _BoundedLoss:
        self.signal = signal
        values = signal.reshape(-1, 1)
        self._levels = (values + np.outer(self._errors, _LEVELS)).ravel()
        losses = np.minimum(((values - self._levels) / self._errors[:, None]) ** 2, _REACH**2)
        self._sums = np.vstack([np.zeros(self._levels.size), np.cumsum(losses, axis=0)])
        return self

    def error(self, start: int, end: int) -> float:
        return float((self._sums[end] - self._sums[start]).min())

    def best_level(self) -> float:
        """Of the whole series."""
        return float(self._levels[int(np.argmin(self._sums[-1]))])


@dataclass(frozen=True)
class _Segment:
    """Values around one level, which has the weight of those that are no outliers."""

    values: Floats
    errors: Floats
    level: float
    weight: float

    @property
    def loss(self) -> float:
        return float(np.minimum(((self.values - self.level) / self.errors) ** 2, _REACH**2).sum())


def change_points(logs: Sequence[float], errors: Sequence[float] | None = None) -> list[ChangePoint]:
    """The changes of a series of natural logarithms of ratios, in order; none in a series of fewer than six.

    Args:
        logs: The series.
        errors: The standard error of each value; None if they are alike and unknown.
    """
    values = np.asarray(logs, np.float64)
    if values.size < _FEWEST:
        return []
    noise, is_known = _noise(values, errors)
    search = ruptures.Pelt(custom_cost=_BoundedLoss(noise), min_size=_SHORTEST, jump=1).fit(values)
    parts = _joined(values, noise, search.predict(pen=PENALTY * math.log(values.size)), known=is_known)
    return [
        ChangePoint(
            index=sum(part.values.size for part in parts[: number + 1]),
            before=math.exp(left.level),
            now=math.exp(right.level),
            confidence=_confidence(parts, left, right, known=is_known),
        )
        for number, (left, right) in enumerate(pairwise(parts))
    ]


def _noise(values: Floats, errors: Sequence[float] | None) -> tuple[Floats, bool]:
    """The errors, all as many times larger as neighbours differ more: by the median, which steps do not move; and
    whether they are as they were given."""
    given = np.ones(values.size) if errors is None else np.maximum(np.asarray(errors, np.float64), _LEAST_NOISE)
    apart = np.abs(np.diff(values)) / np.hypot(given[1:], given[:-1])
    seen = 1.4826 * float(np.median(apart))
    is_known = errors is not None and seen <= 1
    return np.maximum(given * (1.0 if is_known else seen), _LEAST_NOISE), is_known


def _segment(values: Floats, errors: Floats) -> _Segment:
    near = np.abs(values - _BoundedLoss(errors).fit(values).best_level()) <= _REACH * errors
    weights = near / errors**2
    return _Segment(values, errors, float(weights @ values / weights.sum()), float(weights.sum()))


def _joined(values: Floats, errors: Floats, ends: Sequence[int], *, known: bool) -> list[_Segment]:
    """The segments, those joined whose levels are too near each other, or as likely as not the same."""
    bounds = [0, *ends]
    while True:
        parts = [_segment(values[start:stop], errors[start:stop]) for start, stop in pairwise(bounds)]
        steps = [abs(right.level - left.level) for left, right in pairwise(parts)]
        confidences = [_confidence(parts, left, right, known=known) for left, right in pairwise(parts)]
        if steps and min(steps) < LEAST:
            del bounds[int(np.argmin(steps)) + 1]
        elif confidences and min(confidences) < _LEAST_CONFIDENCE:
            del bounds[int(np.argmin(confidences)) + 1]
        else:
            return parts


def _confidence(parts: Sequence[_Segment], left: _Segment, right: _Segment, *, known: bool) -> float:
    count = sum(part.values.size for part in parts)
    freedom = count - len(parts)
    spread = max(1.0, math.sqrt(sum(part.loss for part in parts) / freedom))
    error = spread * math.sqrt(1 / left.weight + 1 / right.weight)
    chance = 2 * float(t.sf(abs(right.level - left.level) / error, math.inf if known else freedom))
    return 1 - min(1.0, count * chance)
