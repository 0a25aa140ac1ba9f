"""Which files a clustering pass rewrites together: a log-structured merge tree, without anything that records levels.

A *run* is a set of files that do not overlap where their keys allow it: the files of one pass, or a single file. A
run's *share* is its bytes over those of all files in the ranges of its files, so that k equal runs over the same keys
have a share of 1/k. Runs whose shares are within a factor of `fan_in` have one *level*. Where `fan_in` runs of a level
overlap in one place, their files there are merged: the new run has about `fan_in` times the share or more. So a row
is rewritten about log(runs) / log(fan_in) times however long the table grows, and a value is in fewer than `fan_in`
runs of each level.

Shares are estimated from bounds: a file's bytes are spread evenly over its range of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from icebench.engine.codec.array_views import Int64Array
from icebench.engine.maintenance.profile.overlap import count_boxes_within, count_overlaps_within

Bounds: TypeAlias = tuple[Int64Array, NDArray[np.float64]]
"""Ranks of the lower and of the upper bound of each file (2 x n), and their positions in the space of values."""

_POINT = 1e-7
"""The width of a single value, as a share of a partition's span: files of one value have a range, too."""


@dataclass(frozen=True, kw_only=True)
class KeyRanges:
    """Files with the ranges of their keys.

    Args:
        partition: A number for each file's partition.
        low: Ranks at which ranges begin, a row for each dimension; partitions have ranks of their own.
        high: Ranks at which they end.
        edges: For each dimension, where each rank's value begins and ends, one after the other.
        size_bytes: Of each file.
        run: A number for each file's run.
    """

    partition: Int64Array
    low: Int64Array
    high: Int64Array
    edges: Sequence[NDArray[np.float64]]
    size_bytes: Int64Array
    run: Int64Array

    @classmethod
    def of(
        cls, *, partition: Int64Array, bounds: Sequence[Bounds], size_bytes: Int64Array, run: Int64Array
    ) -> KeyRanges:
        """From bounds that are comparable between partitions, for each dimension."""
        ranks, edges = [], []
        for rank, position in bounds:
            distinct, own = np.unique(partition * (int(rank.max(initial=0)) + 1) + rank, return_inverse=True)
            own = own.reshape(rank.shape)
            ranks.append(own)
            at, home = np.zeros(len(distinct)), np.zeros(len(distinct), np.int64)
            at[own], home[own] = position, partition
            count = int(partition.max(initial=0)) + 1
            least, most = np.full(count, np.inf), np.full(count, -np.inf)
            np.minimum.at(least, home, at)
            np.maximum.at(most, home, at)
            span = (most - least)[home]
            share = np.divide(at - least[home], span, out=np.zeros_like(at), where=span > 0)
            begin = np.maximum.accumulate(2.0 * home + share) + _POINT * np.arange(len(at))
            edges.append(np.stack([begin, begin + _POINT], axis=1).ravel())
        low, high = np.array(ranks).transpose(1, 0, 2)
        return cls(partition=partition, low=low, high=high, edges=edges, size_bytes=size_bytes, run=run)

    def depths(self, groups: Int64Array) -> Int64Array:
        """How many files of a group lie in one place: the most in a file's range, or of boxes in the middle of each."""
        if len(self.low) == 1:
            return count_overlaps_within(groups, self.low[0], self.high[0])[1]
        places = zip(self.edges, self.low, self.high, strict=True)
        low, high = np.array([(edges[2 * low], edges[2 * high + 1]) for edges, low, high in places]).transpose(1, 0, 2)
        return count_boxes_within(groups, low, high)

    @cached_property
    def local_bytes(self) -> NDArray[np.float64]:
        """About how many bytes all files have within each file's range."""
        return self.bytes_within(self.partition, self.low, self.high)

    def bytes_within(self, partition: Int64Array, low: Int64Array, high: Int64Array) -> NDArray[np.float64]:
        """About how many bytes files have within ranges; dimensions count as independent of each other."""
        own = self._partition_bytes[partition]
        within = own
        for dimension, mass in enumerate(self._mass):
            within = within * (mass[2 * high[dimension] + 1] - mass[2 * low[dimension]]) / own
        return within

    @cached_property
    def _partition_bytes(self) -> NDArray[np.float64]:
        return np.maximum(np.bincount(self.partition, self.size_bytes), 1)

    @cached_property
    def _mass(self) -> list[NDArray[np.float64]]:
        """For each dimension and edge, the bytes below it."""
        found = []
        for low, high, edges in zip(self.low, self.high, self.edges, strict=True):
            each = self.size_bytes / (edges[2 * high + 1] - edges[2 * low])
            changes = np.bincount(2 * low, each, len(edges)) - np.bincount(2 * high + 1, each, len(edges))
            found.append(np.concatenate([[0.0], np.cumsum(np.cumsum(changes)[:-1] * np.diff(edges))]))
        return found


@dataclass(frozen=True, kw_only=True)
class Merge:
    """Files to rewrite together.

    Args:
        files: Their numbers, in the order of their keys.
        size_bytes: Their size.
        depth_gained: By how much the average depth of the table falls: see `average_depth`.
    """

    files: Int64Array
    size_bytes: int
    depth_gained: float


def average_depth(ranges: KeyRanges) -> float:
    """In how many files' ranges the key of a row is, on average over the bytes of the table."""
    size = int(ranges.size_bytes.sum())
    return float(ranges.local_bytes.sum()) / size if size else 0.0


def choose_merges(ranges: KeyRanges, fan_in: int) -> list[Merge]:
    """What to merge, the most depth per byte first.

    What a merge makes takes part in the choice, so that no row is rewritten twice: runs with which it completes a level
    are merged at once.
    """
    count = len(ranges.size_bytes)
    owner = np.arange(count)
    now = ranges
    while True:
        merged = _overlapping_runs(now, ranges, fan_in)
        if merged is None:
            break
        owner = merged[owner]
        now = _merged(now, merged)
    order = np.lexsort((ranges.low[0], owner))
    found = []
    for files in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
        if len(files) > 1:
            union = ranges.bytes_within(
                ranges.partition[files[:1]],
                ranges.low[:, files].min(axis=1, keepdims=True),
                ranges.high[:, files].max(axis=1, keepdims=True),
            )
            size = int(ranges.size_bytes[files].sum())
            gained = (float(ranges.local_bytes[files].sum()) - float(union[0])) / int(ranges.size_bytes.sum())
            found.append(Merge(files=files, size_bytes=size, depth_gained=gained))
    return sorted(found, key=lambda each: -each.depth_gained / max(each.size_bytes, 1))


def within_budget(merges: Sequence[Merge], max_bytes: int | None) -> tuple[list[Merge], list[Merge]]:
    """The merges that the budget allows, and those that wait for a larger one; each is whole."""
    chosen, waiting = [], []
    left = max_bytes
    for each in merges:
        if left is not None and each.size_bytes > left:
            waiting.append(each)
            continue
        chosen.append(each)
        left = None if left is None else left - each.size_bytes
    return chosen, waiting


def _overlapping_runs(now: KeyRanges, mass: KeyRanges, fan_in: int) -> Int64Array | None:
    """For each file the number of the merge that it goes into, or its own; None where nothing is to be merged."""
    local = mass.bytes_within(now.partition, now.low, now.high)
    runs = _codes(now.run, now.partition)
    share = np.bincount(runs, now.size_bytes) / np.maximum(np.bincount(runs, local), 1)
    level = np.rint(-np.log(np.clip(share, 1e-18, 1)) / np.log(fan_in)).astype(np.int64)[runs]
    groups = _codes(level, now.partition)
    deep = np.flatnonzero(now.depths(groups) >= fan_in)
    if not len(deep):
        return None
    clusters = groups[deep] if len(now.low) > 1 else _connected(groups[deep], now.low[0][deep], now.high[0][deep])
    different = np.unique(np.stack([clusters, runs[deep]]), axis=1)
    is_due = np.bincount(different[0], minlength=int(clusters.max()) + 1) >= fan_in
    chosen = is_due[clusters]
    if not chosen.any():
        return None
    targets = np.arange(len(groups))
    targets[deep[chosen]] = len(groups) + clusters[chosen]
    return _codes(targets)


def _codes(first: Int64Array, *others: Int64Array) -> Int64Array:
    """A dense number for each distinct tuple."""
    found: Int64Array = np.unique(np.stack([first, *others]), axis=1, return_inverse=True)[1]
    return found


def _connected(groups: Int64Array, low: Int64Array, high: Int64Array) -> Int64Array:
    """A number for each set of ranges of a group that hang together."""
    order = np.lexsort((low, groups))
    apart = groups[order] * (int(high.max()) + 1)
    reach = np.maximum.accumulate(apart + high[order])
    found = np.empty(len(low), np.int64)
    found[order] = np.concatenate([[0], np.cumsum((apart + low[order])[1:] > reach[:-1])])
    return found


def _merged(now: KeyRanges, targets: Int64Array) -> KeyRanges:
    """The files after merges, each as one file."""
    count = int(targets.max()) + 1
    low = np.full((len(now.low), count), np.iinfo(np.int64).max)
    high = np.zeros_like(low)
    for dimension in range(len(low)):
        np.minimum.at(low[dimension], targets, now.low[dimension])
        np.maximum.at(high[dimension], targets, now.high[dimension])
    partition, run, size = np.zeros((3, count), np.int64)
    partition[targets], run[targets] = now.partition, now.run
    np.add.at(size, targets, now.size_bytes)
    is_new = np.bincount(targets) > 1
    run[is_new] = int(now.run.max()) + 1 + np.arange(int(is_new.sum()))
    return KeyRanges(partition=partition, low=low, high=high, edges=now.edges, size_bytes=size, run=run)
