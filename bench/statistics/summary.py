"""What a list of samples of one quantity says about it.

Timings on a shared machine have a heavy right tail: the median and the interquartile range are reported, and the
minimum as the least disturbed run. The mean and the standard deviation are not: one stall moves both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy import stats

FEWEST_FOR_INTERVAL = 3
"""Fewer samples than this give no confidence interval: resampling two values says nothing."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Order statistics of samples, in the unit of the samples.

    `mad` is the median absolute deviation from the median, unscaled. `ci_low` and `ci_high` bound the median at
    `confidence` (percentile bootstrap); they are None with fewer than `FEWEST_FOR_INTERVAL` samples.
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


def summarize(
    samples: Sequence[float], *, confidence: float = 0.95, resamples: int = 2000, seed: int = 20_240_229
) -> Summary:
    """The summary of at least one finite sample; the same samples and seed give the same summary.

    Raises:
        ValueError: No samples, a sample that is not finite, or a confidence outside (0, 1).
    """
    values = _finite(samples)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} is not between 0 and 1")
    first, median, third = (float(q) for q in np.quantile(values, [0.25, 0.5, 0.75]))
    low, high = median_interval(values, confidence=confidence, resamples=resamples, seed=seed)
    return Summary(
        count=len(values),
        minimum=float(values.min()),
        median=median,
        maximum=float(values.max()),
        first_quartile=first,
        third_quartile=third,
        mad=float(np.median(np.abs(values - median))),
        confidence=confidence,
        ci_low=low,
        ci_high=high,
    )


def median_interval(
    samples: Sequence[float] | np.ndarray, *, confidence: float, resamples: int, seed: int
) -> tuple[float | None, float | None]:
    """The percentile bootstrap interval of the median, or (None, None) for too few samples."""
    values = _finite(samples)
    if len(values) < FEWEST_FOR_INTERVAL:
        return None, None
    if values.min() == values.max():
        return float(values[0]), float(values[0])
    result = stats.bootstrap(
        (values,),
        np.median,
        confidence_level=confidence,
        n_resamples=resamples,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _finite(samples: Sequence[float] | np.ndarray) -> np.ndarray:
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        raise ValueError("no samples")
    if not np.isfinite(values).all():
        raise ValueError("samples must be finite")
    return values
