"""After how many uses what costs more to make has paid, and how sure that is.

Both amounts are differences of two means, each with an error: what making takes more, and what a use takes less. The
interval of their ratio is Fieller's ("Some problems in interval estimation", 1954): the counts n of uses at which
``extra - n * saved`` may be zero, by Student's t. The error of a ratio of small samples is not symmetric, which the
delta method has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from icebench.bench.statistics.claims import CONFIDENCE, Series, effect_of, level_of

Interval = tuple[float, float, float]
"""Low, about, high."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What one takes more than another, in their unit.

    Args:
        amount: The estimate.
        error: Its standard error.
        freedom: The degrees of freedom of that.
    """

    amount: float
    error: float
    freedom: float

    @property
    def interval(self) -> Interval:
        """At the level `CONFIDENCE`."""
        reach = _student(self.freedom) * self.error
        return self.amount - reach, self.amount, self.amount + reach


def difference_of(base: Series, head: Series) -> Difference:
    """What `head` takes more than `base`: the base's level times the ratio of the two in their pairs.

    The error has that of the ratio, over rounds and processes, and that of the level, which no pairing takes away.

    Raises:
        ValueError: A sample is not positive.
    """
    effect = effect_of([(base, head)])
    level, error, freedom = level_of(base)
    ratio, size = effect.ratio, math.exp(level)
    errors = np.array([size * ratio * effect.error, size * (ratio - 1) * error])
    variances = errors**2
    total = float(variances.sum())
    # Welch and Satterthwaite.
    joint = total**2 / float((variances**2 / np.array([effect.freedom, freedom])).sum()) if total else effect.freedom
    return Difference(amount=size * (ratio - 1), error=math.sqrt(total), freedom=joint)


def interval_of(series: Series) -> Interval:
    """What one takes, and how sure that is.

    Raises:
        ValueError: A sample is not positive.
    """
    level, error, freedom = level_of(series)
    reach = _student(freedom) * error
    return math.exp(level - reach), math.exp(level), math.exp(level + reach)


def pays_after(extra: Difference, saved: Difference) -> Interval | None:
    """After how many uses making has paid: at least, about, at most; zeros where it does at once.

    Args:
        extra: What making takes more.
        saved: What a use takes less.

    Returns:
        None where nothing is saved, or so little that no number of uses is surely enough.
    """
    student = _student(min(extra.freedom, saved.freedom))
    square = saved.amount**2 - (student * saved.error) ** 2
    if saved.amount <= 0 or square <= 0:
        return None
    middle = extra.amount * saved.amount
    rest = extra.amount**2 - (student * extra.error) ** 2
    root = math.sqrt(max(0.0, middle**2 - square * rest))
    low, high = ((middle - root) / square, (middle + root) / square)
    about = extra.amount / saved.amount
    return max(0.0, low), max(0.0, about), max(0.0, high)


def _student(freedom: float) -> float:
    return float(stats.t(freedom).ppf((1 + CONFIDENCE) / 2))
