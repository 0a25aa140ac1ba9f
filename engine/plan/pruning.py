"""Statistics of manifests and of their entries, as sources for the evaluator of `icebench.engine.expressions.bounds`.

`SummaryStatistics` has a row per manifest of one partition spec, from its manifest list. `PartitionStatistics` and
`MetricStatistics` have a row per entry of one manifest, from its partition tuples and its column metrics. All are about
source columns: partition values are converted by `icebench.engine.expressions.partitions`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import ManifestColumns, data_of, offsets_of, valid_of, values_of
from icebench.engine.expressions.bounds import ColumnBounds, Evidence, Flags, Presence
from icebench.engine.expressions.partitions import source_evidence
from icebench.engine.expressions.uuid_bounds import believed_bounds
from icebench.engine.expressions.vectors import (
    BytesVector,
    NumberVector,
    Vector,
    from_big_endian,
    from_serialized,
    pack,
    representation,
)
from icebench.engine.plan.trusted_metrics import metric_bounds
from icebench.engine.spec.manifest import ManifestFile, PartitionFieldSummary
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import DecimalType, PrimitiveType


def fields_of_source(spec: PartitionSpec, field_id: int) -> list[tuple[int, PartitionField]]:
    """The partition fields of this column alone, with their positions in the spec."""
    return [(i, f) for i, f in enumerate(spec.fields) if f.source_ids == (field_id,)]


def columns_decided_by_partition(spec: PartitionSpec) -> frozenset[int]:
    """The columns whose exact value the partition tuple has, so that metrics add nothing."""
    return frozenset(f.source_id for f in spec.fields if isinstance(f.transform, Identity) and len(f.source_ids) == 1)


def _source_type(schema: Schema, field_id: int) -> PrimitiveType | None:
    field = schema.by_id.get(field_id)
    return field.type if field is not None and isinstance(field.type, PrimitiveType) else None


class SummaryStatistics:
    """Partition summaries of manifests that were written with one spec (spec: "Manifest Lists", `field_summary`)."""

    def __init__(self, manifests: Sequence[ManifestFile], spec: PartitionSpec, schema: Schema) -> None:
        self._manifests = manifests
        self._spec = spec
        self._schema = schema

    @property
    def count(self) -> int:
        """The number of manifests."""
        return len(self._manifests)

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        """Evidence from the summaries of the fields of this column."""
        source = _source_type(self._schema, field_id)
        if source is None:
            return ()
        found = []
        for index, field in fields_of_source(self._spec, field_id):
            if field.transform.accepts(source):
                bounds = self.bounds(index, field.transform.result_type(source))
                found.append(source_evidence(field.transform, source, bounds))
        return [each for each in found if each is not None]

    def bounds(self, index: int, type_: PrimitiveType) -> ColumnBounds:
        """Bounds from the summaries of the partition field at this position, whose values have this type."""
        summaries = [self._summary(manifest, index) for manifest in self._manifests]
        null = [s is None or s.contains_null for s in summaries]
        # The absence of NaN is not believed: Paimon states it for every manifest (apache/paimon 7788).
        value = [s is None or _may_have_values(s) for s in summaries]
        lower = _serialized(type_, [None if s is None else s.lower_bound for s in summaries])
        upper = _serialized(type_, [None if s is None else s.upper_bound for s in summaries])
        lower, upper = believed_bounds(type_, lower, upper, len(summaries))
        return ColumnBounds(
            count=len(summaries),
            lower=lower,
            upper=upper,
            presence=Presence(null=np.array(null, np.bool_), value=np.array(value, np.bool_)),
        )

    def _summary(self, manifest: ManifestFile, index: int) -> PartitionFieldSummary | None:
        """The summary of a field; None if the writer left summaries out, or has not one per field."""
        if manifest.partitions is None or len(manifest.partitions) != len(self._spec.fields):
            return None
        return manifest.partitions[index]


def _may_have_values(summary: PartitionFieldSummary) -> bool:
    """Bounds are missing exactly if all values are null or NaN, one of which must then be present."""
    bounded = summary.lower_bound is not None or summary.upper_bound is not None
    return bounded or not (summary.contains_null or summary.contains_nan)


def _serialized(type_: PrimitiveType, values: Sequence[bytes | None]) -> Vector | None:
    offsets, data = pack([b"" if v is None else v for v in values])
    return from_serialized(type_, offsets, data, np.array([v is not None for v in values], np.bool_))


class PartitionStatistics:
    """Partition tuples of a manifest's entries."""

    def __init__(self, columns: ManifestColumns, spec: PartitionSpec, schema: Schema) -> None:
        self._columns = columns
        self._spec = spec
        self._schema = schema

    @property
    def count(self) -> int:
        """The number of entries."""
        return self._columns.count

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        """Evidence from the values of the fields of this column."""
        source = _source_type(self._schema, field_id)
        if source is None:
            return ()
        found = []
        for _, field in fields_of_source(self._spec, field_id):
            values = self._columns.get("partition", field.field_id)
            if values is None or not field.transform.accepts(source):
                continue
            bounds = bounds_of_values(field.transform.result_type(source), values, self.count)
            found.append(None if bounds is None else source_evidence(field.transform, source, bounds))
        return [each for each in found if each is not None]


def bounds_of_values(type_: PrimitiveType, column: pa.Array, count: int) -> ColumnBounds | None:
    """Partition values as equal bounds; None if the column does not hold values of this type."""
    valid = valid_of(column)
    present: Flags = True if valid is None else valid
    null: Flags = False if valid is None else ~valid
    held = representation(type_)
    vector: Vector
    if pa.types.is_large_binary(column.type):
        offsets, data = offsets_of(column), data_of(column)
        if isinstance(type_, DecimalType):
            vector = from_big_endian(type_, offsets, data, valid)
        elif held == "bytes":
            vector = BytesVector(offsets, data, valid)
        else:
            return None
        return ColumnBounds(count, vector, vector, Presence(null=null, nan=False, value=present))
    if held == "float":
        numbers = values_of(column).astype(np.float64, copy=False)
        nan = np.isnan(numbers) & present
        vector = NumberVector(numbers, present & ~nan)
        return ColumnBounds(count, vector, vector, Presence(null=null, nan=nan, value=present & ~nan))
    if held != "whole" or isinstance(type_, DecimalType):
        return None
    vector = NumberVector(values_of(column).astype(np.int64, copy=False), valid)
    return ColumnBounds(count, vector, vector, Presence(null=null, nan=False, value=present))


class MetricStatistics:
    """Column metrics of a manifest's entries (spec: "Field-level Metrics and Statistics").

    A column that is missing in a file's maps is unknown: it may have been added later, or written without metrics.
    """

    def __init__(self, columns: ManifestColumns, schema: Schema) -> None:
        self._columns = columns
        self._schema = schema

    @property
    def count(self) -> int:
        """The number of entries."""
        return self._columns.count

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        """Evidence from the bounds and counts of a column."""
        bounds = self.bounds(field_id)
        return () if bounds is None else (bounds,)

    def bounds(self, field_id: int) -> ColumnBounds | None:
        """Bounds and presence of a column; None for a nested one."""
        type_ = _source_type(self._schema, field_id)
        return None if type_ is None else metric_bounds(self._columns, field_id, self._schema)
