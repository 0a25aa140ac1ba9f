"""Measures a revision, interleaved with the reference, for the history."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from icebench.bench.gate.decisions.counter_kinds import tolerance_of
from icebench.bench.gate.decisions.history import Measured
from icebench.bench.gate.revisions.pairs import Side


def measure(
    side: Side,
    reference: Side,
    warehouse: Path,
    names: Sequence[str],
    *,
    pairs: int,
    random: Random,
    progress: Callable[[str], object] = lambda _: None,
) -> tuple[dict[str, Measured], dict[str, str]]:
    """The cases of a revision, those that it cannot run with their error, and the environment of its processes.

    The ratio is the median over `pairs` pairs of processes; the side that starts a pair is drawn at random. The last
    process of the revision counts, too.

    Raises:
        CaseProcessFailed: A process failed as a whole.
    """
    logs: dict[str, list[float]] = {name: [] for name in names}
    errors: dict[str, str] = {}
    counted: dict[str, Any] = {}
    environment: dict[str, str] = {}
    for number in range(1, pairs + 1):
        alive = [name for name in names if name not in errors]
        progress(f"pair {number} of {pairs}, {len(alive)} cases")
        arguments = ("icebench.bench.gate.cases.time_cases", str(warehouse), *alive)
        seed = random.randrange(2**32)
        times: dict[bool, Mapping[str, Any]] = {}
        for is_head in random.sample([False, True], 2):
            if is_head and number == pairs:
                last = json.loads(side.run(*arguments, "--count", seed=seed))
                times[True] = counted = last["cases"]
                environment = last["environment"]
            else:
                times[is_head] = json.loads((side if is_head else reference).run(*arguments, seed=seed))
        for name in alive:
            if error := times[True][name].get("error"):
                errors[name] = error
            else:
                head, base = (median(times[is_head][name]["seconds"]) for is_head in (True, False))
                logs[name].append(math.log(head / base))
    found = {
        name: Measured(error=errors[name])
        if name in errors
        else Measured(
            ratio=round(math.exp(median(logs[name])), 5),
            samples=tuple(round(math.exp(log), 5) for log in logs[name]),
            counters=_exact(counted[name]["counters"]),
        )
        for name in names
    }
    return found, environment


def _exact(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counters.items() if not tolerance_of(name)}
