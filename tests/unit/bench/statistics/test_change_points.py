from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from icebench.bench.statistics.change_points import ChangePoint, change_points

LENGTH = 40


def noise(random: np.random.Generator, sd: float) -> NDArray[np.float64]:
    """Student's t with 3 degrees of freedom and, in one value of twenty, a stall."""
    stalls = random.choice([-0.15, 0.15], LENGTH) * (random.random(LENGTH) < 0.05)
    return random.standard_t(3, LENGTH) * sd / math.sqrt(3) + stalls


def found(step: float, place: int, random: np.random.Generator, sd: float = 0.02) -> list[ChangePoint]:
    values = noise(random, sd)
    values[place:] += step
    return change_points(list(values))


def test_a_level_that_stays_has_no_change_points() -> None:
    random = np.random.default_rng(1)
    assert sum(bool(found(0.0, LENGTH, random)) for _ in range(100)) <= 3


@pytest.mark.parametrize(("step", "least"), [(0.05, 75), (0.1, 85), (-0.2, 95)])
def test_planted_steps_are_found_where_they_are(step: float, least: int) -> None:
    random = np.random.default_rng(2)
    right = 0
    for _ in range(100):
        place = int(random.integers(5, 36))
        points = found(step, place, random)
        near = [point for point in points if abs(point.index - place) <= 1]
        right += len(near) == 1 and abs(math.log(near[0].now / near[0].before) - step) < 0.03
    assert right >= least


def test_confidence_grows_with_the_step_and_is_a_share() -> None:
    confidences = []
    for step in (0.06, 0.1, 0.4):
        (point,) = found(step, 20, np.random.default_rng(7))
        confidences.append(point.confidence)
    assert confidences == sorted(confidences)
    assert 0 <= confidences[0] < confidences[-1] <= 1
    assert confidences[-1] > 0.999


def test_a_single_stall_changes_nothing_and_a_pair_of_values_can() -> None:
    quiet = [0.001, -0.001, 0.0, 0.002] * 5
    assert change_points([*quiet, 0.5, *quiet]) == []
    points = change_points([*quiet, 0.5, 0.51])
    assert [point.index for point in points] == [20]
    assert points[0].now / points[0].before == pytest.approx(math.exp(0.505), rel=0.01)
    assert change_points([*quiet, 0.5, 0.9]) == [], "two stalls, of which neither confirms the other"


def test_each_of_several_steps_is_where_it_is() -> None:
    random = np.random.default_rng(5)
    values = random.normal(0, 0.004, 30)
    values[8:] += 0.1
    values[15:] -= 0.05
    values[21:] += 0.2
    points = change_points(list(values), [0.005] * 30)
    assert [point.index for point in points] == [8, 15, 21]
    assert [math.log(point.now / point.before) for point in points] == pytest.approx([0.1, -0.05, 0.2], abs=0.01)


def test_values_count_by_their_errors() -> None:
    exact, loose = 0.005, 0.05
    before, step = [0.001, -0.001] * 5, [0.05, 0.052, 0.048]
    (point,) = change_points([*before, *step], [exact] * 13)
    assert point.index == 10
    assert point.now / point.before == pytest.approx(math.exp(0.05), rel=0.005)
    assert point.confidence > 0.999
    assert change_points([*before, *step], [exact] * 10 + [loose] * 3) == []
    (point,) = change_points([*before, *step, 0.12, 0.051], [exact] * 13 + [loose, exact])
    assert point.now / point.before == pytest.approx(math.exp(0.05), rel=0.005), "the loose one moves no level"


def test_errors_are_too_small_where_neighbours_differ_by_more() -> None:
    random = np.random.default_rng(3)
    for error in (0.0, 0.005):
        assert not any(change_points(list(random.normal(0, 0.04, LENGTH)), [error] * LENGTH) for _ in range(10))


def test_an_outlier_beside_a_step_moves_neither_level() -> None:
    values = [0.0, 0.002, -0.002, 0.001, 0.0, 0.3, 0.1, 0.102, 0.098, 0.1, 0.101]
    (point,) = change_points(values, [0.005] * len(values))
    assert [point.before, point.now] == pytest.approx([1.0, math.exp(0.1)], abs=0.002)


def test_a_change_that_is_likelier_chance_is_not_reported() -> None:
    """What `scan/large/decimals` took of its first reference, two pairs of processes each; the large step is real."""
    logs = [-0.254, -0.124, -0.147, -0.214, -0.27, -0.317, -0.283, -0.246, -0.228, -0.243, -0.218, -0.229, -0.204]
    logs += [-0.329, -0.319, -0.312, -0.287, 0.305, -0.016, 0.034, 0.01, -0.011, -0.09]
    (point,) = change_points(logs)
    assert point.index == 17
    assert point.confidence > 0.999


def test_differences_that_nobody_would_act_on_are_not_reported() -> None:
    assert change_points([0.0] * 10 + [0.02] * 10) == []
    assert len(change_points([0.0] * 10 + [0.04] * 10)) == 1


def test_a_short_series_says_nothing() -> None:
    assert change_points([0.0, 0.0, 0.0, 1.0, 1.0]) == []
    assert change_points([]) == []
