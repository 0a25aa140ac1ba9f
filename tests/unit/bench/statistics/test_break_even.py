"""The interval of a break-even, against runs that are simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from icebench.bench.statistics.break_even import Difference, difference_of, pays_after
from icebench.bench.statistics.claims import Series

BUILDS = (2.0, 3.3)
QUERIES = (0.040, 0.012)
TRUE = (BUILDS[1] - BUILDS[0]) / (QUERIES[0] - QUERIES[1])


def taken(level: float, drift: np.ndarray, random: np.random.Generator) -> Series:
    """What one takes in each round: the machine's drift, what the process favours, and noise with heavy tails."""
    favour = 0.03 * random.standard_t(4)
    noise = 0.05 * random.standard_t(3, drift.size)
    return Series(level * np.exp(drift + favour + noise), np.array([(0, n) for n in range(drift.size)]))


def simulated(random: np.random.Generator) -> tuple[float, float, float]:
    """The break-even that one run reports: three builds, six rounds of queries."""
    drift = 0.15 * random.standard_normal() + 0.05 * random.standard_normal(6)
    builds, queries = (
        [taken(level, drift[:rounds], random) for level in levels] for levels, rounds in ((BUILDS, 3), (QUERIES, 6))
    )
    found = pays_after(difference_of(*builds), difference_of(queries[1], queries[0]))
    return found or (0.0, math.nan, math.inf)


def test_intervals_of_repeated_runs_hold_the_truth_and_meet_each_other() -> None:
    random = np.random.default_rng(7)
    runs = [simulated(random) for _ in range(200)]
    assert sum(low <= TRUE <= high for low, _, high in runs) >= 0.93 * len(runs)
    pairs = list(zip(runs[::2], runs[1::2], strict=True))
    assert sum(one[0] <= other[2] and other[0] <= one[2] for one, other in pairs) >= 0.97 * len(pairs)
    # Not by being so wide that they say nothing.
    assert np.median([high / low for low, _, high in runs if low > 0]) < 4
    assert np.nanmedian([about for _, about, _ in runs]) == pytest.approx(TRUE, rel=0.05)


def test_both_errors_are_in_the_interval() -> None:
    sure, unsure = (Difference(amount=10.0, error=error, freedom=20) for error in (0.1, 1.0))
    low, about, high = pays_after(sure, sure) or (math.nan,) * 3
    assert (low, about, high) == pytest.approx((0.97, 1.0, 1.03), abs=0.005)
    for extra, saved in ((unsure, sure), (sure, unsure)):
        wide = pays_after(extra, saved)
        assert wide is not None
        assert wide[0] < 0.85
        assert wide[2] > 1.2


def test_what_is_cheaper_to_make_pays_at_once_and_what_saves_nothing_never_does() -> None:
    saved = Difference(amount=1.0, error=0.1, freedom=20)
    assert pays_after(Difference(amount=-5.0, error=0.5, freedom=20), saved) == (0.0, 0.0, 0.0)
    doubtful = pays_after(Difference(amount=0.2, error=0.5, freedom=20), saved)
    assert doubtful is not None
    assert doubtful[0] == 0
    assert doubtful[2] > 1
    extra = Difference(amount=5.0, error=0.5, freedom=20)
    assert pays_after(extra, Difference(amount=-1.0, error=0.1, freedom=20)) is None
    assert pays_after(extra, Difference(amount=0.1, error=0.1, freedom=20)) is None


def test_a_difference_is_that_of_the_pairs() -> None:
    rounds = np.array([(0, n) for n in range(6)])
    drift = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    found = difference_of(Series(2.0 * drift, rounds), Series(5.0 * drift, rounds))
    assert found.amount / math.exp(np.log(2 * drift).mean()) == pytest.approx(1.5, rel=0.1)
    assert found.interval[0] < found.amount < found.interval[2]
