"""Counts commits: for how many of them files and manifests have been in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icebench.engine.codec.array_views import Int64Array
from icebench.engine.plan.manifests import LiveEntries
from icebench.engine.spec.manifest import ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot


@dataclass(frozen=True)
class Commits:
    """The commits up to a snapshot, by which ages are counted: 1 for what came with the snapshot itself.

    From version 2 on sequence numbers count commits, those of expired snapshots too. Version 1 has none, so the
    snapshots that are left are counted, and what came before them is taken to have come just before the oldest.

    Args:
        newest: The snapshot's sequence number; 0 in version 1.
        ages: In version 1, of what came with each snapshot, by its id; empty otherwise.
    """

    newest: int
    ages: Mapping[int, int]

    @classmethod
    def before(cls, snapshot: Snapshot | None, metadata: TableMetadata) -> Commits:
        """Those of a snapshot and its ancestors."""
        if snapshot is None:
            return cls(0, {})
        if snapshot.sequence_number:
            return cls(snapshot.sequence_number, {})
        return cls(0, {each: n for n, each in enumerate(metadata.ancestors(snapshot.snapshot_id), 1)})

    def ages_of(self, entries: Sequence[LiveEntries]) -> Int64Array:
        """Of the files of entries, in their order."""
        found = [
            self._ages(each.snapshot_id) if self.ages else self.newest + 1 - each.file_sequence_number
            for each in entries
        ]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def ages_of_manifests(self, manifests: Sequence[ManifestFile]) -> Int64Array:
        """Of manifests, since they were written."""
        if self.ages:
            return self._ages(np.array([each.added_snapshot_id for each in manifests], np.int64))
        return np.array([self.newest + 1 - each.sequence_number for each in manifests], np.int64)

    def _ages(self, snapshot_ids: Int64Array) -> Int64Array:
        oldest = len(self.ages) + 1
        return np.array([self.ages.get(each, oldest) for each in snapshot_ids.tolist()], np.int64)


def mean(values: Int64Array) -> float:
    """0 if there are none."""
    return float(values.mean()) if len(values) else 0.0
