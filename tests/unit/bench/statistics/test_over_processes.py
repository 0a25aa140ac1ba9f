"""The interval of a median over processes, against runs that are simulated."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulated_medians import coverage, ends_of, record_of


def test_rounds_of_several_processes_are_no_independent_samples() -> None:
    found = coverage(np.random.default_rng(7), processes=3, runs=200)
    assert found.promised > 0.95
    assert found.pooled < 0.85
    assert found.recorded >= 0.93
    assert found.width < 0.2, "not by being so wide that it says nothing"


def test_the_interval_of_one_process_is_of_that_process() -> None:
    found = coverage(np.random.default_rng(7), processes=1, runs=300)
    assert found.of_process >= 0.94
    assert found.recorded == found.pooled < 0.6


def interval(*samples: float, unit: str = "s", of_two: bool = False, processes: int = 2) -> tuple[float, float]:
    rounds = len(samples) // processes
    places = tuple((place // rounds, place % rounds) for place in range(len(samples)))
    made = record_of(samples, places, unit=unit, of_two=of_two)
    low, high = ends_of(made)
    assert made.summary["confidence"] == pytest.approx(0.95)
    median = made.summary["median"]
    assert median is not None
    assert low <= median <= high
    return low, high


def test_what_is_known_of_processes_is_of_times_and_of_shares_of_them() -> None:
    low, high = interval(1.0, 1.01, 1.02, 1.0, 1.01, 1.02)
    assert (low, high) == pytest.approx((0.925, 1.102), abs=0.002)
    assert interval(0.0, 0.01, 0.02, 0.0, 0.01, 0.02, unit="ratio", of_two=True) == pytest.approx((low - 1, high - 1))
    # The tail of Student's t with one degree of freedom.
    low, high = interval(1.0, 1.0, 1.0, 1.1, 1.1, 1.1, of_two=True)
    assert (low, high) == pytest.approx((1.05 - 12.706 * 0.05, 1.05 + 12.706 * 0.05), abs=0.001)
    assert interval(0.0, 1.0, 1.0, 1.0, 1.0, 1.0) == pytest.approx((1.0, 1.0))


def test_what_never_differs_has_no_width() -> None:
    assert interval(*[4096.0] * 6, unit="bytes") == (4096.0, 4096.0)
