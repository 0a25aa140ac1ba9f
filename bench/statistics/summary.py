"""What a list of samples of one quantity says about it.

Timings on a shared machine have a heavy right tail: the median and the interquartile range are reported, and the
minimum as the least disturbed run. The mean and the standard deviation are not: one stall moves both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

FEWEST_FOR_INTERVAL = 3
"""Fewer samples than this give no interval: that of two values misses the median every other time."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Order statistics of samples, in the unit of the samples.

    `mad` is the median absolute deviation from the median, unscaled. `ci_low` and `ci_high` are samples that bound the
    median, `confidence` what that interval attains: at least what was asked for, unless so few samples cannot (five
    attain 0.9375 at most). They are None, and it is 0, with fewer than `FEWEST_FOR_INTERVAL` samples.
    """

    count: int
    minimum: float
    median: float
    maximum: float
    first_quartile: float
    third_quartile: float
    mad: float
    confidence: float
    ci_low: float | None
    ci_high: float | None

    @property
    def iqr(self) -> float:
        """The interquartile range."""
        return self.third_quartile - self.first_quartile

    def as_dict(self) -> dict[str, float | int | None]:
        """The fields by name, for a record."""
        return asdict(self)


def summarize(samples: Sequence[float], *, confidence: float = 0.95) -> Summary:
    """The summary of at least one finite sample.

    Raises:
        ValueError: No samples, a sample that is not finite, or a confidence outside (0, 1).
    """
    values = _finite(samples)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} is not between 0 and 1")
    first, median, third = (float(q) for q in np.quantile(values, [0.25, 0.5, 0.75]))
    low, high, attained = median_interval(values, confidence=confidence)
    return Summary(
        count=len(values),
        minimum=float(values.min()),
        median=median,
        maximum=float(values.max()),
        first_quartile=first,
        third_quartile=third,
        mad=float(np.median(np.abs(values - median))),
        confidence=attained,
        ci_low=low,
        ci_high=high,
    )


def median_interval(
    samples: Sequence[float] | np.ndarray, *, confidence: float
) -> tuple[float | None, float | None, float]:
    """The narrowest pair of samples, equally far from both ends, that bounds the median at `confidence`, and what it
    attains; the widest pair where none does; (None, None, 0) for too few samples.

    Exact for any continuous distribution: the number of samples below the median is binomial. A bootstrap of few
    samples promises more than it keeps.
    """
    values = np.sort(_finite(samples))
    if values.size < FEWEST_FOR_INTERVAL:
        return None, None, 0.0
    left_out, attained = _left_out(values.size, confidence)
    return float(values[left_out]), float(values[-1 - left_out]), attained


def _left_out(count: int, confidence: float) -> tuple[int, float]:
    """How many samples at each end the interval leaves out, and what it attains.

    By hand, since `scipy.stats` takes a second to import, and every process that measures imports this module.
    """
    left_out, at_most, all_outcomes = 0, 1, 2**count  # outcomes with at most `left_out` samples below the median
    while (more := at_most + math.comb(count, left_out + 1)) / all_outcomes < (1 - confidence) / 2:
        left_out, at_most = left_out + 1, more
    return left_out, 1 - 2 * at_most / all_outcomes


def _finite(samples: Sequence[float] | np.ndarray) -> np.ndarray:
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        raise ValueError("no samples")
    if not np.isfinite(values).all():
        raise ValueError("samples must be finite")
    return values
