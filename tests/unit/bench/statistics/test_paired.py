import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bench.statistics.paired import paired_difference, paired_ratio, signed_rank_distribution

PAIRS = st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=1, max_size=15)


@pytest.mark.parametrize("count", range(1, 11))
def test_the_distribution_is_that_of_all_sign_patterns(count: int) -> None:
    sums = [
        sum(rank for rank, sign in zip(range(1, count + 1), signs, strict=True) if sign)
        for signs in itertools.product((0, 1), repeat=count)
    ]
    expected = np.bincount(sums, minlength=count * (count + 1) // 2 + 1) / 2**count
    np.testing.assert_allclose(signed_rank_distribution(count), expected)


def test_many_pairs_use_the_normal_limit_smoothly() -> None:
    exact, limit = signed_rank_distribution(200), signed_rank_distribution(201)
    assert limit.sum() == pytest.approx(1)
    middle = len(exact) // 2
    assert limit[len(limit) // 2] == pytest.approx(exact[middle], rel=0.02)


def test_a_constant_factor_is_found_exactly() -> None:
    base = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    found = paired_ratio(base, [1.25 * value for value in base])
    assert (found.estimate, found.low, found.high) == pytest.approx((1.25, 1.25, 1.25))
    assert found.confidence >= 0.95


@given(PAIRS)
def test_laws_of_ratios(pairs: list[tuple[float, float]]) -> None:
    base, head = (list(side) for side in zip(*pairs, strict=True))
    found, swapped = paired_ratio(base, head), paired_ratio(head, base)
    assert found.low <= found.estimate <= found.high
    assert swapped.estimate == pytest.approx(1 / found.estimate)
    assert swapped.low == pytest.approx(1 / found.high)
    scaled = paired_ratio([10 * value for value in base], [10 * value for value in head])
    assert scaled.estimate == pytest.approx(found.estimate)


@given(PAIRS)
def test_the_difference_is_the_median_of_walsh_averages(pairs: list[tuple[float, float]]) -> None:
    base, head = (list(side) for side in zip(*pairs, strict=True))
    differences = [b - a for a, b in pairs]
    walsh = [(x + y) / 2 for x, y in itertools.combinations_with_replacement(differences, 2)]
    assert paired_difference(base, head).estimate == pytest.approx(float(np.median(walsh)))


@given(st.integers(6, 14), st.integers(0, 1000))
def test_the_interval_is_what_the_signed_rank_test_does_not_reject(count: int, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.3, 1, size=count)
    found = paired_difference([0.0] * count, list(differences))
    inside = (found.low + found.high) / 2 if found.low < found.high else found.estimate
    margin = (found.high - found.low) * 1e-6 + 1e-12
    assert _p_value(differences - inside) > 0.05
    # At the ends the statistic sits on ties; just outside it rejects, just inside it does not.
    assert _p_value(differences - (found.low - margin)) <= 0.05
    assert _p_value(differences - (found.low + margin)) > 0.05
    assert _p_value(differences - (found.high + margin)) <= 0.05


def _p_value(differences: np.ndarray) -> float:
    return float(stats.wilcoxon(differences, method="exact").pvalue)


@pytest.mark.parametrize(("count", "attainable"), [(1, 0.0), (2, 0.5), (5, 0.9375), (6, 0.96875)])
def test_few_pairs_say_what_they_attain(count: int, attainable: float) -> None:
    found = paired_difference([0.0] * count, [float(i) for i in range(count)])
    assert found.confidence == pytest.approx(attainable)
    assert (found.low, found.high) == (0.0, float(count - 1))


def test_the_ratio_interval_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(11)
    covered = 0
    for _ in range(300):
        weather = random.lognormal(0, 0.5, size=12)
        base = weather * random.lognormal(0, 0.05, size=12)
        head = 1.1 * weather * random.lognormal(0, 0.05, size=12)
        found = paired_ratio(list(base), list(head))
        covered += found.low <= 1.1 <= found.high
    assert covered / 300 >= 0.92


@pytest.mark.parametrize(
    ("base", "head"), [([], []), ([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([1.0], [math.nan])], ids=str
)
def test_what_is_no_pair(base: list[float], head: list[float]) -> None:
    with pytest.raises(ValueError, match=r"pairs|positive|finite"):
        paired_ratio(base, head)
