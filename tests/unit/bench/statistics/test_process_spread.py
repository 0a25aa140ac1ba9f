"""The spread of processes: as kept runs show it, and as it is assumed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from icebench.bench.statistics.claims import Series, assumptions, between_processes, effect_of
from icebench.bench.statistics.process_spread import (
    ASSUMED,
    FEWEST_RUNS,
    Observed,
    ProcessSpread,
    estimated,
    fitted,
)


def runs_of(deviation: float, *, runs: int, processes: int, seed: int = 1, rounds: int = 6) -> list[Observed]:
    """What runs show whose processes differ by that, and whose rounds by 5 %."""
    random, found = np.random.default_rng(seed), []
    for _ in range(runs):
        places = np.array([(p, i) for p in range(processes) for i in range(rounds)])
        favour = np.repeat(random.normal(0, deviation, processes), rounds)
        base = Series(np.exp(random.normal(0, 0.05, len(places))), places)
        own = between_processes([(base, Series(np.exp(favour + random.normal(0, 0.05, len(places))), places))])
        assert own is not None
        found.append(own)
    return found


@pytest.mark.parametrize("deviation", [0.02, 0.05, 0.15])
def test_the_spread_of_many_runs_is_what_their_processes_differ_by(deviation: float) -> None:
    observed = runs_of(deviation, runs=150, processes=6)
    spread = estimated(observed, 150)
    assert spread.deviation == pytest.approx(deviation, rel=0.25)
    assert spread.runs == 150


def test_few_runs_move_the_assumed_spread_a_little_and_fewer_not_at_all() -> None:
    some, many = (estimated(runs_of(0.3, runs=n, processes=3), n).deviation for n in (FEWEST_RUNS, 60))
    assert ASSUMED.deviation < some < many < 0.35
    assert estimated(runs_of(0.3, runs=FEWEST_RUNS - 1, processes=9), FEWEST_RUNS - 1) == ASSUMED
    assert estimated([], 9) == ASSUMED


def test_noise_of_rounds_is_no_spread_of_processes() -> None:
    variance, _ = fitted(runs_of(0.0, runs=200, processes=5, rounds=3))
    assert math.sqrt(max(0.0, variance)) < 0.015
    noisy = Observed(between=1.0, within=1.0, freedom=2)
    quiet = Observed(between=0.04**2, within=0.0, freedom=2)
    assert fitted([noisy, quiet])[0] == pytest.approx(0.04**2, rel=0.05)


def test_no_machine_is_so_calm_that_processes_do_not_differ() -> None:
    assert estimated(runs_of(0.0, runs=300, processes=5), 300).deviation == ASSUMED.deviation / 2


def test_one_process_shows_no_spread() -> None:
    one = Series(np.ones(3), np.array([(0, i) for i in range(3)]))
    assert between_processes([(one, one)]) is None


def test_a_claim_is_as_sure_as_processes_of_its_machine_are_alike() -> None:
    places = np.array([(0, i) for i in range(9)])
    values = np.exp(np.random.default_rng(1).normal(0, 0.01, 9))

    def p_value(spread: ProcessSpread) -> float:
        return effect_of([(Series(values, places, spread), Series(1.3 * values[::-1], places, spread))]).p_value

    alike, assumed, apart = map(p_value, (ProcessSpread(0.01, 5), ASSUMED, ProcessSpread(0.2, 5)))
    assert alike < assumed < apart


def test_the_notes_of_a_report_say_which_spread_was_used() -> None:
    assert "assumed" in str(ASSUMED)
    assert "12 %, estimated from 7 runs of this machine" in assumptions(ProcessSpread(0.12, 7))


def test_the_notes_of_a_report_say_that_equality_is_not_corrected() -> None:
    """The chance of any false claim is that of winners alone."""
    said = assumptions()
    assert "any false claim is at most 1%. That two are equal is no claim of this kind" in said
    assert "of each pair by itself, and of pairs at that limit about 2.5% are called equal" in said
