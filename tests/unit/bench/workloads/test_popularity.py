import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.workloads.draws import words
from icebench.bench.workloads.popularity import CIRCLE, popular, zipf_arcs

SIXTEENTH = CIRCLE // 16


@given(count=st.integers(16, 3_000), skew=st.floats(0, 20))
def test_arcs_fill_the_circle_and_none_is_longer_than_a_sixteenth(count: int, skew: float) -> None:
    arcs = zipf_arcs(count, skew, SIXTEENTH)
    assert int(arcs.sum()) == CIRCLE
    assert arcs.min() >= 0
    assert arcs.max() <= SIXTEENTH
    assert (np.diff(arcs) <= 1).all(), "a later rank sells no more, but for the unit that rounding gives away"


@pytest.mark.parametrize("skew", [0.5, 1.0])
def test_arcs_are_proportional_to_the_rank_where_not_cut(skew: float) -> None:
    arcs = zipf_arcs(9_000, skew, SIXTEENTH)
    free = arcs < SIXTEENTH
    assert free.sum() >= 8_999
    scaled = arcs[free] * np.arange(1, 9_001)[free] ** skew
    assert np.abs(scaled / scaled.mean() - 1).max() < 1e-3


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.1, 2.0])
def test_things_come_by_their_share_whatever_their_number(skew: float) -> None:
    count, rows = 500, 200_000
    seen = np.bincount(popular(words(3, "word", np.arange(rows)), 3, "rank", count, skew), minlength=count)
    expected = zipf_arcs(count, skew) / CIRCLE * rows
    by_rank = np.sort(seen)[::-1]
    assert len(seen) == count
    assert np.abs(by_rank[:5] - expected[:5]).max() < 6 * np.sqrt(expected[0])
    assert by_rank[:50].sum() == pytest.approx(expected[:50].sum(), rel=0.02 if skew else 0.2)
    assert abs(np.corrcoef(np.arange(count), seen)[0, 1]) < 0.1


def test_without_a_limit_the_first_has_its_whole_share() -> None:
    assert zipf_arcs(3, 1.0).tolist() == [2_342_709_435, 1_171_354_717, 780_903_144]
