"""Figures of partitions and manifests: skew, and how many manifests a filter on a partition field opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from icebench.engine.codec.array_views import Int64Array
from icebench.engine.columnar.scalars import from_arrow_array
from icebench.engine.expressions.bounds import ColumnBounds
from icebench.engine.expressions.vectors import Vector
from icebench.engine.maintenance.file_groups import DEFAULT_SORTED_GROUP_SIZE_BYTES
from icebench.engine.maintenance.profile.commits import Commits, mean
from icebench.engine.maintenance.profile.figures import (
    ManifestClustering,
    ManifestFigures,
    PartitionFigures,
    PartitionSize,
)
from icebench.engine.maintenance.profile.live_files import LiveFiles, quantiles, sum_by
from icebench.engine.maintenance.profile.overlap import rank_values, select_rows
from icebench.engine.plan.arrow_columns import any_values, partition_values
from icebench.engine.plan.manifests import LiveEntries
from icebench.engine.plan.pruning import SummaryStatistics, bounds_of_values
from icebench.engine.spec.manifest import ManifestContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partition_paths import human_string
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.properties import MANIFEST_TARGET_SIZE_BYTES
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import UnknownTransform, Void
from icebench.engine.spec.types import UNKNOWN, PrimitiveType

LISTED = 5
"""How many partitions are named."""


class PartitionPaths:
    """Formats partitions as their directories are named, unescaped. Holds the values of one file per partition."""

    def __init__(self, files: LiveFiles, metadata: TableMetadata) -> None:
        first = np.unique(files.partition, return_index=True)[1]
        self._metadata = metadata
        self._place: dict[int, tuple[PartitionSpec, int, list[Any]]] = {}
        end = 0
        for each in files.data:
            start, end = end, end + len(each)
            own = first[(first >= start) & (first < end)]
            if len(own):
                spec = metadata.spec_by_id[each.manifest.partition_spec_id]
                values = list(self._values(each, spec, each.rows[own - start]))
                codes = files.partition[own].tolist()
                self._place.update((code, (spec, place, values)) for place, code in enumerate(codes))

    def path(self, partition: int) -> str:
        """``day=2026-01-31/kind=a``; empty for unpartitioned files."""
        spec, place, values = self._place[partition]
        return "/".join(
            f"{f.name}={self._text(f, column.slice(place, 1))}" for f, column in zip(spec.fields, values, strict=True)
        )

    def _values(self, entries: LiveEntries, spec: PartitionSpec, rows: Int64Array) -> Iterator[Any]:
        for f in spec.fields:
            column = entries.columns.get("partition", f.field_id)
            if isinstance(f.transform, UnknownTransform):
                yield any_values(column, rows)
            else:
                yield partition_values(self._result(f), column, rows)

    def _text(self, f: PartitionField, value: Any) -> str:  # noqa: ANN401 - an Arrow array of one value
        if isinstance(f.transform, UnknownTransform):
            return str(value[0])
        source = source_type(f, self._metadata) or UNKNOWN
        return human_string(f.transform, source, from_arrow_array(self._result(f), value)[0])

    def _result(self, f: PartitionField) -> PrimitiveType:
        source = source_type(f, self._metadata)
        return UNKNOWN if source is None else f.transform.result_type(source)


def source_type(f: PartitionField, metadata: TableMetadata) -> PrimitiveType | None:
    """The type of a field's source column in the newest schema that has it; None if no schema does."""
    schema = schema_with(f.source_id, metadata)
    found = None if schema is None else schema.by_id[f.source_id].type
    return found if isinstance(found, PrimitiveType) else None


def schema_with(field_id: int, metadata: TableMetadata) -> Schema | None:
    """The current schema, or the newest that has the column."""
    return next((s for s in (metadata.schema, *reversed(metadata.schemas)) if field_id in s.by_id), None)


def partition_figures(files: LiveFiles, paths: PartitionPaths, smallest_bytes: int) -> PartitionFigures:
    """Figures of partition sizes, and the largest partitions."""
    count = files.partitions
    sizes = sum_by(files.partition, files.size_bytes, count)
    numbers = np.bincount(files.partition, minlength=count)
    records = sum_by(files.partition, files.records, count)
    largest = np.argsort(-sizes, kind="stable")[:LISTED].tolist()
    return PartitionFigures(
        partitions=count,
        files=quantiles(numbers),
        sizes=quantiles(sizes),
        skew=float(sizes.max() / sizes.mean()) if sizes.any() else 1.0,
        small_partitions=int((sizes < smallest_bytes).sum()),
        largest=tuple(
            PartitionSize(path=paths.path(i), files=int(numbers[i]), records=int(records[i]), size_bytes=int(sizes[i]))
            for i in largest
        ),
    )


def sorted_groups(files: LiveFiles) -> float:
    """`icebench.engine.maintenance.profile.health.Examined.sorted_groups`."""
    sizes = sum_by(files.partition, files.size_bytes, files.partitions)
    if not sizes.any():
        return 1.0
    groups = np.maximum(1, -(-sizes // DEFAULT_SORTED_GROUP_SIZE_BYTES))
    return float(np.average(groups, weights=sizes))


def manifest_figures(files: LiveFiles, metadata: TableMetadata, commits: Commits) -> ManifestFigures:
    """Figures of manifests, and their clustering by each partition field."""
    sizes = np.array([m.manifest_length for m in files.manifests], np.int64)
    both = (*files.data, *files.deletes)
    live = sum(map(len, both))
    own = [m for m in files.manifests if m.content == ManifestContent.DATA]
    target = MANIFEST_TARGET_SIZE_BYTES.of(metadata.properties)
    fields = {f.field_id: f for spec in metadata.partition_specs for f in spec.fields}
    possible = max(1, -(-sum(m.manifest_length for m in own) // target))
    clustering = (_clustering(f, files, metadata, possible) for f in fields.values())
    opened = [m for m in files.manifests if m.added_files_count != 0 or m.existing_files_count != 0]
    lengths: dict[tuple[int, ManifestContent], int] = {}
    for each in opened:
        kind = each.partition_spec_id, each.content
        lengths[kind] = lengths.get(kind, 0) + each.manifest_length
    return ManifestFigures(
        data_manifests=len(own),
        delete_manifests=len(files.manifests) - len(own),
        size_bytes=int(sizes.sum()),
        sizes=quantiles(sizes),
        live_entries=live,
        deleted_entries=sum(each.columns.count for each in both) - live,
        opened_manifests=len(opened),
        target_manifests=sum(max(1, -(-length // target)) for length in lengths.values()),
        age=mean(commits.ages_of_manifests(opened)),
        clustering=tuple(each for each in clustering if each is not None),
    )


def _clustering(
    field: PartitionField, files: LiveFiles, metadata: TableMetadata, target_manifests: int
) -> ManifestClustering | None:
    """The clustering by one field; None if its type has no order, or no file has a value."""
    source = source_type(field, metadata)
    if source is None or isinstance(field.transform, UnknownTransform | Void) or not field.transform.accepts(source):
        return None
    type_ = field.transform.result_type(source)
    data = [each for each in files.data if len(each)]  # plans skip the others by their counts
    values: list[Vector] = []
    bounds: list[ColumnBounds] = []
    for spec in metadata.partition_specs:
        own = [each for each in data if each.manifest.partition_spec_id == spec.spec_id]
        index = next((i for i, f in enumerate(spec.fields) if _is_same(f, field)), None)
        if index is None or not own:
            continue
        for each in own:
            column = each.columns.get("partition", field.field_id)
            found = None if column is None else bounds_of_values(type_, column, each.columns.count)
            if found is not None and found.lower is not None:
                values.append(select_rows(found.lower, each.rows))
        bounds.append(SummaryStatistics([e.manifest for e in own], spec, metadata.schema).bounds(index, type_))
    stated = [vector for each in bounds for vector in (each.lower, each.upper) if vector is not None]
    ranks = rank_values([*values, *stated])
    known = [own if v.valid is None else own[v.valid] for own, v in zip(ranks, values, strict=False)]
    if not any(map(len, known)):
        return None
    distinct, counts = np.unique(np.concatenate(known), return_counts=True)
    low, high = _ranges(bounds, iter(ranks[len(values) :]))
    others = len(data) - sum(each.count for each in bounds)
    begun = np.searchsorted(low, distinct, side="right")
    ended = np.searchsorted(high, distinct, side="left")
    return ManifestClustering(
        name=field.name,
        values=len(distinct),
        opened=float((begun - ended).mean()) + others,
        holding=sum(len(np.unique(own)) for own in known) / len(distinct),
        possible=float(np.maximum(1, np.ceil(counts / len(files) * target_manifests)).mean()),
    )


def _is_same(field: PartitionField, other: PartitionField) -> bool:
    return field.field_id == other.field_id and field.transform == other.transform


def _ranges(bounds: Sequence[ColumnBounds], ranks: Iterator[Int64Array]) -> tuple[Int64Array, Int64Array]:
    """The sorted lower and upper ends of the manifests' ranges of values; unknown ends are unbounded."""
    lows, highs = [], []
    for each in bounds:
        may_hold = np.broadcast_to(each.presence.value, (each.count,))
        lows.append(_ends(each.lower, ranks, np.iinfo(np.int64).min, each.count)[may_hold])
        highs.append(_ends(each.upper, ranks, np.iinfo(np.int64).max, each.count)[may_hold])
    return np.sort(np.concatenate(lows)), np.sort(np.concatenate(highs))


def _ends(vector: Vector | None, ranks: Iterator[Int64Array], otherwise: int, count: int) -> Int64Array:
    if vector is None:
        return np.full(count, otherwise, np.int64)
    found = next(ranks)
    return found if vector.valid is None else np.where(vector.valid, found, otherwise)
