"""What may be claimed of two series: simulated with noise as measurements have it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.statistics.claims import (
    FALSE_CLAIMS,
    LEAST_EFFECT,
    Floats,
    Series,
    contrast_of,
    effect_between,
    effect_of,
    hodges_lehmann,
    holm,
)

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def series(values: Sequence[float] | Floats, *, process: int = 0, first: int = 0) -> Series:
    return Series(np.array(values, np.float64), np.array([(process, first + i) for i in range(len(values))]))


def simulated(
    random: np.random.Generator, *, effect: float, processes: int, rounds: int, noise: float = 0.05
) -> tuple[Series, Series]:
    """A base and a head of one case: drift that a round shares, stalls, and processes that favour one of the two."""
    places = np.array([(p, i) for p in range(processes) for i in range(rounds)])
    drift = np.repeat(random.normal(0, 0.1, processes), rounds) + np.tile(np.linspace(0, 0.3, rounds), processes)
    favour = np.repeat(random.standard_t(4, processes) * 0.03, rounds)
    both = []
    for own in (-favour / 2, favour / 2 + effect):
        stalls = np.where(random.random(len(places)) < 0.1, random.exponential(0.5, len(places)), 0)
        both.append(Series(np.exp(drift + own + random.normal(0, noise, len(places)) + stalls), places))
    return both[0], both[1]


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("rounds", [3, 9])
def test_an_engine_against_its_own_twin_wins_in_at_most_one_claim_of_a_hundred(processes: int, rounds: int) -> None:
    random = np.random.default_rng(processes * 100 + rounds)
    reports, claims = 100, 6
    named = 0
    for _ in range(reports):
        cases = [
            [simulated(random, effect=0.0, processes=processes, rounds=rounds) for _ in range(2)] for _ in range(claims)
        ]
        named += sum(p <= FALSE_CLAIMS for p in holm([effect_of(own).p_value for own in cases]))
    assert named <= 0.01 * reports * claims


@pytest.mark.parametrize("rounds", [3, 4, 5, 6, 9])
def test_nor_does_it_on_a_machine_where_times_are_thrice_or_a_third(rounds: int) -> None:
    """Of few rounds some agree by chance, and their spread says nothing of the noise."""
    random = np.random.default_rng(rounds)
    reports, claims = 300, 4
    named = 0
    for _ in range(reports):
        cases = [simulated(random, effect=0.0, processes=1, rounds=rounds, noise=0.6) for _ in range(claims)]
        named += sum(p <= FALSE_CLAIMS for p in holm([effect_of([case]).p_value for case in cases]))
    assert named <= 0.01 * reports * claims


@pytest.mark.parametrize(("processes", "factor"), [(1, 1.6), (3, 1.3), (5, 1.25)])
def test_differences_of_interest_are_found(processes: int, factor: float) -> None:
    random = np.random.default_rng(7)
    found = []
    for _ in range(30):
        cases = [simulated(random, effect=math.log(factor), processes=processes, rounds=9) for _ in range(2)]
        effect = effect_of(cases)
        found.append(6 * effect.p_value <= FALSE_CLAIMS)
        assert effect.low < effect.ratio < effect.high
    assert sum(found) >= 24


def test_the_interval_holds_the_truth() -> None:
    random = np.random.default_rng(3)
    held = 0
    for _ in range(100):
        effect = effect_of([simulated(random, effect=math.log(1.2), processes=3, rounds=5)])
        held += effect.low <= 1.2 <= effect.high
    assert held >= 93


@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("first", [0, 100])
def test_a_large_difference_is_found_however_few_rounds_the_slow_one_has(rounds: int, first: int) -> None:
    fast = series([1.0, 1.02, 0.98, 1.1, 1.0, 0.97, 1.0, 1.01, 1.2, 1.0])
    effect = effect_of([(fast, series([49.0, 50.0, 48.0, 49.5, 49.2][:rounds], first=first))])
    assert effect.ratio == pytest.approx(49, rel=0.06)
    assert 30 * effect.p_value <= FALSE_CLAIMS
    assert effect.differs


def test_rounds_of_one_process_do_not_stand_for_processes() -> None:
    """A thousand rounds cannot distinguish a lucky process from a difference; three processes can."""
    values = [1.0, 1.01, 0.99] * 300
    one = effect_of([(series(values), series([1.12 * v for v in values]))])
    assert one.p_value > FALSE_CLAIMS
    few = [1.0, 1.01, 0.99]
    base = [series(few, process=p) for p in range(8)]
    joined = Series(np.concatenate([s.values for s in base]), np.concatenate([s.rounds for s in base]))
    eight = effect_of([(joined, Series(joined.values * 1.12, joined.rounds))])
    assert eight.p_value <= FALSE_CLAIMS < one.p_value
    assert (one.processes, eight.processes) == (1, 8)


def test_processes_that_contradict_each_other_widen_the_interval() -> None:
    def of(factors: Sequence[float]) -> tuple[Series, Series]:
        places = np.array([(p, i) for p in range(len(factors)) for i in range(5)])
        return Series(np.ones(len(places)), places), Series(np.repeat(factors, 5), places)

    alike, apart = effect_of([of([1.3, 1.3, 1.3])]), effect_of([of([0.8, 1.3, 2.1125])])
    assert alike.ratio == pytest.approx(apart.ratio, rel=0.02)
    assert apart.low < 1 < alike.low


@pytest.mark.parametrize("processes", [1, 4])
def test_a_contrast_of_two_is_their_ratio(processes: int) -> None:
    random = np.random.default_rng(2)
    cases = [simulated(random, effect=math.log(1.7), processes=processes, rounds=5) for _ in range(3)]
    assert contrast_of(cases, (-1.0, 1.0)) == effect_of(cases)


def test_what_cases_of_a_round_share_is_seen_and_not_assumed() -> None:
    """Forty cases are as sure as one where a round disturbs all alike, and far surer where it does not."""
    random = np.random.default_rng(4)

    def width(noise: Floats) -> float:
        effect = effect_of([(series(np.ones(6)), series(np.exp(math.log(5) + own))) for own in noise])
        return math.log(effect.high / effect.low)

    together = np.tile(np.array([0.2, -1.0, 0.6, 1.0, -0.2, -0.6]), (40, 1))
    apart, one = random.permuted(together, axis=1), width(together[:1])
    assert width(together) == pytest.approx(one)
    assert width(apart) < one / 3


def test_five_times_is_a_claim_on_a_busy_machine_and_one_stall_does_not_take_it_away() -> None:
    random = np.random.default_rng(5)
    noisy = [random.normal(0, 0.35, (2, 6)) for _ in range(40)]
    cases = [(series(np.exp(base)), series(5 * np.exp(head))) for base, head in noisy]
    assert 45 * effect_of(cases).p_value <= FALSE_CLAIMS
    calm = [1.0, 1.05, 0.97, 1.02, 0.95, 1.0]
    stalled = effect_of([(series(calm), series([2.0, 2.1, 1.9, 30.0, 2.05, 1.95]))])
    assert 6 * stalled.p_value <= FALSE_CLAIMS


def test_a_contrast_takes_the_rounds_that_all_have_and_the_cases_that_have_some() -> None:
    four = [series([v * w for w in (1.0, 3.0, 0.5, 2.0)]) for v in (1.0, 2.0, 5.0, 30.0)]
    # The effect of the second knob is 5 at the first's low value and 15 at its high one.
    interaction = contrast_of([four], (1.0, -1.0, -1.0, 1.0))
    assert interaction is not None
    assert interaction.ratio == pytest.approx(3)
    main = contrast_of([four], (-0.5, -0.5, 0.5, 0.5))
    assert main is not None
    assert main.ratio == pytest.approx(math.sqrt(75))
    calm = [[series([value] * 6) for value in (1.0, 2.0, 5.0, 30.0)]]
    wide, narrow = (contrast_of(calm, weights) for weights in ((1.0, -1.0, -1.0, 1.0), (-0.5, -0.5, 0.5, 0.5)))
    assert wide is not None
    assert narrow is not None
    assert wide.high / wide.low > 1.05 * narrow.high / narrow.low
    alone = [*four[:3], series([9.0], first=50)]
    assert contrast_of([alone], (1.0, -1.0, -1.0, 1.0)) is None
    assert contrast_of([alone, four], (1.0, -1.0, -1.0, 1.0)) == interaction
    # One that has no weight is not asked.
    assert contrast_of([alone], (-1.0, 1.0, 0.0, 0.0)) is not None


def test_runs_of_the_same_code_at_different_hours_win_in_at_most_one_claim_of_a_hundred() -> None:
    """Where the hours differ by a tenth, pairing equal numbers of rounds would name a winner every few runs."""
    random = np.random.default_rng(11)
    named, paired = 0, 0
    for _ in range(200):
        cases = []
        for _ in range(2):
            base, _ = simulated(random, effect=0.0, processes=3, rounds=5)
            _, head = simulated(random, effect=0.0, processes=3, rounds=5)
            cases.append((base, head))
        hour = math.exp(random.normal(0, 0.1))
        cases = [(base, Series(head.values * hour, head.rounds)) for base, head in cases]
        named += effect_between(cases).p_value <= FALSE_CLAIMS
        paired += effect_of(cases).p_value <= FALSE_CLAIMS
    assert named <= 2
    assert paired > 4 * named


def test_what_one_run_may_claim_against_another() -> None:
    """Twice as long is a claim; a tenth longer is none, however many processes said so."""
    places = [series([1.0, 1.02, 0.98], process=p) for p in range(20)]
    base = Series(np.concatenate([s.values for s in places]), np.concatenate([s.rounds for s in places]))
    twice, tenth = (effect_between([(base, Series(base.values * by, base.rounds))]) for by in (2.0, 1.1))
    assert twice.p_value <= FALSE_CLAIMS < tenth.p_value
    assert twice.ratio == pytest.approx(2)
    assert twice.processes == 20
    assert twice.low > 1.5
    few = effect_between([(series([1.0]), series([2.0]))])
    assert (few.high - few.low) > (twice.high - twice.low)
    with pytest.raises(ValueError, match="no cases"):
        effect_between([])
    with pytest.raises(ValueError, match="positive"):
        effect_between([(series([1.0]), series([0.0]))])


def test_only_rounds_that_both_have_are_pairs() -> None:
    base = series([1.0, 2.0, 4.0, 8.0])
    head = series([3.0 * 4, 3.0 * 8], first=2)
    assert effect_of([(base, head)]).ratio == pytest.approx(3)


def test_cases_weigh_alike_however_many_rounds_they_have() -> None:
    twice = (series([1.0] * 9), series([2.0] * 9))
    eight = (series([1.0]), series([8.0]))
    assert effect_of([twice, eight]).ratio == pytest.approx(4)
    assert effect_of([twice, eight]).inverse.ratio == pytest.approx(1 / 4)


def test_effects_within_the_least_one_are_never_claimed() -> None:
    values = [1.0] * 50
    effect = effect_of([(series(values), series([math.exp(LEAST_EFFECT) for _ in values]))])
    assert effect.p_value == 1


def test_what_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="no cases"):
        effect_of([])
    with pytest.raises(ValueError, match="positive"):
        effect_of([(series([0.0, 1.0]), series([1.0, 1.0]))])


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=9))
def test_the_estimate_is_the_median_of_walsh_averages(differences: list[float]) -> None:
    walsh = [(x + y) / 2 for x, y in combinations_with_replacement(differences, 2)]
    assert hodges_lehmann(np.array(differences)) == pytest.approx(float(np.median(walsh)))


@given(P_VALUES)
def test_holm_is_never_below_the_value_nor_out_of_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= own <= 1 for p, own in zip(p_values, adjusted, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert list(np.sort(adjusted)) == [adjusted[i] for i in order]
    assert min(adjusted) == min(1.0, len(p_values) * min(p_values))


def test_holm_of_known_values() -> None:
    # The example of R's p.adjust.
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert holm([0.03, 0.01]) == pytest.approx([0.03, 0.02])
    assert holm([]) == []
