"""The live files of a snapshot as arrays, from which all figures but those of columns are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icebench.engine.codec.array_views import Int64Array, offsets_of, valid_of, values_of
from icebench.engine.maintenance.profile.figures import Histogram, Quantiles
from icebench.engine.plan.delete_index import DeletesOfFiles, match_deletes
from icebench.engine.plan.grouping import partition_codes
from icebench.engine.plan.key_ranges import key_columns
from icebench.engine.plan.manifests import LiveEntries, ManifestSource, live_entries, spec_of
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata

NO_ORDER = -1
"""In place of a sort order id that is null."""
_FEW = 4
"""As in `icebench.engine.plan.planner`."""


@dataclass(frozen=True, kw_only=True)
class LiveFiles:
    """Live files in manifest order; arrays have a value for each data file unless stated otherwise.

    Args:
        manifests: All manifests of the snapshot.
        data: The entries of data files.
        deletes: The entries of delete files.
        matches: Which deletes apply to which data file.
        size_bytes: Their sizes.
        records: Their rows.
        partition: A number for each partition, from 0 in the order of first files.
    """

    manifests: tuple[ManifestFile, ...]
    data: Sequence[LiveEntries]
    deletes: Sequence[LiveEntries]
    matches: DeletesOfFiles
    size_bytes: Int64Array
    records: Int64Array
    partition: Int64Array

    def __len__(self) -> int:
        return len(self.size_bytes)

    @property
    def partitions(self) -> int:
        """The number of partitions with data files."""
        return int(self.partition.max(initial=-1)) + 1


def load_live_files(
    manifests: tuple[ManifestFile, ...], source: ManifestSource, runner: Runner, metadata: TableMetadata
) -> LiveFiles:
    """Load the live files of a snapshot's manifests; metrics only of the keys of equality deletes.

    Raises:
        CorruptTable, FileNotFound, Unsupported: As a plan.
    """
    in_parts = len(manifests) <= _FEW

    def load(content: ManifestContent, metrics: frozenset[int] | None) -> list[LiveEntries]:
        def entries(manifest: ManifestFile) -> LiveEntries:
            spec_of(manifest, metadata)
            return live_entries(manifest, source.columns(manifest, metrics, in_parts=in_parts))

        return list(runner.map(entries, [m for m in manifests if m.content == content]))

    deletes = load(ManifestContent.DELETES, None)
    data = load(ManifestContent.DATA, key_columns(deletes))
    codes = partition_codes(data, metadata) if data else np.zeros(0, np.int64)
    return LiveFiles(
        manifests=manifests,
        data=data,
        deletes=deletes,
        matches=match_deletes(data, deletes, metadata),
        size_bytes=numbers_of(data, "file_size_in_bytes"),
        records=numbers_of(data, "record_count"),
        partition=codes,
    )


def numbers_of(entries: Sequence[LiveEntries], name: str, null: int = 0) -> Int64Array:
    """The values of a numeric column of entries; `null` for entries without one."""
    found = []
    for each in entries:
        column = each.columns[name]
        values, valid = values_of(column), valid_of(column)
        found.append((values if valid is None else np.where(valid, values, null))[each.rows])
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def lengths_of(entries: Sequence[LiveEntries], name: str) -> Int64Array:
    """The length of a list column by entry; 0 for entries without one."""
    found = [np.diff(offsets_of(each.columns[name]))[each.rows] for each in entries]
    return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)


def quantiles(values: NDArray[np.int64]) -> Quantiles:
    """By nearest rank: the q-quantile of n sorted numbers is the one at place ceil(q n), from 1."""
    if not len(values):
        return Quantiles()
    ordered = np.sort(values)
    at = [int(ordered[max(0, -(-len(ordered) * percent // 100) - 1)]) for percent in (0, 25, 50, 75, 95, 100)]
    return Quantiles(least=at[0], p25=at[1], median=at[2], p75=at[3], p95=at[4], most=at[5], mean=float(values.mean()))


def histogram(values: NDArray[np.int64], size_bytes: NDArray[np.int64], *, step: int) -> Histogram:
    """A histogram whose bins begin at 0 and at the powers of `step`, a power of two."""
    if not len(values):
        return Histogram()
    width = step.bit_length() - 1
    # frexp gives the bit length of numbers up to 2^53, which sizes and counts are.
    bins = (np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1) // width
    bins = np.where(values < 1, -1, bins)
    first = int(bins.min())
    files = np.bincount(bins - first)
    sizes = np.zeros(len(files), np.int64)
    np.add.at(sizes, bins - first, size_bytes)
    lower = tuple(0 if place < 0 else step**place for place in range(first, first + len(files)))
    return Histogram(lower=lower, files=tuple(files.tolist()), size_bytes=tuple(sizes.tolist()))


def sum_by(groups: Int64Array, values: Int64Array, count: int) -> Int64Array:
    """The sums of whole numbers by group, from 0 to `count` - 1."""
    found = np.zeros(count, np.int64)
    np.add.at(found, groups, values)
    return found
