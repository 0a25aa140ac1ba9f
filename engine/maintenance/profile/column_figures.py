"""Figures of columns: what their statistics take, and how far the ranges of files overlap.

Manifests are decoded again with the metrics of some columns at a time, so that memory is bounded however many columns
there are; of each manifest only the two bounds of live files stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from icebench.engine.codec.array_views import Int64Array, ManifestColumns, has_values, offsets_of, valid_of, values_of
from icebench.engine.codec.manifests.decoded_entries import BOUND_MAPS, COUNT_MAPS
from icebench.engine.errors import Invalid
from icebench.engine.expressions.vectors import Vector, representation
from icebench.engine.maintenance.profile.figures import ColumnFigures, Overlap, PartitionOverlap
from icebench.engine.maintenance.profile.live_files import LiveFiles, histogram, sum_by
from icebench.engine.maintenance.profile.overlap import (
    count_overlaps,
    count_overlaps_within,
    rank_values,
    select_rows,
    value_positions,
)
from icebench.engine.maintenance.profile.partitions import LISTED, PartitionPaths, schema_with
from icebench.engine.plan.manifests import ManifestSource, live_entries
from icebench.engine.plan.trusted_metrics import metric_bounds
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.manifest import ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import PrimitiveType

_BOUNDS_MEMORY_BYTES = 384 << 20
_METRICS_MEMORY_BYTES = 128 << 20
_BYTES_OF_BOUNDS = 40
"""Of a column of one file: two bounds and whether they are known, and a share of sorting them."""
_BYTES_OF_METRICS = 100
"""Of a column of one entry, with all its metrics decoded."""
DEPTH_STEP = 2
"""Bins of depths grow by this factor."""


@dataclass(frozen=True, kw_only=True)
class _Metrics:
    """What one manifest says of a column: bounds and whether there may be values for each live file."""

    data_bytes: int
    statistics_bytes: int
    bounds_bytes: int
    lower: Vector | None = None
    upper: Vector | None = None
    may_hold: NDArray[np.bool_] | None = None


def column_figures(
    files: LiveFiles, source: ManifestSource, runner: Runner, metadata: TableMetadata, paths: PartitionPaths
) -> tuple[ColumnFigures, ...]:
    """Figures of all columns of the table's schemas, in the order of ids.

    Args:
        files: Its live files.
        source: Where manifests come from; without a cache, for what is decoded here is of no use to plans.
        runner: Decodes manifests and compares columns side by side.
        metadata: The table.
        paths: Names partitions.

    Raises:
        CorruptTable, FileNotFound: As a plan.
    """
    ids = _ids(metadata)
    manifests = [each.manifest for each in files.data]
    found: list[ColumnFigures] = []
    for group in _groups(ids, files):
        metrics = list(runner.map(partial(_read_metrics, ids=group, source=source, metadata=metadata), manifests))
        by_column = [(field_id, [own[place] for own in metrics]) for place, field_id in enumerate(group)]
        del metrics
        found += runner.map(lambda each: _figures(*each, files=files, metadata=metadata, paths=paths), by_column)
    return tuple(found)


@dataclass(frozen=True)
class ColumnRanges:
    """Ranges of a column's values.

    Args:
        known: Of each file, whether both bounds are known.
        ranks: Those of the lower and of the upper bound of each file, comparable with each other; 0 where not known.
        positions: Their values as numbers (`value_positions`), likewise.
    """

    known: NDArray[np.bool_]
    ranks: Int64Array
    positions: NDArray[np.float64]


def column_ranges(
    ids: Sequence[int], files: LiveFiles, source: ManifestSource, runner: Runner, metadata: TableMetadata
) -> list[ColumnRanges]:
    """The ranges of a few columns that have a `comparable_schema`; otherwise as `column_figures`."""
    manifests = [each.manifest for each in files.data]
    metrics = list(runner.map(partial(_read_metrics, ids=ids, source=source, metadata=metadata), manifests))
    found = []
    for place in range(len(ids)):
        _, known, bounds = _bounds([each[place] for each in metrics], files)
        each = ColumnRanges(known, np.zeros((2, len(files)), np.int64), np.zeros((2, len(files))))
        ranks = rank_values(bounds)
        if known.any():
            each.ranks[:, known] = np.concatenate(ranks).reshape(2, -1)
            each.positions[:, known] = np.concatenate(value_positions(bounds, ranks)).reshape(2, -1)
        found.append(each)
    return found


def first_group(files: LiveFiles, metadata: TableMetadata) -> list[int]:
    """The ids of the columns that are decoded at a time: all of them, unless they are many."""
    return next(iter(_groups(_ids(metadata), files)), [])


def _ids(metadata: TableMetadata) -> list[int]:
    """Of all primitive columns, ascending."""
    every = {i: f.type for schema in metadata.schemas for i, f in schema.by_id.items()}
    return sorted(i for i, type_ in every.items() if isinstance(type_, PrimitiveType))


def _groups(ids: Sequence[int], files: LiveFiles) -> list[list[int]]:
    """The columns in groups whose bounds of all files, and whose metrics of a few manifests, fit into memory."""
    most_entries = max((each.columns.count for each in files.data), default=0)
    by_files = _BOUNDS_MEMORY_BYTES // max(1, len(files) * _BYTES_OF_BOUNDS)
    by_entries = _METRICS_MEMORY_BYTES // max(1, most_entries * _BYTES_OF_METRICS)
    size = max(1, min(by_files, by_entries))
    count = -(-len(ids) // size)
    return [list(ids[len(ids) * i // count : len(ids) * (i + 1) // count]) for i in range(count)]


def _read_metrics(
    manifest: ManifestFile, *, ids: Sequence[int], source: ManifestSource, metadata: TableMetadata
) -> list[_Metrics]:
    columns = source.columns(manifest, frozenset(ids))
    rows = live_entries(manifest, columns).rows
    return [_metrics_of(field_id, columns, rows, metadata) for field_id in ids]


def _metrics_of(field_id: int, columns: ManifestColumns, rows: Int64Array, metadata: TableMetadata) -> _Metrics:
    sizes = columns.get("column_sizes", field_id)
    bounds_bytes = sum(_bound_bytes(columns, name, field_id) for name in BOUND_MAPS)
    counts_bytes = sum(_count_bytes(columns, name, field_id) for name in COUNT_MAPS)
    metrics = _Metrics(
        data_bytes=0 if sizes is None else _sum(sizes, rows),
        statistics_bytes=bounds_bytes + counts_bytes,
        bounds_bytes=bounds_bytes,
    )
    schema = comparable_schema(field_id, metadata)
    if schema is None:
        return metrics
    bounds = metric_bounds(columns, field_id, schema)
    return _Metrics(
        data_bytes=metrics.data_bytes,
        statistics_bytes=metrics.statistics_bytes,
        bounds_bytes=metrics.bounds_bytes,
        lower=None if bounds.lower is None else select_rows(bounds.lower, rows),
        upper=None if bounds.upper is None else select_rows(bounds.upper, rows),
        may_hold=np.broadcast_to(bounds.presence.value, (bounds.count,))[rows],
    )


def comparable_schema(field_id: int, metadata: TableMetadata) -> Schema | None:
    """A schema where the column has an order and one value per row; None for other columns."""
    schema = schema_with(field_id, metadata)
    if schema is None:
        return None
    try:
        return schema if representation(schema.row_primitive(field_id)) is not None else None
    except Invalid:  # in a list or map
        return None


def _sum(column: object, rows: Int64Array) -> int:
    values, valid = values_of(column), valid_of(column)
    return int((values if valid is None else np.where(valid, values, 0))[rows].sum())


def _bound_bytes(columns: ManifestColumns, name: str, field_id: int) -> int:
    """Bytes of a bound in all entries: the key, the length and the value."""
    column = columns.get(name, field_id)
    if column is None or not has_values(column):
        return 0
    lengths, valid = np.diff(offsets_of(column)), valid_of(column)
    own = lengths if valid is None else lengths[valid]
    return int(own.sum()) + _varint_bytes(own) + len(own) * _varint_bytes(np.array([field_id]))


def _count_bytes(columns: ManifestColumns, name: str, field_id: int) -> int:
    """Bytes of a count in all entries: the key and the number."""
    column = columns.get(name, field_id)
    if column is None or not has_values(column):
        return 0
    values, valid = values_of(column), valid_of(column)
    own = values if valid is None else values[valid]
    return _varint_bytes(own) + len(own) * _varint_bytes(np.array([field_id]))


def _varint_bytes(values: NDArray[np.int64]) -> int:
    """The bytes of these numbers in Avro: seven bits of the zigzag form each."""
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.int64).view(np.uint64)
    total, most = len(values), int(zigzag.max(initial=0)) >> 7
    bits = 7
    while most:
        total += int(np.count_nonzero(zigzag >> np.uint64(bits)))
        most >>= 7
        bits += 7
    return total


def _figures(
    field_id: int, metrics: Sequence[_Metrics], *, files: LiveFiles, metadata: TableMetadata, paths: PartitionPaths
) -> ColumnFigures:
    schema = schema_with(field_id, metadata)
    assert schema is not None
    may_hold, known, bounds = _bounds(metrics, files)
    ranks = np.concatenate([np.zeros(0, np.int64), *rank_values(bounds)])
    low, high = np.split(ranks, 2)
    is_compared = metrics != [] and metrics[0].may_hold is not None
    overall = within = None
    if is_compared and known.any():
        overall = _overlap(low, high, files.size_bytes[known], *count_overlaps(low, high))
        if files.partitions > 1:
            within = _within_partitions(low, high, files.partition[known], files.size_bytes[known], paths)
        elif any(not spec.is_unpartitioned for spec in metadata.partition_specs):
            within = overall
    return ColumnFigures(
        field_id=field_id,
        name=schema.name_of[field_id],
        is_current=schema is metadata.schema,
        type=str(schema.by_id[field_id].type),
        data_bytes=sum(each.data_bytes for each in metrics),
        statistics_bytes=sum(each.statistics_bytes for each in metrics),
        bounds_bytes=sum(each.bounds_bytes for each in metrics),
        files_without_bounds=int((may_hold & ~known).sum()) if is_compared else 0,
        files_of_nulls=int((~may_hold).sum()) if is_compared else 0,
        table=overall,
        within_partitions=within,
    )


def _bounds(metrics: Sequence[_Metrics], files: LiveFiles) -> tuple[NDArray[np.bool_], NDArray[np.bool_], list[Vector]]:
    """Of each file whether it may have values, and whether both bounds are known; the lower bounds of the latter by
    manifest, then the upper ones."""
    may_hold, known = np.zeros(len(files), np.bool_), np.zeros(len(files), np.bool_)
    lower: list[Vector] = []
    upper: list[Vector] = []
    end = 0
    for own, each in zip(metrics, files.data, strict=True):
        start, end = end, end + len(each)
        if own.may_hold is None:
            continue
        may_hold[start:end] = own.may_hold
        if own.lower is None or own.upper is None:
            continue
        is_known = own.may_hold & _valid(own.lower) & _valid(own.upper)
        known[start:end] = is_known
        rows = np.flatnonzero(is_known)
        lower.append(select_rows(own.lower, rows))
        upper.append(select_rows(own.upper, rows))
    return may_hold, known, [*lower, *upper]


def _valid(vector: Vector) -> NDArray[np.bool_]:
    return np.ones(len(vector), np.bool_) if vector.valid is None else vector.valid


def _overlap(low: Int64Array, high: Int64Array, sizes: Int64Array, overlaps: Int64Array, depths: Int64Array) -> Overlap:
    return Overlap(
        files=len(low),
        constant_files=int((low == high).sum()),
        average_overlaps=float(overlaps.mean()),
        average_depth=float(depths.mean()),
        most_depth=int(depths.max()),
        depths=histogram(depths, sizes, step=DEPTH_STEP),
    )


def _within_partitions(
    low: Int64Array, high: Int64Array, groups: Int64Array, sizes: Int64Array, paths: PartitionPaths
) -> Overlap:
    overlaps, depths = count_overlaps_within(groups, low, high)
    files = np.bincount(groups)
    depth_sums, overlap_sums = sum_by(groups, depths, len(files)), sum_by(groups, overlaps, len(files))
    # What could be gained: depth above one file for each value.
    excess = depth_sums - files
    worst = [i for i in np.argsort(-excess, kind="stable")[:LISTED].tolist() if excess[i] > 0]
    return replace(
        _overlap(low, high, sizes, overlaps, depths),
        worst=tuple(
            PartitionOverlap(
                path=paths.path(i),
                files=int(files[i]),
                average_overlaps=float(overlap_sums[i] / files[i]),
                average_depth=float(depth_sums[i] / files[i]),
            )
            for i in worst
        ),
    )
