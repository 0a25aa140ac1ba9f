"""A clustering pass: rewrites the files that overlap too much in the keys that the table declares.

The declaration is the table properties ``icebench.clustering.*``. `clustering` decides which files are merged; they are
written and committed as in any rewrite of data files. The names of a pass's files begin with a digest of the
declaration, by which later passes recognise files that belong together, even after their snapshots have expired.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import numpy as np

from icebench.engine.codec.array_views import Int64Array
from icebench.engine.codec.taking import take
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.errors import EngineError, Invalid
from icebench.engine.maintenance.clustering import Bounds, KeyRanges, Merge, average_depth, choose_merges, within_budget
from icebench.engine.maintenance.file_groups import ChosenFiles, Selection
from icebench.engine.maintenance.profile.column_figures import column_ranges, comparable_schema
from icebench.engine.maintenance.profile.live_files import LiveFiles, load_live_files
from icebench.engine.maintenance.profile.overlap import compact_ranks
from icebench.engine.maintenance.rewrite_data_files import Rewrite, RewrittenDataFiles, rewrite_data_files
from icebench.engine.plan.manifests import ManifestSource
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import CLUSTERING_FAN_IN, CLUSTERING_KEYS, CLUSTERING_STRATEGY
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.sorting import SortOrder, sort_order_of

_MOST_ROUNDS = 8
"""A pass examines again what it has written; estimates are seldom so wrong that it finds more to do twice."""
_NAME_PARTS = 8
"""Between the hyphens of a data file's name: partition, task, five of the operation's id, count."""


@dataclass(frozen=True, kw_only=True)
class ClusteringPass:
    """What a clustering pass did, or would do.

    Args:
        depth_before: The number of files whose key range contained the key of a row, averaged over the bytes.
        depth_after: The same afterwards; for a dry run, the expected value.
        merges: Sets of files that were merged.
        waiting_merges: Sets that the budget did not allow.
        waiting_bytes: Their bytes.
        unplaced_files: Files with another partition spec, or without bounds of a key, which are not rewritten.
        rewritten_data_files: Data files that were removed.
        rewritten_bytes: Their bytes.
        added_data_files: Data files that were added.
        added_bytes: Their bytes.
        removed_dangling_deletes: Delete files that applied to no data file any more (if asked for).
        failed_groups: Groups that could not be rewritten (with partial progress).
        snapshots: What was committed, in order.
        dangling_error: Why dangling deletes are still there; the merges themselves are committed.
    """

    depth_before: float
    depth_after: float
    merges: int = 0
    waiting_merges: int = 0
    waiting_bytes: int = 0
    unplaced_files: int = 0
    rewritten_data_files: int = 0
    rewritten_bytes: int = 0
    added_data_files: int = 0
    added_bytes: int = 0
    removed_dangling_deletes: int = 0
    failed_groups: int = 0
    snapshots: tuple[Snapshot, ...] = ()
    dangling_error: EngineError | None = None


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """How a table declares its rows to be arranged; see `Maintenance.cluster`."""

    strategy: str
    order: SortOrder
    fan_in: int

    @classmethod
    def of(cls, metadata: TableMetadata) -> Declaration:
        """From the table's properties.

        Raises:
            Invalid: There is none, or it names columns that are missing or have no order.
        """
        properties, schema = metadata.properties, metadata.schema
        strategy, keys = CLUSTERING_STRATEGY.of(properties), CLUSTERING_KEYS.of(properties)
        if strategy is None:
            raise Invalid(f"the table declares no clustering: set {CLUSTERING_STRATEGY.name}")
        order = metadata.sort_order
        if keys:
            order = sort_order_of(keys, schema, CLUSTERING_KEYS.name)
        if order.is_unsorted or (strategy != "sort" and not keys):
            raise Invalid(f"the table declares no keys of its clustering: set {CLUSTERING_KEYS.name}")
        order.check(schema)
        for each in order.fields:
            name = schema.name_of[each.source_id]
            if not each.transform.preserves_order or comparable_schema(each.source_id, metadata) is None:
                raise Invalid(f"files cannot be clustered by {each.transform}({name}): it has no order within bounds")
        if len({each.source_id for each in order.fields}) != len(order.fields):
            raise Invalid(f"{CLUSTERING_KEYS.name} names a column twice")
        return cls(strategy=strategy, order=order, fan_in=CLUSTERING_FAN_IN.of(properties))

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits with which the names of its files' operation begin."""
        keys = [(each.source_ids, str(each.transform), each.direction, each.null_order) for each in self.order.fields]
        return f"{zlib.crc32(repr((self.strategy, keys)).encode()):08x}"

    def operation_id(self, random: uuid.UUID) -> uuid.UUID:
        """The id of an operation that arranges rows like this."""
        return uuid.UUID(hex=self.digest + random.hex[8:])

    def rewrite(self, selection: ChosenFiles, course: Rewrite, metadata: TableMetadata) -> Rewrite:
        """The rewrite of chosen files."""
        if self.strategy == "sort":
            return replace(course, selection=selection, strategy="sort", sort_order=self.order)
        keys = tuple(metadata.schema.name_of[each.source_id] for each in self.order.fields)
        if self.strategy == "zorder":
            return replace(course, selection=selection, strategy="zorder", zorder_by=keys)
        return replace(course, selection=selection, strategy="hilbert", hilbert_by=keys)


@dataclass(frozen=True, kw_only=True)
class Clustered:
    """Files of a branch by the keys of its clustering: the ranges of those that have a place, and their locations."""

    ranges: KeyRanges
    locations: list[str]
    unplaced: int

    @classmethod
    def of(cls, table: Target, metadata: TableMetadata, branch: str, declaration: Declaration) -> Clustered:
        """From a branch's manifests.

        Raises:
            NotFound, Invalid: There is no such branch, or it is a tag.
            CorruptTable, FileNotFound, Unsupported: As a plan.
        """
        source = ManifestSource(store=table.store, runner=table.runner, cache=table.cache, needed_by="clustering")
        head = metadata.existing_head(branch)
        manifests = () if head is None else source.manifests_of(head)
        files = load_live_files(manifests, source, table.runner, metadata)
        ids = [each.source_id for each in declaration.order.fields]
        columns = column_ranges(ids, files, replace(source, cache=None), table.runner, metadata)
        specs = [np.full(len(each), each.manifest.partition_spec_id) for each in files.data]
        known = np.concatenate([*specs, np.zeros(0, np.int64)]) == metadata.default_spec_id
        # An ordering's later keys only matter between files that have the earlier ones.
        for column in columns:
            known &= column.known
        placed = np.flatnonzero(known)
        locations = _locations(files, placed)
        bounds = [(each.ranks[:, placed], each.positions[:, placed]) for each in columns]
        ranges = KeyRanges.of(
            partition=files.partition[placed],
            bounds=[_lexicographic(bounds)] if declaration.strategy == "sort" else bounds,
            size_bytes=files.size_bytes[placed],
            run=_runs(locations, declaration.digest),
        )
        return cls(ranges=ranges, locations=locations, unplaced=len(files) - len(placed))


def cluster(
    table: Target,
    state: TableState,
    course: Rewrite,
    *,
    selection: Selection,
    max_bytes: int | None,
    dry_run: bool,
    new_id: Callable[[], uuid.UUID],
) -> tuple[TableState, ClusteringPass]:
    """Rewrite files that overlap too much, until none do or the budget is spent; see `Maintenance.cluster`.

    Args:
        table: The table.
        state: The table as loaded.
        course: How to rewrite.
        selection: Sizes of files and groups.
        max_bytes: Maximum bytes of data files to rewrite.
        dry_run: Only report what would be done first.
        new_id: Creates the ids of rewrites.
    """
    declaration = Declaration.of(state.metadata)
    clustered = Clustered.of(table, state.metadata, course.branch, declaration)
    done = _Progress(average_depth(clustered.ranges), clustered.unplaced, max_bytes)
    for _ in range(_MOST_ROUNDS):
        merges = choose_merges(clustered.ranges, declaration.fan_in)
        chosen, waiting = within_budget(merges, done.left)
        done.waiting(waiting)
        # Dangling deletes are removed after each rewrite; without one, there is one of no file.
        if dry_run or not (chosen or (course.remove_dangling_deletes and not done.result.merges)):
            break
        files = ChosenFiles(selection, [[clustered.locations[i] for i in each.files] for each in chosen])
        rewrite = declaration.rewrite(files, course, state.metadata)
        state, written = rewrite_data_files(table, state, rewrite, declaration.operation_id(new_id()))
        done.add(chosen, written)
        clustered = Clustered.of(table, state.metadata, course.branch, declaration)
        if written.failed or not chosen:
            break
    depth = average_depth(clustered.ranges)
    if dry_run:
        return state, done.planned(chosen, depth)
    return state, replace(done.result, depth_after=depth)


@dataclass
class _Progress:
    """What a pass has done so far."""

    depth: float
    unplaced: int
    left: int | None
    result: ClusteringPass = field(init=False)

    def __post_init__(self) -> None:
        self.result = ClusteringPass(depth_before=self.depth, depth_after=self.depth, unplaced_files=self.unplaced)

    def waiting(self, merges: list[Merge]) -> None:
        size = sum(each.size_bytes for each in merges)
        self.result = replace(self.result, waiting_merges=len(merges), waiting_bytes=size)

    def add(self, merges: list[Merge], written: RewrittenDataFiles) -> None:
        before = self.result
        self.left = None if self.left is None else self.left - sum(each.size_bytes for each in merges)
        self.result = replace(
            before,
            merges=before.merges + len(merges),
            rewritten_data_files=before.rewritten_data_files + written.rewritten_data_files,
            rewritten_bytes=before.rewritten_bytes + written.rewritten_bytes,
            added_data_files=before.added_data_files + written.added_data_files,
            added_bytes=before.added_bytes + written.added_bytes,
            removed_dangling_deletes=before.removed_dangling_deletes + written.removed_dangling_deletes,
            failed_groups=before.failed_groups + len(written.failed),
            snapshots=(*before.snapshots, *written.snapshots),
            dangling_error=written.dangling_error,
        )

    def planned(self, merges: list[Merge], depth: float) -> ClusteringPass:
        return replace(
            self.result,
            depth_after=depth - sum(each.depth_gained for each in merges),
            merges=len(merges),
            rewritten_data_files=sum(len(each.files) for each in merges),
            rewritten_bytes=sum(each.size_bytes for each in merges),
        )


def _lexicographic(bounds: Sequence[Bounds]) -> Bounds:
    """The bounds of tuples of keys, in one dimension. They may be wider than those of the rows, where a file has
    several values of a key before the last; directions are all alike to them."""
    ranks, positions = None, None
    for own, at in bounds:
        if ranks is None or positions is None:
            ranks, positions = own, at
            continue
        # A later key divides the distance to the next value of the earlier ones.
        distinct, code = np.unique(ranks, return_inverse=True)
        code = code.reshape(ranks.shape)
        where = np.zeros(len(distinct))
        where[code] = positions
        gaps = np.diff(where, append=where[-1:] + (where[-1:] - where[:1]) / max(len(where) - 1, 1))
        gaps[gaps == 0] = 1
        span = at.max(initial=0) - at.min(initial=0) or 1
        positions = positions + gaps[code] * (at - at.min(initial=0)) / span
        ranks = compact_ranks((code * (own.max(initial=0) + 1) + own).ravel()).reshape(ranks.shape)
    assert ranks is not None
    assert positions is not None
    return ranks, positions


def _locations(files: LiveFiles, rows: Int64Array) -> list[str]:
    """Locations of data files by number."""
    every = [
        location.decode() for each in files.data for location in take(each.columns["file_path"], each.rows).to_pylist()
    ]
    return [every[row] for row in rows.tolist()]


def _runs(locations: list[str], digest: str) -> Int64Array:
    """A number for each file's run: the operation of a clustering pass, or the file itself."""
    known: dict[str, int] = {}
    found = []
    for location in locations:
        # As `engine.write.locations.FileNames` has it.
        parts = PurePosixPath(location).name.split("-")
        # A hash may come before them.
        parts = parts[-_NAME_PARTS:]
        is_clustered = len(parts) == _NAME_PARTS and parts[2] == digest
        found.append(known.setdefault("-".join(parts[2:7]) if is_clustered else location, len(known)))
    return np.array(found, np.int64)
