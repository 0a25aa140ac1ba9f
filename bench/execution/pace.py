"""How often and how long cases run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

FEWEST_REPETITIONS = 6
"""Fewer samples than this cannot give an interval of 95% of the median."""
BUILD = "build"
"""The measurement of building tables, which takes seconds where others take milliseconds."""
FEWEST_BUILDS = 2
"""Of one build nobody knows how far it is off."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often and how long.

    Args:
        repetitions: Recorded rounds, by measurement.
        warmups: Unrecorded runs of a case before them, at least, by measurement.
        warm_seconds: A case runs unrecorded until its processor time falls no more, but no longer than this.
        case_seconds: A case has fewer rounds where they would take longer than this in all, but at least one.
        build_seconds: The same of building a table, which has at least two.
    """

    repetitions: Mapping[str, int]
    warmups: Mapping[str, int]
    warm_seconds: float
    case_seconds: float = math.inf
    build_seconds: float = math.inf

    def rounds(self, measurement: str, seconds: float) -> int:
        """How many recorded rounds for a case of which one takes so long."""
        most, least, budget = self.repetitions[measurement], 1, self.case_seconds
        if measurement == BUILD:
            least, budget = min(most, FEWEST_BUILDS), self.build_seconds
        return most if math.isinf(budget) else max(least, min(most, int(budget / max(seconds, 1e-9))))

    def warming(self, measurement: str) -> float:
        """`warm_seconds` of a measurement: one unrecorded build is enough, as its first run is what differs."""
        return 0.0 if measurement == BUILD else self.warm_seconds
