from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from icebench.bench.gate.decisions.history import Measured
from icebench.bench.gate.revisions.measure import LEAST_PAIRS, measure
from icebench.bench.gate.revisions.pairs import Pairs

Noise = Callable[[Random], float]


class Scripted:
    """A side whose processes take a second, times noise that is given as a natural logarithm."""

    name = "scripted"

    def __init__(self, seconds: float, noise: Noise = lambda _: 0.0, error: str = "") -> None:
        self.asked: list[Sequence[str]] = []
        self._seconds = seconds
        self._noise = noise
        self._error = error
        self._random = Random(1)

    def run(self, module: str, *arguments: str, **_: object) -> str:
        names = [each for each in arguments[1:] if each in ("a", "steady")]
        if "--count" in arguments:
            counted = {"counters": {"files_planned": 3, "function_calls": 1000}}
            return json.dumps({"cases": dict.fromkeys(names, counted), "environment": {"python": "3.11"}})
        self.asked.append(names)
        noise = {name: self._noise(self._random) if name == "a" else 0.0 for name in names}
        return json.dumps(
            {
                name: {"error": self._error}
                if self._error and name == "a"
                else {"seconds": [self._seconds * math.exp(n)]}
                for name, n in noise.items()
            }
        )


def measured(head: Scripted, names: Sequence[str] = ("a",), pairs: int = 15) -> tuple[dict[str, Measured], Scripted]:
    reference = Scripted(2.0)
    both = Pairs(base=reference, head=head, warehouse=Path("tables"), random=Random(1), at_once=2)
    found, environment = measure(both, names, most=pairs)
    assert environment == {"python": "3.11"}
    assert reference.asked == head.asked
    return found, reference


def test_a_quiet_case_has_six_pairs_which_are_kept() -> None:
    found, _ = measured(Scripted(3.0))
    assert found == {"a": Measured(ratio=1.5, samples=(1.5,) * LEAST_PAIRS, counters={"files_planned": 3})}


def test_a_noisy_case_alone_has_more_pairs_until_it_is_known_within_a_twentieth() -> None:
    found, reference = measured(Scripted(3.0, lambda random: random.gauss(0, 0.04)), ["a", "steady"])
    assert LEAST_PAIRS < len(found["a"].samples) <= 15
    assert len(found["steady"].samples) == LEAST_PAIRS
    assert reference.asked[LEAST_PAIRS:] == [["a"]] * (len(found["a"].samples) - LEAST_PAIRS)


def test_there_are_no_more_pairs_than_are_allowed() -> None:
    found, _ = measured(Scripted(3.0, lambda random: random.gauss(0, 0.5)), pairs=9)
    assert len(found["a"].samples) == 9


@pytest.mark.parametrize("pairs", [1, 2])
def test_the_ratio_is_the_median_of_pairs(pairs: int) -> None:
    found, _ = measured(Scripted(3.0, lambda random: random.gauss(0, 0.5)), pairs=pairs)
    (case,) = found.values()
    assert case.ratio == pytest.approx(math.prod(case.samples) ** (1 / pairs), rel=1e-4)


def test_a_case_that_cannot_run_has_its_error_and_is_not_counted() -> None:
    found, _ = measured(Scripted(3.0, error="KeyError: 'x'"), ["a", "steady"])
    assert found["a"] == Measured(error="head: KeyError: 'x'")
    assert found["steady"].ratio == 1.5
