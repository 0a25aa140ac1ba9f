"""Filters the entries of a manifest: which may hold matching rows, and the residual filter of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import BoolArray, Int64Array, ManifestColumns
from icebench.engine.codec.taking import take
from icebench.engine.expressions.bound import BOUND_TRUE, BoundPredicate
from icebench.engine.expressions.bounds import Evaluator
from icebench.engine.expressions.literal_intervals import TRUE, Outcomes
from icebench.engine.file_indexes.lookup import FileIndexes
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.plan.manifests import LiveEntries, concatenated, spec_of
from icebench.engine.plan.pruning import (
    MetricStatistics,
    PartitionStatistics,
    SummaryStatistics,
    columns_decided_by_partition,
)
from icebench.engine.plan.written_schemas import WrittenSchemas
from icebench.engine.runtime.counters import (
    ENTRIES_SKIPPED_BY_INDEX,
    ENTRIES_SKIPPED_BY_METRICS,
    ENTRIES_SKIPPED_BY_PARTITION,
    ENTRIES_SKIPPED_BY_SCHEMA_ID,
    MANIFESTS_SKIPPED_BY_SUMMARY,
    Counters,
)
from icebench.engine.spec.manifest import ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.store import Store

if TYPE_CHECKING:
    from icebench.engine.plan.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """Entries that may hold matching rows. `residual` has an index into `residuals` for each."""

    entries: LiveEntries
    residual: Int64Array
    residuals: tuple[BoundPredicate, ...]


class EntryFilter:
    """A bound filter, applied to manifests and to entries of data manifests.

    Args:
        bound: The filter.
        schema: What it is bound to.
        metadata: The table.
        store: Where secondary indexes are.
        cache: Keeps secondary indexes.
        trace: Records what is skipped.
    """

    def __init__(
        self,
        bound: BoundPredicate,
        schema: Schema,
        metadata: TableMetadata,
        store: Store,
        cache: ManifestCache | None = None,
        *,
        trace: Trace | None = None,
    ) -> None:
        self._trace = trace
        self._schema = schema
        self._metadata = metadata
        self._written = WrittenSchemas(metadata, schema, bound.leaf_ids)
        self.evaluator = Evaluator(bound)
        self._indexes = FileIndexes(metadata, schema, self.evaluator.leaves, store, cache)

    def metrics(self, spec: PartitionSpec) -> frozenset[int]:
        """The columns whose metrics say more than the partition tuples of this spec."""
        return self.evaluator.bound.leaf_ids - columns_decided_by_partition(spec)

    def select(self, manifests: Sequence[ManifestFile], counters: Counters) -> list[ManifestFile]:
        """Select the manifests that may list matching files, by counts and partition summaries."""
        live = [m for m in manifests if m.added_files_count != 0 or m.existing_files_count != 0]
        if self._trace is not None:
            dead = np.array([m.added_files_count == 0 and m.existing_files_count == 0 for m in manifests], np.bool_)
            self._trace.skip_manifests(manifests, dead, MANIFESTS_SKIPPED_BY_SUMMARY, [])
        kept: set[int] = set()
        for spec_id in {m.partition_spec_id for m in live}:
            group = [m for m in live if m.partition_spec_id == spec_id]
            known = self.evaluator.leaf_outcomes(
                SummaryStatistics(group, spec_of(group[0], self._metadata), self._schema)
            )
            may_match = self._may_match(known, len(group))
            kept.update(id(m) for m, keep in zip(group, may_match.tolist(), strict=True) if keep)
            if self._trace is not None:
                self._trace.skip_manifests(group, ~may_match, MANIFESTS_SKIPPED_BY_SUMMARY, known)
        counters.add(MANIFESTS_SKIPPED_BY_SUMMARY, len(manifests) - len(kept))
        return [m for m in live if id(m) in kept]

    def _restrict_by_age(
        self, outcomes: Sequence[Outcomes], snapshot_ids: Int64Array, columns: ManifestColumns
    ) -> list[Outcomes]:
        narrowed = []
        for test, known in zip(self.evaluator.leaves, outcomes, strict=True):
            evidence = self._written.evidence(test.leaf.column.field_id, snapshot_ids, columns)
            sets = [each.outcomes(test) for each in evidence]
            narrowed.append(reduce(np.bitwise_and, sets, known))
        return narrowed

    def apply(self, entries: LiveEntries, spec: PartitionSpec, counters: Counters) -> Filtered:
        """Drop entries by partition, by the age of columns, by metrics, then by indexes; count what each drops."""
        if self.evaluator.bound == BOUND_TRUE:
            return Filtered(entries=entries, residual=np.zeros(len(entries), np.int64), residuals=(BOUND_TRUE,))
        columns, rows, count = entries.columns, entries.rows, entries.columns.count
        known = self.evaluator.leaf_outcomes(PartitionStatistics(columns, spec, self._schema))
        in_partition = self._may_match(known, count)[rows]
        self._skip(entries, ~in_partition, ENTRIES_SKIPPED_BY_PARTITION, known)
        candidates = in_partition
        if self._written.has_newer_columns:
            ids = np.full(count, -1, np.int64)
            ids[rows] = entries.snapshot_id
            known = self._restrict_by_age(known, ids, columns)
            candidates = in_partition & self._may_match(known, count)[rows]
            self._skip(entries, in_partition & ~candidates, ENTRIES_SKIPPED_BY_SCHEMA_ID, known)
        known = self._with_metrics(known, columns, spec)
        kept = candidates & self._may_match(known, count)[rows]
        self._skip(entries, candidates & ~kept, ENTRIES_SKIPPED_BY_METRICS, known)
        counters.add(ENTRIES_SKIPPED_BY_PARTITION, int(len(rows) - in_partition.sum()))
        counters.add(ENTRIES_SKIPPED_BY_SCHEMA_ID, int(in_partition.sum() - candidates.sum()))
        counters.add(ENTRIES_SKIPPED_BY_METRICS, int(candidates.sum() - kept.sum()))
        surviving = entries.take(np.flatnonzero(kept))
        known = [o[surviving.rows] for o in known]
        if not self._indexes.is_empty and len(surviving):
            paths = take(columns["file_path"], surviving.rows)
            sizes = columns.numbers("file_size_in_bytes")[surviving.rows]
            known = self._indexes.restrict(known, paths, sizes, counters)
            may_match = self._may_match(known, len(surviving))
            if self._trace is not None:
                self._trace.skip_entries(surviving, ~may_match, ENTRIES_SKIPPED_BY_INDEX, known)
            held = np.flatnonzero(may_match)
            counters.add(ENTRIES_SKIPPED_BY_INDEX, len(surviving) - len(held))
            surviving, known = surviving.take(held), [o[held] for o in known]
        residual, residuals = self.evaluator.residuals(known, len(surviving))
        return Filtered(entries=surviving, residual=residual, residuals=tuple(residuals))

    def apply_together(self, entries: Sequence[LiveEntries], spec: PartitionSpec, counters: Counters) -> list[Filtered]:
        """As `apply` for the entries of each manifest, which is faster where they are few. Nothing is traced."""
        if self.evaluator.bound == BOUND_TRUE:
            return [self.apply(each, spec, counters) for each in entries]
        found: dict[int, Filtered] = {}
        alike: dict[tuple[pa.Schema, int | None], list[int]] = {}
        for place, each in enumerate(entries):
            alike.setdefault((each.columns.batch.schema, each.columns.highest_field_id), []).append(place)
        for places in alike.values():
            own = [entries[place] for place in places]
            found |= zip(places, _parts(self.apply(concatenated(own), spec, counters), own), strict=True)
        return [found[place] for place in range(len(entries))]

    def _skip(self, entries: LiveEntries, skipped: BoolArray, counter: str, outcomes: Sequence[Outcomes]) -> None:
        """Trace what is skipped; `outcomes` are those of all entries of the manifest."""
        if self._trace is not None:
            self._trace.skip_entries(entries, skipped, counter, [each[entries.rows] for each in outcomes])

    def _with_metrics(
        self, outcomes: Sequence[Outcomes], columns: ManifestColumns, spec: PartitionSpec
    ) -> list[Outcomes]:
        decided = columns_decided_by_partition(spec)
        by_metrics = self.evaluator.leaf_outcomes(MetricStatistics(columns, self._schema))
        return [
            known if test.leaf.column.field_id in decided else known & metric
            for test, known, metric in zip(self.evaluator.leaves, outcomes, by_metrics, strict=True)
        ]

    def _may_match(self, leaf_outcomes: Sequence[Outcomes], count: int) -> BoolArray:
        return (self.evaluator.combine(leaf_outcomes, count) & TRUE) != 0


def _parts(found: Filtered, entries: Sequence[LiveEntries]) -> Iterator[Filtered]:
    """What was found among concatenated entries, as found in each of them."""
    firsts = list(accumulate((each.columns.count for each in entries), initial=0))
    ends = np.searchsorted(found.entries.rows, firsts).tolist()
    for each, first, begin, end in zip(entries, firsts, ends, ends[1:], strict=False):
        kept = each
        if end - begin < len(each):
            kept = each.take(np.searchsorted(each.rows, found.entries.rows[begin:end] - first))
        yield Filtered(entries=kept, residual=found.residual[begin:end], residuals=found.residuals)
