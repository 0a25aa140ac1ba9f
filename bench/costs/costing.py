"""What turns figures of filters into the cost of a layout: how often each is asked, where, and against what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icebench.bench.costs.object_store import PROFILES, SAME_REGION, Profile
from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError

FIRST = "the first"
"""As a baseline: whichever layout comes first."""


@dataclass(frozen=True, kw_only=True)
class Costing:
    """The keys ``[weights]``, ``baseline`` and ``profile`` of a definition.

    Args:
        profile: Where the client stands to the object store.
        weights: How often each filter is asked, in any unit: all alike where there are none, else one that is not named
            never.
        baseline: The layout that others are compared with.
    """

    profile: Profile = SAME_REGION
    weights: Mapping[str, float] = field(default_factory=dict)
    baseline: str = FIRST

    @classmethod
    def parse(cls, root: Definition) -> Costing:
        """What a definition says.

        Raises:
            ConfigError: A key, type or value is wrong, or no filter is ever asked.
        """
        weights = root.numbers("weights")
        if weights and not any(weights.values()):
            raise ConfigError("at least one must be above 0", path="weights")
        return cls(
            profile=PROFILES[root.text("profile", SAME_REGION.name, known=PROFILES)],
            weights=weights,
            baseline=root.text("baseline", FIRST),
        )

    def weight(self, case: str) -> float:
        """How often a filter is asked."""
        return self.weights.get(case, 0.0 if self.weights else 1.0)

    def mean(self, values: Mapping[str, float]) -> float | None:
        """The mean of figures by filter, each as often as it is asked; None where none is ever asked."""
        weights = {case: self.weight(case) for case in values}
        total = sum(weights.values())
        return sum(weights[case] * value for case, value in values.items()) / total if total else None
