"""The work of a plan: manifests pruned, decoded in parallel and filtered, deletes matched to data files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.codec.columns import BoolArray
from engine.expressions.bound import BOUND_TRUE, BoundPredicate
from engine.expressions.segments import TRUE
from engine.plan.delete_index import DeletesOfFiles, match_deletes
from engine.plan.filtering import MANIFESTS_SKIPPED_BY_SCHEMA_ID, EntryFilter, Filtered
from engine.plan.key_ranges import key_columns, uses_key
from engine.plan.manifests import LiveEntries, ManifestSource, live_entries, spec_of
from engine.plan.pruning import MetricStatistics, PartitionStatistics
from engine.plan.targets import concerning
from engine.runtime.counters import (
    DELETE_FILES_PLANNED,
    ENTRIES_DECODED,
    ENTRIES_SKIPPED_BY_INDEX,
    ENTRIES_SKIPPED_BY_METRICS,
    ENTRIES_SKIPPED_BY_PARTITION,
    ENTRIES_SKIPPED_BY_SCHEMA_ID,
    FILES_PLANNED,
    MANIFEST_BYTES_DECODED,
    MANIFESTS_DECODED,
    MANIFESTS_IN_LIST,
    MANIFESTS_SKIPPED_BY_SUMMARY,
    Counters,
)
from engine.spec.manifest import ManifestContent, ManifestFile
from engine.spec.metadata import TableMetadata
from engine.spec.partitioning import PartitionSpec
from engine.spec.schema import Schema
from engine.spec.snapshots import Snapshot

DELETE_FILES_UNUSED = "delete_files_unused"
"""Counter: live delete files that no planned data file needs, dangling ones and those of files that were skipped."""

_FEW = 4
"""Up to so many manifests are decoded in parts by several threads each; more keep the threads busy by themselves."""
_PLANNING = (
    MANIFESTS_IN_LIST,
    MANIFESTS_SKIPPED_BY_SUMMARY,
    MANIFESTS_SKIPPED_BY_SCHEMA_ID,
    MANIFESTS_DECODED,
    MANIFEST_BYTES_DECODED,
    ENTRIES_DECODED,
    ENTRIES_SKIPPED_BY_PARTITION,
    ENTRIES_SKIPPED_BY_SCHEMA_ID,
    ENTRIES_SKIPPED_BY_METRICS,
    ENTRIES_SKIPPED_BY_INDEX,
    FILES_PLANNED,
    DELETE_FILES_PLANNED,
    DELETE_FILES_UNUSED,
)
"""What every plan counts, if only zero."""


@dataclass(frozen=True, kw_only=True)
class PlannedEntries:
    """Data files by manifest, in order, the delete files that may concern them, and which belong to which."""

    data: tuple[Filtered, ...] = ()
    deletes: tuple[LiveEntries, ...] = ()
    matches: DeletesOfFiles


Admits = Callable[[LiveEntries], LiveEntries]
"""A further choice of data entries, such as those that certain snapshots added."""


class Planner:
    """Plans scans of one table.

    Counters say what had to be looked at, whether or not a cache had it already, so they are the same in every run.

    Args:
        metadata: The table.
        schema: The schema that the filter is bound to.
        bound: The filter.
        source: Where manifests come from.
        counters: What the work is counted in.
    """

    def __init__(
        self,
        *,
        metadata: TableMetadata,
        schema: Schema,
        bound: BoundPredicate,
        source: ManifestSource,
        counters: Counters,
    ) -> None:
        self._metadata = metadata
        self._schema = schema
        self._filter = EntryFilter(bound, schema, metadata, source.store, source.cache)
        self.source = source
        self._counters = counters
        for name in _PLANNING:
            counters.add(name, 0)

    def plan(self, snapshot: Snapshot | None) -> PlannedEntries:
        """The files of a snapshot that may hold matching rows, with their deletes."""
        manifests = () if snapshot is None else self.source.manifests_of(snapshot)
        kept = self.select(manifests)
        delete_manifests = [m for m in kept if m.content == ManifestContent.DELETES]
        few = len(delete_manifests) <= _FEW
        found = self.source.runner.map(lambda m: self._deletes_of(m, in_parts=few), delete_manifests)
        deletes = [each for each in found if len(each)]
        return self.plan_data([m for m in kept if m.content == ManifestContent.DATA], deletes)

    def select(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """The manifests that may list files with matching rows, or their deletes."""
        self._counters.add(MANIFESTS_IN_LIST, len(manifests))
        return self._filter.select(manifests, self._counters)

    def plan_data(
        self, manifests: Sequence[ManifestFile], deletes: Sequence[LiveEntries], admits: Admits | None = None
    ) -> PlannedEntries:
        """The files of these data manifests that may hold matching rows, and which of `deletes` concern them."""
        keys = key_columns(deletes)

        def data_of(manifest: ManifestFile) -> Filtered:
            spec = spec_of(manifest, self._metadata)
            columns = self.source.columns(manifest, self._filter.metrics(spec) | keys, in_parts=len(manifests) <= _FEW)
            self._count_decoded(manifest, columns.count)
            entries = live_entries(manifest, columns)
            return self._filter.apply(entries if admits is None else admits(entries), spec, self._counters)

        data = tuple(each for each in self.source.runner.map(data_of, manifests) if len(each.entries))
        own = [each.entries for each in data]
        concerned = concerning(own, deletes)
        matches = match_deletes(own, concerned, self._metadata)
        used = int(np.count_nonzero(np.bincount(matches.indices)))
        self._counters.add(FILES_PLANNED, sum(len(each.entries) for each in data))
        self._counters.add(DELETE_FILES_PLANNED, used)
        self._counters.add(DELETE_FILES_UNUSED, sum(len(each) for each in deletes) - used)
        return PlannedEntries(data=data, deletes=tuple(concerned), matches=matches)

    def _count_decoded(self, manifest: ManifestFile, entries: int) -> None:
        self._counters.add(MANIFESTS_DECODED)
        self._counters.add(MANIFEST_BYTES_DECODED, manifest.manifest_length)
        self._counters.add(ENTRIES_DECODED, entries)

    def _deletes_of(self, manifest: ManifestFile, *, in_parts: bool) -> LiveEntries:
        """The delete files of a manifest that may delete matching rows."""
        columns = self.source.columns(manifest, None, in_parts=in_parts)
        self._count_decoded(manifest, columns.count)
        entries = live_entries(manifest, columns)
        return self._relevant(entries, spec_of(manifest, self._metadata))

    def _relevant(self, entries: LiveEntries, spec: PartitionSpec) -> LiveEntries:
        """Deletes are skipped like data files: by partition, and equality deletes by the metrics of their keys.

        What an equality delete stores of other columns is not looked at: rows are deleted whatever they hold there.
        """
        evaluator = self._filter.evaluator
        if evaluator.bound == BOUND_TRUE:
            return entries
        columns, rows = entries.columns, entries.rows
        by_partition = evaluator.leaf_outcomes(PartitionStatistics(columns, spec, self._schema))
        by_metrics = evaluator.leaf_outcomes(MetricStatistics(columns, self._schema))
        outcomes = [
            np.where(uses_key(columns, test.leaf.column.field_id), part & metric, part)
            for test, part, metric in zip(evaluator.leaves, by_partition, by_metrics, strict=True)
        ]
        in_partition: BoolArray = (evaluator.combine(by_partition, columns.count)[rows] & TRUE) != 0
        kept = in_partition & ((evaluator.combine(outcomes, columns.count)[rows] & TRUE) != 0)
        self._counters.add(ENTRIES_SKIPPED_BY_PARTITION, int(len(rows) - in_partition.sum()))
        self._counters.add(ENTRIES_SKIPPED_BY_METRICS, int(in_partition.sum() - kept.sum()))
        return entries.take(np.flatnonzero(kept))
