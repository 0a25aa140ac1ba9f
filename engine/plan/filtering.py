"""Which entries of a manifest may hold matching rows, and what is left of the filter for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.codec.columns import Int64Array
from engine.expressions.bound import BOUND_TRUE, BoundPredicate
from engine.expressions.bounds import Evaluator
from engine.expressions.segments import TRUE, Outcomes
from engine.plan.manifests import LiveEntries
from engine.plan.pruning import MetricStatistics, PartitionStatistics, told_by_partition
from engine.runtime.counters import ENTRIES_SKIPPED_BY_METRICS, ENTRIES_SKIPPED_BY_PARTITION, Counters
from engine.spec.partitioning import PartitionSpec
from engine.spec.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """Entries that may hold matching rows. `residual` is for each an index into `residuals`."""

    entries: LiveEntries
    residual: Int64Array
    residuals: tuple[BoundPredicate, ...]


class EntryFilter:
    """A bound filter for the entries of data manifests."""

    def __init__(self, bound: BoundPredicate, schema: Schema) -> None:
        self._schema = schema
        self.evaluator = Evaluator(bound)

    def metrics(self, spec: PartitionSpec) -> frozenset[int]:
        """The columns whose metrics can tell more than the partition tuples of this spec."""
        return self.evaluator.bound.field_ids - told_by_partition(spec)

    def apply(self, entries: LiveEntries, spec: PartitionSpec, counters: Counters) -> Filtered:
        """Drop entries by partition, then by metrics; count what each drops."""
        if self.evaluator.bound == BOUND_TRUE:
            return Filtered(entries=entries, residual=np.zeros(len(entries), np.int64), residuals=(BOUND_TRUE,))
        columns, rows = entries.columns, entries.rows
        by_partition = self.evaluator.leaf_outcomes(PartitionStatistics(columns, spec, self._schema))
        candidates = self._may_match(by_partition, columns.count)[rows]
        counters.add(ENTRIES_SKIPPED_BY_PARTITION, int(len(rows) - candidates.sum()))
        told = told_by_partition(spec)
        by_metrics = MetricStatistics(columns, self._schema)
        known = self.evaluator.leaf_outcomes(by_metrics)
        outcomes = [
            part if test.leaf.column.field_id in told else part & metric
            for test, part, metric in zip(self.evaluator.leaves, by_partition, known, strict=True)
        ]
        kept = candidates & self._may_match(outcomes, columns.count)[rows] & (columns.record_count.values[rows] != 0)
        counters.add(ENTRIES_SKIPPED_BY_METRICS, int(candidates.sum() - kept.sum()))
        chosen = np.flatnonzero(kept)
        surviving = entries.take(chosen)
        residual, residuals = self.evaluator.residuals([o[surviving.rows] for o in outcomes], len(chosen))
        return Filtered(entries=surviving, residual=residual, residuals=tuple(residuals))

    def _may_match(self, leaf_outcomes: Sequence[Outcomes], count: int) -> Outcomes:
        return (self.evaluator.combine(leaf_outcomes, count) & TRUE).astype(np.bool_)
