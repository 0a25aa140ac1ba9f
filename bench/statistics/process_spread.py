"""How far the ratio of two competitors differs from one process to the next, on one machine.

Memory layout, hash seeds and compiled code favour one competitor for as long as a process lives. How much is a figure
of the machine and its libraries: it is estimated from runs that are kept, each of several processes, and shrunk towards
`ASSUMED`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST_RUNS = 3
"""With fewer kept runs of several processes the spread is the assumed one."""

_ASSUMED_COUNTS_FOR = 8.0
"""Degrees of freedom that the assumed spread counts for, beside what kept runs have."""


_LEAST_SHARE = 0.5
"""Of the assumed spread, that an estimate has at least: where rounds have heavy tails, they explain more than they
make, and a spread of nearly nothing would claim what the next machine does not confirm."""


@dataclass(frozen=True)
class ProcessSpread:
    """A standard deviation of ln(head / base) between processes.

    Args:
        deviation: Of the ratio, once the noise of its rounds is taken away.
        runs: How many kept runs it is estimated from; 0 where it is assumed.
    """

    deviation: float
    runs: int = 0

    def __str__(self) -> str:
        source = f"estimated from {self.runs} runs of this machine" if self.runs else "assumed"
        return f"{100 * self.deviation:.2g} %, {source}"


ASSUMED = ProcessSpread(0.04)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What one run shows of a ratio that all its processes measured.

    Args:
        between: The variance of the logarithm between processes.
        within: The variance that rounds give it in one process.
        freedom: The degrees of freedom of `between`: processes less one.
    """

    between: float
    within: float
    freedom: float


def fitted(observed: Sequence[Observed], beside: ProcessSpread = ASSUMED) -> tuple[float, float]:
    """The variance between processes that several ratios show, and the degrees of freedom of that.

    Each counts by the information that it has of a variance of about that of `beside`: one whose rounds are noisier
    than that says little. The variance is negative where processes differ by less than their rounds explain.

    Args:
        observed: At least one.
        beside: About what is expected.
    """
    expected = beside.deviation**2
    weights = [each.freedom * (expected / (expected + each.within)) ** 2 for each in observed]
    excess = sum(w * (each.between - each.within) for w, each in zip(weights, observed, strict=True))
    return excess / sum(weights), sum(weights)


def estimated(observed: Sequence[Observed], runs: int) -> ProcessSpread:
    """The spread that kept runs show, shrunk towards `ASSUMED` and at least half of it; that itself where there are
    fewer than `FEWEST_RUNS`.

    Args:
        observed: Ratios of the runs.
        runs: How many runs they are of.
    """
    if runs < FEWEST_RUNS or not observed:
        return ASSUMED
    variance, freedom = fitted(observed)
    shrunk = _ASSUMED_COUNTS_FOR * ASSUMED.deviation**2 + freedom * max(variance, 0.0)
    deviation = math.sqrt(shrunk / (_ASSUMED_COUNTS_FOR + freedom))
    return ProcessSpread(max(deviation, _LEAST_SHARE * ASSUMED.deviation), runs)
