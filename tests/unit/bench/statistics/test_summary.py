import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.statistics.summary import FEWEST_FOR_INTERVAL, summarize

SAMPLES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)


def test_known_values() -> None:
    found = summarize([4.0, 1.0, 3.0, 2.0, 100.0])
    assert (found.count, found.minimum, found.median, found.maximum) == (5, 1.0, 3.0, 100.0)
    assert (found.first_quartile, found.third_quartile, found.iqr) == (2.0, 4.0, 2.0)
    assert found.mad == 1.0


@given(SAMPLES)
def test_order_does_not_matter_and_the_summary_is_ordered(samples: list[float]) -> None:
    found = summarize(samples)
    assert found.minimum <= found.first_quartile <= found.median <= found.third_quartile <= found.maximum
    assert summarize(sorted(samples)).median == found.median
    if len(samples) < FEWEST_FOR_INTERVAL:
        assert found.ci_low is None
        assert found.ci_high is None
    else:
        assert found.ci_low is not None
        assert found.ci_high is not None
        assert found.minimum <= found.ci_low <= found.ci_high <= found.maximum


def test_the_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(200):
        found = summarize(list(random.lognormal(size=25)))
        assert found.ci_low is not None
        assert found.ci_high is not None
        covered += found.ci_low <= 1.0 <= found.ci_high
    assert 0.91 <= covered / 200 <= 1.0


@pytest.mark.parametrize(
    ("count", "attained", "low", "high"),
    [(3, 0.75, 0, 2), (5, 0.9375, 0, 4), (6, 0.96875, 0, 5), (9, 0.9609375, 1, 7), (20, 0.95861053, 5, 14)],
)
def test_the_interval_is_the_narrowest_that_attains_what_is_asked(
    count: int, attained: float, low: int, high: int
) -> None:
    """Against tables of the distribution-free interval of the median."""
    found = summarize([float(n) for n in range(count)])
    assert found.confidence == pytest.approx(attained)
    assert (found.ci_low, found.ci_high) == (low, high)


def test_two_samples_have_no_interval() -> None:
    found = summarize([1.0, 2.0])
    assert (found.ci_low, found.ci_high, found.confidence) == (None, None, 0.0)


def test_equal_samples_have_an_interval_of_no_width() -> None:
    found = summarize([2.0] * 5)
    assert (found.ci_low, found.ci_high, found.mad) == (2.0, 2.0, 0.0)


@pytest.mark.parametrize("samples", [[], [1.0, float("nan")], [float("inf")]])
def test_what_has_no_summary(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="sample"):
        summarize(samples)


def test_a_confidence_is_a_share() -> None:
    with pytest.raises(ValueError, match="confidence"):
        summarize([1.0, 2.0, 3.0], confidence=95)
