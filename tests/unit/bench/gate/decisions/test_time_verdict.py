from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from icebench.bench.gate.decisions.outcome import CaseOutcome, Outcome, as_json, as_markdown
from icebench.bench.gate.decisions.time_verdict import (
    CONFIRMING,
    LOOKS,
    Stand,
    confirm,
    lower_bound,
    overall,
    ratio_of,
    screen,
    upper_bound,
)


def noise(random: np.random.Generator, size: int, sd: float = 0.05) -> NDArray[np.float64]:
    """Student's t with 3 degrees of freedom and, in one pair of twenty, a stall on either side."""
    stalls = random.exponential(0.3, size) * random.choice([-1, 1], size) * (random.random(size) < 0.05)
    return random.standard_t(3, size) * sd / math.sqrt(3) + stalls


def decide(random: np.random.Generator, effects: list[float], sd: float = 0.05) -> Stand:
    """One decision over cases with these effects."""
    stands: dict[str, Stand] = {}
    for number, effect in enumerate(effects):
        logs = effect + noise(random, LOOKS[-1], sd)
        looks = (screen(list(logs[:pairs])) for pairs in LOOKS)
        stands[str(number)] = next(stand for stand in looks if stand is not Stand.UNDECIDED)
    suspects = [name for name, stand in stands.items() if stand is Stand.SUSPECTED]
    for name in suspects:
        fresh = list(effects[int(name)] + noise(random, CONFIRMING[-1], sd))
        looks = (confirm(fresh[:pairs], len(suspects)) for pairs in CONFIRMING)
        stands[name] = next(stand for stand in looks if stand is not Stand.UNDECIDED)
    return overall(stands)


def test_no_false_alarm_in_a_thousand_simulated_decisions_over_ten_cases() -> None:
    random = np.random.default_rng(1)
    found = [decide(random, [0.0] * 10) for _ in range(1_000)]
    assert found.count(Stand.REGRESSED) == 0
    assert found.count(Stand.PASS) >= 850


def test_a_noisy_machine_is_inconclusive_and_never_a_regression() -> None:
    random = np.random.default_rng(2)
    found = [decide(random, [0.0] * 10, sd=0.4) for _ in range(300)]
    assert found.count(Stand.REGRESSED) == 0
    assert found.count(Stand.INCONCLUSIVE) >= 200


@pytest.mark.parametrize(
    ("slowdown", "least", "most"), [(1.05, 0.0, 0.7), (1.10, 0.9, 1.0), (1.2, 0.95, 1.0), (1.5, 0.99, 1.0)]
)
def test_slowdowns_are_found_with_this_power(slowdown: float, least: float, most: float) -> None:
    random = np.random.default_rng(3)
    found = [decide(random, [0.0] * 5 + [math.log(slowdown)], sd=0.03) for _ in range(300)]
    assert least <= found.count(Stand.REGRESSED) / 300 <= most


def test_a_gain_passes() -> None:
    assert decide(np.random.default_rng(4), [math.log(0.5)] * 3) is Stand.PASS


@pytest.mark.parametrize("count", [6, 8, 15, 20])
def test_bounds_are_those_of_the_signed_rank_test(count: int) -> None:
    random = np.random.default_rng(count)
    for level in (0.05, 0.01):
        values = random.normal(0.02, 0.05, count)
        low = lower_bound(values, level)
        if math.isfinite(low):
            below, above = (stats.wilcoxon(values - low - step, alternative="greater") for step in (-1e-9, 1e-9))
            assert below.pvalue <= level < above.pvalue
        assert upper_bound(values, level) == -lower_bound(-values, level)


def test_too_few_pairs_bound_nothing() -> None:
    assert lower_bound(np.full(3, 0.5), 0.05) == -math.inf
    assert screen([0.5] * 3) is Stand.UNDECIDED


def test_levels_are_shared_by_all_suspects() -> None:
    logs = [0.11 + 0.001 * n for n in range(15)] + [-0.001 * n for n in range(40, 45)]
    assert confirm(logs, 1) is Stand.REGRESSED
    assert confirm(logs, 100) is not Stand.REGRESSED


@pytest.mark.parametrize("ratio", [1.04, 1.08, 1.099])
def test_what_is_known_to_be_less_than_ten_percent_slower_passes_in_both_steps(ratio: float) -> None:
    assert screen([math.log(ratio)] * LOOKS[0]) is Stand.PASS
    assert confirm([math.log(ratio)] * CONFIRMING[0], 1) is Stand.PASS


def test_slower_by_ten_percent_is_a_regression() -> None:
    logs = [math.log(1.101)] * LOOKS[1]
    assert screen(logs) is Stand.SUSPECTED
    assert confirm(logs * 2, 1) is Stand.REGRESSED


@pytest.mark.parametrize("sd", [0.005, 0.015, 0.03])
def test_noise_does_not_turn_a_slowdown_that_passes_into_a_regression(sd: float) -> None:
    random = np.random.default_rng(5)
    found = [decide(random, [math.log(1.07)], sd) for _ in range(200)]
    assert found.count(Stand.REGRESSED) / 200 <= 0.05


@pytest.mark.parametrize(
    ("stands", "expected"),
    [
        ([], Stand.INCOMPARABLE),
        ([Stand.PASS, Stand.PASS], Stand.PASS),
        ([Stand.PASS, Stand.INCONCLUSIVE], Stand.INCONCLUSIVE),
        ([Stand.INCONCLUSIVE, Stand.INCOMPARABLE], Stand.INCOMPARABLE),
        ([Stand.INCOMPARABLE, Stand.FAILED, Stand.PASS], Stand.FAILED),
        ([Stand.FAILED, Stand.REGRESSED], Stand.REGRESSED),
    ],
)
def test_the_worst_case_decides(stands: list[Stand], expected: Stand) -> None:
    assert overall({str(n): stand for n, stand in enumerate(stands)}) is expected


def test_the_ratio_is_what_the_pairs_show() -> None:
    ratio = ratio_of([math.log(1.3)] * 15)
    assert (ratio.estimate, ratio.low, ratio.high, ratio.pairs) == (*[pytest.approx(1.3)] * 3, 15)


@pytest.mark.parametrize("pairs", [1, 2, 4])
def test_few_pairs_have_no_bounds(pairs: int) -> None:
    ratio = ratio_of([0.01] * pairs)
    assert (ratio.low, ratio.high, ratio.pairs) == (None, None, pairs)
    outcome = Outcome(base="b", head="h", cases={"a": CaseOutcome(stand=Stand.INCONCLUSIVE, ratio=ratio)})
    assert outcome.rows() == [("a", "inconclusive", "1.010", "", str(pairs))]
    assert "Infinity" not in as_json(outcome)
    assert max(map(len, as_markdown(outcome).split("|"))) < 80
