"""Measures a revision, interleaved with the reference, for the history."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median

import numpy as np

from icebench.bench.gate.decisions.counter_kinds import tolerance_of
from icebench.bench.gate.decisions.history import Measured
from icebench.bench.gate.decisions.time_verdict import lower_bound, upper_bound
from icebench.bench.gate.revisions.pairs import Pairs, Side

LEAST_PAIRS = 6
"""The fewest that give an interval of 95 %."""
WIDEST = math.log(1.05)
"""Of that interval: a case that is known so well gets no more pairs."""
_LEVEL = 0.025


def measure(
    side: Side,
    reference: Side,
    warehouse: Path,
    names: Sequence[str],
    *,
    pairs: int,
    random: Random,
    progress: Callable[[str], object] = lambda _: None,
    at_once: int = 1,
) -> tuple[dict[str, Measured], dict[str, str]]:
    """The cases of a revision, those that it cannot run with their error, and the environment of its processes.

    The ratio is the median over pairs of processes whose runs take turns (`Pairs`): six, and then as many as bring the
    interval of the case within `WIDEST`, but at most `pairs`. One more process of the revision counts.

    Raises:
        CaseProcessFailed: A process failed as a whole.
    """
    pairing = Pairs(base=reference, head=side, warehouse=warehouse, random=random, progress=progress, at_once=at_once)
    logs: dict[str, list[float]] = {name: [] for name in names}
    for wanted in (*range(min(LEAST_PAIRS, pairs), pairs, at_once), pairs):
        if not (open_cases := [name for name in names if name not in pairing.cases and _is_wide(logs[name])]):
            break
        pairing.extend(logs, open_cases, wanted, "measuring")
    alive = [name for name in names if name not in pairing.cases]
    progress(f"counting {len(alive)} cases")
    arguments = ("icebench.bench.gate.cases.time_cases", str(warehouse), *alive, "--count")
    counted = json.loads(side.run(*arguments, seed=random.randrange(2**32)))
    found = {
        name: Measured(error=pairing.cases[name].note)
        if name in pairing.cases
        else Measured(
            ratio=round(math.exp(median(logs[name])), 5),
            samples=tuple(round(math.exp(log), 5) for log in logs[name]),
            counters=_exact(counted["cases"][name]["counters"]),
        )
        for name in names
    }
    return found, counted["environment"]


def _is_wide(logs: Sequence[float]) -> bool:
    values = np.asarray(logs, np.float64)
    return not upper_bound(values, _LEVEL) - lower_bound(values, _LEVEL) <= WIDEST


def _exact(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counters.items() if not tolerance_of(name)}
