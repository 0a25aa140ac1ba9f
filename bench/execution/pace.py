"""How often and how long cases run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often and how long.

    Args:
        repetitions: Recorded rounds, by measurement.
        warmups: Unrecorded runs of a case before them, at least, by measurement.
        warm_seconds: A case runs unrecorded until its processor time falls no more, but no longer than this.
        case_seconds: A case has fewer rounds where they would take longer than this in all, but at least one.
    """

    repetitions: Mapping[str, int]
    warmups: Mapping[str, int]
    warm_seconds: float
    case_seconds: float = math.inf

    def rounds(self, measurement: str, seconds: float) -> int:
        """How many recorded rounds for a case of which one takes so long."""
        most = self.repetitions[measurement]
        return most if math.isinf(self.case_seconds) else max(1, min(most, int(self.case_seconds / max(seconds, 1e-9))))
