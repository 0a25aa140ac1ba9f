"""Where a series of ratios changed its level, found by ruptures: PELT with absolute deviations.

Of the segmentations that cost least, the one with the fewest changes that a penalty of `PENALTY` ln(n) noises each
allows. The noise is that of neighbours, which steps do not inflate; absolute deviations, as a stalled measurement is no
change. docs/design/gate.md has how often steps are found and false alarms given, and what Apache Otava did.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import ruptures
from scipy.stats import t

from icebench.bench.statistics.claims import Floats

PENALTY = 3.0
LEAST = math.log(1.03)
"""Smaller changes are not reported."""
_SHORTEST = 2
_FEWEST = 6
_LEAST_NOISE = 1e-4


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """A change of level.

    Args:
        index: Of the first value with the new level.
        before: The median ratio of the segment before.
        now: The median ratio of the segment that starts here.
        confidence: That the levels differ: Student's t of both segments with the noise of all segments, corrected for
            as many places as a change could be at.
    """

    index: int
    before: float
    now: float
    confidence: float


def change_points(logs: Sequence[float]) -> list[ChangePoint]:
    """The changes of a series of natural logarithms of ratios, in order; none in a series of fewer than six."""
    values = np.asarray(logs, np.float64)
    if values.size < _FEWEST:
        return []
    noise = max(1.4826 * float(np.median(np.abs(np.diff(values)))) / math.sqrt(2), _LEAST_NOISE)
    search = ruptures.Pelt(model="l1", min_size=_SHORTEST, jump=1).fit(values / noise)
    ends = [0, *_joined(values, search.predict(pen=PENALTY * math.log(values.size)))]
    parts = [values[start:stop] for start, stop in pairwise(ends)]
    found = []
    for index, (left, right) in zip(ends[1:], pairwise(parts), strict=False):
        before, now = (math.exp(float(np.median(part))) for part in (left, right))
        found.append(ChangePoint(index=index, before=before, now=now, confidence=_confidence(parts, left, right)))
    return found


def _joined(values: Floats, ends: list[int]) -> list[int]:
    """The ends of the segments, those joined whose medians are too near each other."""
    while len(ends) > 1:
        levels = [float(np.median(values[start:stop])) for start, stop in pairwise([0, *ends])]
        steps = [abs(now - before) for before, now in pairwise(levels)]
        least = int(np.argmin(steps))
        if steps[least] >= LEAST:
            break
        ends = ends[:least] + ends[least + 1 :]
    return ends


def _confidence(parts: Sequence[Floats], left: Floats, right: Floats) -> float:
    count = sum(part.size for part in parts)
    freedom = count - len(parts)
    spread = math.sqrt(sum(float(np.sum((part - part.mean()) ** 2)) for part in parts) / freedom)
    error = max(spread, _LEAST_NOISE) * math.sqrt(1 / left.size + 1 / right.size)
    chance = 2 * float(t.sf(abs(float(right.mean() - left.mean())) / error, freedom))
    return 1 - min(1.0, count * chance)
