"""The interval of what one competitor takes, over several processes.

Rounds of one process are not independent of each other beside those of another: what favours a competitor for the life
of a process (`icebench.bench.statistics.claims`) moves all of them. The order statistics of all samples together, which
take them to be, cover far less than they promise; `python -m tests.simulated_medians` shows by how much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from icebench.bench.statistics.break_even import interval_of
from icebench.bench.statistics.claims import CONFIDENCE, Floats, Series
from icebench.bench.statistics.process_spread import ProcessSpread

_TIMES = {"s", "ms", "us", "µs", "ns"}


def interval_over_processes(
    values: Sequence[float], places: Sequence[tuple[int, int]], spread: ProcessSpread, *, unit: str, of_two: bool
) -> tuple[float, float, float]:
    """The ends of the interval, and its level. It is never so narrow that the median is outside of it.

    Times and rates have the interval of `interval_of`, by the spread that is known of processes; shares that are added
    that of one and the share, which is a ratio. What is known says nothing of other figures, bytes or differences of
    two times: these have Student's t over the medians of the processes, of which two say next to nothing.

    Args:
        values: At least two processes' samples.
        places: The process and round of each.
        spread: What is known of processes of the machine.
        unit: Of the values.
        of_two: Whether they are differences of two times, or their shares of one.
    """
    samples, rounds = np.array(values, dtype=np.float64), np.array(places)
    middle = float(np.median(samples))
    if float(np.ptp(samples)) == 0:
        return middle, middle, CONFIDENCE
    is_timed = unit in _TIMES or unit.endswith("/s")
    if of_two and unit == "ratio" and samples.min() > -1:
        low, _, high = (end - 1 for end in interval_of(Series(samples + 1, rounds, spread)))
    elif is_timed and not of_two and samples.min() > 0:
        low, _, high = interval_of(Series(samples, rounds, spread))
    else:
        low, high = _by_medians(samples, rounds[:, 0])
    return min(low, middle), max(high, middle), CONFIDENCE


def _by_medians(samples: Floats, processes: np.ndarray) -> tuple[float, float]:
    medians = np.array([np.median(samples[processes == each]) for each in np.unique(processes)])
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, medians.size - 1) * medians.std(ddof=1)) / math.sqrt(medians.size)
    return float(medians.mean()) - reach, float(medians.mean()) + reach
