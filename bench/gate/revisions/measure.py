"""Measures a revision, interleaved with the reference, for the history."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from icebench.bench.gate.decisions.counter_kinds import tolerance_of
from icebench.bench.gate.decisions.history import Measured
from icebench.bench.gate.decisions.time_verdict import lower_bound, upper_bound
from icebench.bench.gate.revisions.pairs import Pairs

LEAST_PAIRS = 6
"""The fewest that give an interval of 95 %."""
WIDEST = math.log(1.05)
"""Of that interval: a case that is known so well gets no more pairs."""
_LEVEL = 0.025


def measure(pairs: Pairs, names: Sequence[str], *, most: int) -> tuple[dict[str, Measured], dict[str, str]]:
    """The cases of a revision, those that it cannot run with their error, and the environment of its processes.

    The ratio is the median over pairs of processes: six, and then as many as bring the interval of the case within
    `WIDEST`, but at most `most`. One more process of the revision counts.

    Args:
        pairs: Of the revision, the head, and the reference, the base.
        names: The cases.
        most: Pairs of processes.

    Raises:
        CaseProcessFailed: A process failed as a whole.
    """
    logs: dict[str, list[float]] = {name: [] for name in names}
    for wanted in (*range(min(LEAST_PAIRS, most), most, pairs.at_once), most):
        if not (open_cases := [name for name in names if name not in pairs.cases and _is_wide(logs[name])]):
            break
        pairs.extend(logs, open_cases, wanted, "measuring")
    alive = [name for name in names if name not in pairs.cases]
    pairs.progress(f"counting {len(alive)} cases")
    arguments = ("icebench.bench.gate.cases.time_cases", str(pairs.warehouse), *alive, "--count")
    counted = json.loads(pairs.head.run(*arguments, seed=pairs.random.randrange(2**32)))
    found = {
        name: Measured(error=pairs.cases[name].note)
        if name in pairs.cases
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
