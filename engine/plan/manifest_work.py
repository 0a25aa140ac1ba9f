"""The work of a plan on one manifest: decode it, apply inheritance, filter its entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from icebench.engine.codec.array_views import BoolArray, ManifestColumns
from icebench.engine.expressions.bound import BOUND_TRUE, BoundPredicate
from icebench.engine.expressions.literal_intervals import TRUE
from icebench.engine.plan.filtering import EntryFilter, Filtered
from icebench.engine.plan.key_ranges import uses_key
from icebench.engine.plan.manifests import LiveEntries, ManifestSource, live_entries_together, spec_of
from icebench.engine.plan.pruning import MetricStatistics, PartitionStatistics
from icebench.engine.runtime.counters import (
    ENTRIES_DECODED,
    ENTRIES_SKIPPED_BY_METRICS,
    ENTRIES_SKIPPED_BY_PARTITION,
    MANIFEST_BYTES_DECODED,
    MANIFESTS_DECODED,
    Counters,
)
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema

if TYPE_CHECKING:
    from icebench.engine.plan.trace import Trace

Admits = Callable[[LiveEntries], LiveEntries]
"""A further filter of data entries, such as those that certain snapshots added."""


class ManifestWork:
    """The work of a plan on its manifests. Thread-safe.

    Args:
        metadata: The table.
        schema: The schema that the filter is bound to.
        bound: The filter.
        source: Where manifests come from.
        counters: Counts the work.
        whole_files: Include equality deletes that match no matching row, for callers that need the files' other rows.
        trace: Records what is skipped.

    Attributes:
        filter: The filter for manifests and their entries.
    """

    def __init__(
        self,
        *,
        metadata: TableMetadata,
        schema: Schema,
        bound: BoundPredicate,
        source: ManifestSource,
        counters: Counters,
        whole_files: bool = False,
        trace: Trace | None = None,
    ) -> None:
        self._whole_files = whole_files
        self._trace = trace
        self.filter = EntryFilter(bound, schema, metadata, source.store, source.cache, trace=trace)
        self._metadata = metadata
        self._schema = schema
        self._source = source
        self._counters = counters

    def filtered(
        self,
        manifest: ManifestFile,
        keys: frozenset[int] = frozenset(),
        admits: Admits | None = None,
        *,
        in_parts: bool = False,
    ) -> Filtered:
        """Decode and filter a manifest: its data files with matching rows, or its delete files that may delete such
        rows.

        Args:
            manifest: The manifest.
            keys: Ids of the columns that equality deletes compare: their metrics are decoded for data files, besides
                those of the filter. Delete files have all metrics.
            admits: A further filter of data files.
            in_parts: As `ManifestSource.columns`.

        Raises:
            As `ManifestSource.columns`, `live_entries_together` and `spec_of`.
        """
        spec = spec_of(manifest, self._metadata)
        columns = self._source.columns(manifest, self._metrics(manifest, spec, keys), in_parts=in_parts)
        (entries,) = self._live([manifest], [columns])
        if manifest.content == ManifestContent.DELETES:
            return self._relevant(entries, spec)
        return self.filter.apply(entries if admits is None else admits(entries), spec, self._counters)

    def filtered_together(self, manifests: Sequence[ManifestFile], keys: frozenset[int]) -> list[Filtered]:
        """As `filtered` for each of these manifests of one content and spec, which is faster where they are small. Data
        files are not traced."""
        spec = spec_of(manifests[0], self._metadata)
        columns = self._source.columns_of_small(manifests, self._metrics(manifests[0], spec, keys))
        entries = self._live(manifests, columns)
        if manifests[0].content == ManifestContent.DELETES:
            return [self._relevant(each, spec) for each in entries]
        return self.filter.apply_together(entries, spec, self._counters)

    def _metrics(self, manifest: ManifestFile, spec: PartitionSpec, keys: frozenset[int]) -> frozenset[int] | None:
        return None if manifest.content == ManifestContent.DELETES else self.filter.metrics(spec) | keys

    def _live(self, manifests: Sequence[ManifestFile], columns: Sequence[ManifestColumns]) -> list[LiveEntries]:
        self._counters.add(MANIFESTS_DECODED, len(manifests))
        self._counters.add(MANIFEST_BYTES_DECODED, sum(each.manifest_length for each in manifests))
        self._counters.add(ENTRIES_DECODED, sum(each.count for each in columns))
        return live_entries_together(manifests, columns)

    def _relevant(self, entries: LiveEntries, spec: PartitionSpec) -> Filtered:
        """Filter deletes like data files: by partition, and equality deletes by the metrics of their keys.

        Metrics of other columns of equality deletes are ignored: rows are deleted whatever their values there.
        """
        evaluator = self.filter.evaluator
        if evaluator.bound == BOUND_TRUE:
            return _whole(entries)
        columns, rows = entries.columns, entries.rows
        by_partition = evaluator.leaf_outcomes(PartitionStatistics(columns, spec, self._schema))
        in_partition: BoolArray = (evaluator.combine(by_partition, columns.count)[rows] & TRUE) != 0
        self._counters.add(ENTRIES_SKIPPED_BY_PARTITION, int(len(rows) - in_partition.sum()))
        if self._trace is not None:
            own = [each[rows] for each in by_partition]
            self._trace.skip_entries(entries, ~in_partition, ENTRIES_SKIPPED_BY_PARTITION, own)
        if self._whole_files:
            return _whole(entries.take(np.flatnonzero(in_partition)))
        by_metrics = evaluator.leaf_outcomes(MetricStatistics(columns, self._schema))
        outcomes = [
            np.where(uses_key(columns, test.leaf.column.field_id), part & metric, part)
            for test, part, metric in zip(evaluator.leaves, by_partition, by_metrics, strict=True)
        ]
        kept = in_partition & ((evaluator.combine(outcomes, columns.count)[rows] & TRUE) != 0)
        self._counters.add(ENTRIES_SKIPPED_BY_METRICS, int(in_partition.sum() - kept.sum()))
        if self._trace is not None:
            own = [each[rows] for each in outcomes]
            self._trace.skip_entries(entries, in_partition & ~kept, ENTRIES_SKIPPED_BY_METRICS, own)
        return _whole(entries.take(np.flatnonzero(kept)))


def _whole(deletes: LiveEntries) -> Filtered:
    """Deletes have no residual."""
    return Filtered(entries=deletes, residual=np.zeros(len(deletes), np.int64), residuals=(BOUND_TRUE,))
