"""What a plan looked at, and what it skipped by what: recorded while planning, for explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from icebench.engine.codec.array_views import BoolArray
from icebench.engine.expressions.literal_intervals import Outcomes
from icebench.engine.plan.manifests import LiveEntries
from icebench.engine.spec.manifest import ManifestFile


@dataclass(frozen=True, kw_only=True)
class SkippedManifests:
    """Manifests that one counter counts; `outcomes` has for each leaf of the filter those of each manifest."""

    manifests: Sequence[ManifestFile]
    counter: str
    outcomes: Sequence[Outcomes]


@dataclass(frozen=True, kw_only=True)
class SkippedEntries:
    """Entries of one manifest that one counter counts; `outcomes` has for each leaf those of each entry."""

    entries: LiveEntries
    counter: str
    outcomes: Sequence[Outcomes]


@dataclass(kw_only=True)
class Trace:
    """Everything that one plan looked at. Threads may add to it.

    Attributes:
        listed: All manifests.
        manifests: Those that were not decoded.
        entries: Live entries that the filter excludes.
        files: The planned data files, in the order of the plan.
        deletes: Delete files that the filter does not exclude, whether a planned file needs them or not.
    """

    listed: list[ManifestFile] = field(default_factory=list)
    manifests: list[SkippedManifests] = field(default_factory=list)
    entries: list[SkippedEntries] = field(default_factory=list)
    files: list[LiveEntries] = field(default_factory=list)
    deletes: list[LiveEntries] = field(default_factory=list)

    def skip_manifests(
        self, manifests: Sequence[ManifestFile], skipped: BoolArray, counter: str, outcomes: Sequence[Outcomes]
    ) -> None:
        """Record the manifests that are `skipped`; `outcomes` are those of all."""
        places = np.flatnonzero(skipped)
        if len(places):
            chosen = [manifests[place] for place in places.tolist()]
            own = [each[places] for each in outcomes]
            self.manifests.append(SkippedManifests(manifests=chosen, counter=counter, outcomes=own))

    def skip_entries(
        self, entries: LiveEntries, skipped: BoolArray, counter: str, outcomes: Sequence[Outcomes]
    ) -> None:
        """Record the entries that are `skipped`; `outcomes` are those of all `entries`."""
        places = np.flatnonzero(skipped)
        if len(places):
            own = [each[places] for each in outcomes]
            self.entries.append(SkippedEntries(entries=entries.take(places), counter=counter, outcomes=own))
