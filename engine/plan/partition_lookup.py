"""Finds manifests that may list files of given partitions, by their summaries in the manifest list."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from icebench.engine.codec.array_views import BoolArray, Int64Array
from icebench.engine.expressions.bounds import ColumnBounds, Flags
from icebench.engine.expressions.vectors import Vector, cuts_of, key, representation
from icebench.engine.plan.pruning import SummaryStatistics
from icebench.engine.spec.manifest import ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import Partition, PartitionSpec
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.spec.values import Value


def may_list_partitions(
    manifests: Sequence[ManifestFile], partitions: Sequence[Partition], spec: PartitionSpec, metadata: TableMetadata
) -> BoolArray:
    """Whether each manifest of a spec may list a file of any of these partitions."""
    summaries = SummaryStatistics(manifests, spec, metadata.schema)
    may_list: BoolArray = np.ones((len(manifests), len(partitions)), np.bool_)
    for index, field in enumerate(spec.partition_type(metadata.schema, metadata.schemas).fields):
        assert isinstance(field.type, PrimitiveType)
        if representation(field.type) is not None:
            bounds = summaries.bounds(index, field.type)
            may_list &= _may_hold(bounds, field.type, [partition[index] for partition in partitions])
    found: BoolArray = np.logical_or.reduce(may_list, axis=1)
    return found


def _may_hold(bounds: ColumnBounds, type_: PrimitiveType, values: Sequence[Value | None]) -> BoolArray:
    """Whether each row of bounds (first axis) may contain each value."""
    null = np.array([value is None for value in values], np.bool_)
    nan = np.array([isinstance(value, float) and math.isnan(value) for value in values], np.bool_)
    present = ~(null | nan)
    found: BoolArray = np.logical_or(null & _column(bounds.presence.null), nan & _column(bounds.presence.nan))
    keys = [key(type_, value) for value, ok in zip(values, present, strict=True) if ok and value is not None]
    if keys:
        ordered = sorted(set(keys))
        cuts = cuts_of(type_, ordered)
        number = {each: i for i, each in enumerate(ordered)}
        # At cut i is interval 2 i + 1; see `engine.expressions.vectors`.
        places = np.zeros(len(values), np.int64)
        places[present] = [2 * number[each] + 1 for each in keys]

        def intervals(vector: Vector | None, otherwise: int) -> Int64Array:
            if vector is None:
                return np.full((bounds.count, 1), otherwise)
            own = vector.intervals(cuts)
            return (own if vector.valid is None else np.where(vector.valid, own, otherwise))[:, np.newaxis]

        inside = (intervals(bounds.lower, 0) <= places) & (places <= intervals(bounds.upper, 2 * len(ordered)))
        found = np.logical_or(found, present & inside & _column(bounds.presence.value))
    return np.broadcast_to(found, (bounds.count, len(values)))


def _column(flags: Flags) -> BoolArray:
    """A flag per row, broadcast against a value per column."""
    column: BoolArray = np.atleast_1d(np.asarray(flags, np.bool_))[:, np.newaxis]
    return column
