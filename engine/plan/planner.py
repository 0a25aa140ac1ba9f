"""Plans a scan: prunes manifests, decodes and filters them in parallel, and matches deletes to data files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.lazy_module import LazyModule
from icebench.engine.plan.delete_index import DeletesOfFiles, match_deletes
from icebench.engine.plan.delete_targets import select_concerning
from icebench.engine.plan.filtering import Filtered
from icebench.engine.plan.key_ranges import key_columns
from icebench.engine.plan.manifest_work import Admits, ManifestWork
from icebench.engine.plan.manifests import LiveEntries, ManifestSource
from icebench.engine.runtime.counters import (
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
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot

if TYPE_CHECKING:
    from icebench.engine.plan import remote
    from icebench.engine.plan.trace import Trace
else:  # most plans are made in one process
    remote = LazyModule("icebench.engine.plan.remote")

DELETE_FILES_UNUSED = "delete_files_unused"
"""Counter: live delete files that no planned data file needs: dangling ones, and those of skipped files."""

_FEW = 4
"""Up to this many manifests are decoded in parts by several threads each; more manifests keep threads busy without
that."""
_SMALL_BYTES, _TOGETHER, _TOGETHER_BYTES = 1 << 18, 64, 1 << 23
"""Manifests of up to this length are decoded and filtered together, up to this many at a time, and up to the usual size
of one manifest (8 MiB) in total."""
_PLANNING = (
    MANIFESTS_IN_LIST,
    MANIFESTS_SKIPPED_BY_SUMMARY,
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
"""Counters of every plan, even if zero."""


Mode = Literal["local", "distributed"]
"""Where manifests are decoded: in this process, or by executors."""
PlanningMode = Literal["auto", "local", "distributed"]
"""The requested mode; `auto` chooses by the number of manifests."""
LOCAL: Mapping[str, Mode] = {content.name.lower(): "local" for content in ManifestContent}
"""The modes of a plan without executors, by content: ``data`` and ``deletes``."""


@dataclass(frozen=True, kw_only=True)
class PlannedEntries:
    """Data files by manifest, in order, the delete files that may concern them, the pairs of both, and where manifests
    of either content were decoded."""

    data: tuple[Filtered, ...] = ()
    deletes: tuple[LiveEntries, ...] = ()
    matches: DeletesOfFiles
    modes: Mapping[str, Mode] = field(default_factory=lambda: LOCAL)


class Planner:
    """Plans scans of one table.

    Counters are the same in every run: they count work whether or not a cache saved it, and wherever it was done.

    Args:
        metadata: The table.
        schema: The schema that the filter is bound to.
        bound: The filter.
        source: Where manifests come from.
        counters: Counts the work.
        executors: Other processes that may decode and filter manifests; None for this process alone.
        whole_files: As `ManifestWork`.
        trace: As `ManifestWork`; not with `executors`.
    """

    def __init__(
        self,
        *,
        metadata: TableMetadata,
        schema: Schema,
        bound: BoundPredicate,
        source: ManifestSource,
        counters: Counters,
        executors: remote.Executors | None = None,
        whole_files: bool = False,
        trace: Trace | None = None,
    ) -> None:
        self._trace = trace
        self._metadata = metadata
        self._schema = schema
        self._bound = bound
        self._whole_files = whole_files
        self._work = ManifestWork(
            metadata=metadata,
            schema=schema,
            bound=bound,
            source=source,
            counters=counters,
            whole_files=whole_files,
            trace=trace,
        )
        self.source = source
        self._counters = counters
        self._executors = executors
        self._modes = dict(LOCAL)
        for name in _PLANNING:
            counters.add(name, 0)

    def plan(self, snapshot: Snapshot | None) -> PlannedEntries:
        """Plan the files of a snapshot that may hold matching rows, with their deletes."""
        manifests = () if snapshot is None else self.source.manifests_of(snapshot)
        kept = self.select(manifests)
        found = self._filtered([m for m in kept if m.content == ManifestContent.DELETES])
        deletes = [each.entries for each in found]
        return self.plan_data([m for m in kept if m.content == ManifestContent.DATA], deletes)

    def select(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Select the manifests that may list files with matching rows, or their deletes."""
        self._counters.add(MANIFESTS_IN_LIST, len(manifests))
        if self._trace is not None:
            self._trace.listed.extend(manifests)
        return self._work.filter.select(manifests, self._counters)

    def plan_data(
        self, manifests: Sequence[ManifestFile], deletes: Sequence[LiveEntries], admits: Admits | None = None
    ) -> PlannedEntries:
        """Plan the files of these data manifests that may hold matching rows, and match `deletes` to them."""
        data = self._filtered(manifests, key_columns(deletes), admits)
        own = [each.entries for each in data]
        if self._trace is not None:
            self._trace.files.extend(own)
            self._trace.deletes.extend(deletes)
        concerned = select_concerning(own, deletes)
        matches = match_deletes(own, concerned, self._metadata)
        used = int(np.count_nonzero(np.bincount(matches.indices)))
        self._counters.add(FILES_PLANNED, sum(len(each.entries) for each in data))
        self._counters.add(DELETE_FILES_PLANNED, used)
        self._counters.add(DELETE_FILES_UNUSED, sum(len(each) for each in deletes) - used)
        return PlannedEntries(data=data, deletes=tuple(concerned), matches=matches, modes=self._modes)

    def _filtered(
        self, manifests: Sequence[ManifestFile], keys: frozenset[int] = frozenset(), admits: Admits | None = None
    ) -> tuple[Filtered, ...]:
        """Filter the entries of these manifests of one content; manifests without any left are dropped."""
        found: Iterable[Filtered]
        if self._executors is not None and manifests and self._executors.take(manifests):
            self._modes[manifests[0].content.name.lower()] = "distributed"
            found = self._executors.filtered(self._order(keys, admits), manifests, self._counters)
        else:
            found = self._filtered_here(manifests, keys, admits)
        return tuple(found)

    def _filtered_here(
        self, manifests: Sequence[ManifestFile], keys: frozenset[int], admits: Admits | None
    ) -> Iterable[Filtered]:
        """In this process: small manifests of each spec together, wherever they are listed, so that all others are
        read at the same time."""
        work, in_parts = self._work, len(manifests) <= _FEW
        alone: list[int] = []
        small: dict[int, list[int]] = {}
        for place, manifest in enumerate(manifests):
            is_small = admits is None and self._trace is None and manifest.manifest_length <= _SMALL_BYTES
            own = small.setdefault(manifest.partition_spec_id, []) if is_small else alone
            own.append(place)
        found: dict[int, Filtered] = {}

        def add(places: Iterable[int], own: Iterable[Filtered]) -> None:
            # What is left of a manifest without any entry is not held, large as it may be.
            found.update((place, each) for place, each in zip(places, own, strict=True) if len(each.entries))

        for places in small.values():
            if len(places) == 1:
                alone += places
                continue
            for some in _groups(places, [manifests[place].manifest_length for place in places]):
                add(some, work.filtered_together([manifests[place] for place in some], keys))
        chosen = (manifests[place] for place in alone)
        add(alone, self.source.runner.map(lambda m: work.filtered(m, keys, admits, in_parts=in_parts), chosen))
        return [found[place] for place in sorted(found)]

    def _order(self, keys: frozenset[int], admits: Admits | None) -> remote.Order:
        return remote.Order(
            metadata=remote.sent_metadata(self._metadata, self._schema, self._bound),
            schema=self._schema,
            bound=self._bound,
            store=self.source.store,
            needed_by=self.source.needed_by,
            keys=keys,
            admits=admits,
            whole_files=self._whole_files,
        )


def _groups(places: Sequence[int], lengths: Sequence[int]) -> Iterator[Sequence[int]]:
    """Consecutive places, of manifests of these lengths, that are decoded together."""
    first = size = 0
    for end, length in enumerate(lengths):
        if end - first == _TOGETHER or (size and size + length > _TOGETHER_BYTES):
            yield places[first:end]
            first, size = end, 0
        size += length
    yield places[first:]
