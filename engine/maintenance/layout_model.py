"""Models layouts without writing them: the data files that a partition spec and an order would make of rows in memory,
with the partition values and bounds that a plan would see.

Each column is converted to ranks once; ordering the rows then sorts integers, and the bounds of a file are the least
and the greatest rank in it. The evaluator is that of planning, so a file is planned here exactly if it would be planned
in a table whose files have the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.batch_columns import column_by_id
from icebench.engine.columnar.partitions import group_rows
from icebench.engine.columnar.scalars import from_arrow_array
from icebench.engine.errors import Invalid
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bounds import ColumnBounds, Evaluator, Evidence, Presence
from icebench.engine.expressions.literal_intervals import TRUE
from icebench.engine.expressions.partitions import source_evidence
from icebench.engine.expressions.predicate import Predicate
from icebench.engine.expressions.uuid_bounds import believed_bounds
from icebench.engine.expressions.vectors import Vector, from_serialized, pack, vector_of
from icebench.engine.formats.metrics_modes import NONE, MetricsMode, metrics_modes
from icebench.engine.formats.parquet.encoded_sizes import encoded_size
from icebench.engine.formats.parquet.metrics import lower_bound, upper_bound
from icebench.engine.maintenance.file_groups import file_count
from icebench.engine.maintenance.hilbert import hilbert_indexes
from icebench.engine.maintenance.z_order import bits_of_each, interleave_bits, ranked, shares_of_ranks
from icebench.engine.plan.pruning import fields_of_source
from icebench.engine.plan.scan import as_predicate
from icebench.engine.plan.trusted_metrics import MICROSECONDS, trusted_microseconds
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import UNPARTITIONED, Partition, PartitionSpec
from icebench.engine.spec.properties import DEFAULT_FILE_FORMAT, METRICS_DEFAULT, PARQUET_ROW_GROUP_SIZE_BYTES
from icebench.engine.spec.schema import list_of_names
from icebench.engine.spec.types import PrimitiveType

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RankedColumn:
    """The values of a column: for each row a rank among `values`, -1 for null; of floating-point numbers the last
    value may be NaN."""

    type: PrimitiveType
    ranks: Rows
    values: pa.Array

    @cached_property
    def nan(self) -> int | None:
        """The rank of NaN."""
        if self.type.name not in ("float", "double") or not len(self.values):
            return None
        return len(self.values) - 1 if math.isnan(self.values[-1].as_py()) else None


class LayoutModel:
    """Rows to be laid out.

    Args:
        rows: A table's rows, or a sample: columns of its schema, with field ids, as `Table.scan` returns them.
        metadata: The table. Its properties and its sort order say which bounds are kept.
    """

    def __init__(self, rows: pa.Table, metadata: TableMetadata) -> None:
        self.rows = rows
        self.schema = metadata.schema
        self.properties: Mapping[str, str] = metadata.properties
        self.sort_order = metadata.sort_order
        self._ranked: dict[int, RankedColumn] = {}
        self._groups: dict[tuple[Any, ...], tuple[Rows, tuple[Partition, ...]]] = {}

    def ranked(self, column_id: int) -> RankedColumn:
        """A column that is not inside a list or map; raises Invalid where the rows do not have it."""
        if column_id not in self._ranked:
            type_ = self.schema.row_primitive(column_id)
            self._ranked[column_id] = RankedColumn(type_, *ranked(column_by_id(self.rows, self.schema, column_id)))
        return self._ranked[column_id]

    def lay_out(
        self,
        rows_per_file: float,
        *,
        spec: PartitionSpec = UNPARTITIONED,
        sort: Sequence[str] = (),
        zorder: Sequence[str] = (),
        hilbert: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> ModelledLayout:
        """The files that a rewrite of all rows would leave: sorted ascending, nulls first, or along a curve, within
        each partition; without any of the three, in the order of the rows.

        Args:
            rows_per_file: The target size, in rows.
            spec: How files are partitioned.
            sort: Full names of columns.
            zorder: Full names of columns, for Z-order.
            hilbert: Full names of columns, for a Hilbert curve.
            properties: Table properties in addition to the table's own, such as metrics modes.

        Raises:
            Invalid: More than one order, no such column, or no rows in a file.
        """
        if sum(map(bool, (sort, zorder, hilbert))) > 1 or rows_per_file <= 0:
            raise Invalid("rows of a layout have one order, and a file has rows")
        names = list_of_names(sort or zorder or hilbert, "an order")
        keys = [self.ranked(self.schema.find(name).field_id).ranks for name in names]
        if zorder or hilbert:
            bits = bits_of_each(len(keys), "a curve")
            axes = [shares_of_ranks(ranks, bits) for ranks in keys]
            keys = [(interleave_bits(axes, bits) if zorder else hilbert_indexes(axes, bits)).view(np.int64)]
            keys[0] ^= np.iinfo(np.int64).min  # unsigned numbers, in their order as signed ones
        by_row, partitions = self._partitions(spec)
        if spec.fields:
            keys.insert(0, by_row)
        order = np.lexsort(keys[::-1]) if keys else np.arange(self.rows.num_rows)
        sizes = np.bincount(by_row, minlength=len(partitions))
        cuts, start = [0], 0
        for size in sizes.tolist():
            count = file_count(size, rows_per_file)
            cuts += [start + size * (i + 1) // count for i in range(count)]
            start += size
        starts = np.unique(np.array(cuts, np.int64))
        return ModelledLayout(self, spec, order, starts, {**self.properties, **(properties or {})})

    def rows_per_row_group(self, properties: Mapping[str, str] | None = None) -> float:
        """Rows that fill a row group, by the table's properties and these; infinity for formats other than Parquet."""
        known = {**self.properties, **(properties or {})}
        if DEFAULT_FILE_FORMAT.of(known) != "parquet":
            return math.inf
        return PARQUET_ROW_GROUP_SIZE_BYTES.of(known) / self._row_bytes

    @cached_property
    def _row_bytes(self) -> float:
        """The average size of a row before compression, by which the writer fills row groups."""
        size = sum(map(encoded_size, self.rows.to_batches()))
        return max(size, 1) / max(self.rows.num_rows, 1)

    def of_files(self, file_numbers: Rows, *, spec: PartitionSpec = UNPARTITIONED) -> ModelledLayout:
        """The layout in which row i is in file `file_numbers[i]`; a file has rows of one partition."""
        order = np.argsort(file_numbers, kind="stable")
        changes = np.flatnonzero(np.diff(file_numbers[order])) + 1
        ends = [self.rows.num_rows] if self.rows.num_rows else []
        return ModelledLayout(self, spec, order, np.array([0, *changes, *ends], np.int64), self.properties)

    def _partitions(self, spec: PartitionSpec) -> tuple[Rows, tuple[Partition, ...]]:
        """The number of each row's partition, and the partitions by number."""
        key = tuple((f.source_ids, f.transform) for f in spec.fields)
        if key not in self._groups:
            groups = group_rows(self.rows, spec, self.schema)
            numbers = np.repeat(np.arange(len(groups.starts) - 1), np.diff(groups.starts))
            if groups.order is not None:
                numbers[groups.order] = numbers.copy()
            self._groups[key] = (numbers, groups.partitions)
        return self._groups[key]

    def partition_count(self, spec: PartitionSpec) -> int:
        """The number of partitions of the rows."""
        return len(self._partitions(spec)[1])


@dataclass(frozen=True, eq=False)
class ModelledLayout:
    """Files of a `LayoutModel`: file i has the rows `order[starts[i]:starts[i + 1]]`."""

    model: LayoutModel
    spec: PartitionSpec
    order: Rows
    starts: Rows
    properties: Mapping[str, str]

    @property
    def record_counts(self) -> Rows:
        """Rows of each file."""
        return np.diff(self.starts)

    def row_groups(self, rows_per_row_group: float) -> ModelledLayout:
        """The layout in which each row group is a file: what it plans is what a read of the planned files decodes.

        Args:
            rows_per_row_group: Rows of every row group of a file but the last; at least 1.
        """
        size = max(1, round(min(rows_per_row_group, self.model.rows.num_rows)))
        cuts = [np.arange(start, end, size) for start, end in pairwise(self.starts)]
        # Parquet's statistics are whole, whatever metrics a manifest has.
        properties = {METRICS_DEFAULT.name: "full"}
        return ModelledLayout(self.model, self.spec, self.order, np.concatenate([*cuts, self.starts[-1:]]), properties)

    def planned(self, filter: str | Predicate | None) -> npt.NDArray[np.bool_]:
        """For each file, whether a plan with this filter includes it.

        Raises:
            Invalid: The filter does not fit the schema.
            Unsupported: SQL that filters do not support.
        """
        evaluator = Evaluator(bind(as_predicate(filter, self.model.schema), self.model.schema))
        return (evaluator.outcomes(self._statistics) & np.uint8(TRUE)) != 0

    @cached_property
    def _statistics(self) -> _FileStatistics:
        return _FileStatistics(self)


class _FileStatistics:
    """Partition values and bounds of modelled files, by column, as a source for the evaluator."""

    def __init__(self, layout: ModelledLayout) -> None:
        self._layout = layout
        self._evidence: dict[int, list[Evidence]] = {}
        self._modes = metrics_modes(layout.properties, layout.model.schema, layout.model.sort_order)

    @property
    def count(self) -> int:
        return len(self._layout.starts) - 1

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        if field_id not in self._evidence:
            field = self._layout.model.schema.by_id[field_id]
            known = isinstance(field.type, PrimitiveType) and self.count
            self._evidence[field_id] = [*self._of_partitions(field_id), *self._of_metrics(field_id)] if known else []
        return self._evidence[field_id]

    def _of_partitions(self, field_id: int) -> list[Evidence]:
        layout, found = self._layout, []
        source = layout.model.schema.primitive(field_id)
        for index, field in fields_of_source(layout.spec, field_id):
            numbers, partitions = layout.model._partitions(layout.spec)  # noqa: SLF001 - of one module
            values = [partitions[n][index] for n in numbers[layout.order[layout.starts[:-1]]]]
            vector = vector_of(field.transform.result_type(source), values)
            null = np.array([value is None for value in values])
            nan = np.array([isinstance(value, float) and math.isnan(value) for value in values])
            bounds = ColumnBounds(self.count, vector, vector, Presence(null=null, nan=nan, value=~null & ~nan))
            found.append(source_evidence(field.transform, source, bounds))
        return [each for each in found if each is not None]

    def _of_metrics(self, field_id: int) -> list[Evidence]:
        mode = self._modes.get(field_id, NONE)
        if mode.kind == "none":
            return []
        layout = self._layout
        column = layout.model.ranked(field_id)
        ranks, starts = column.ranks[layout.order], layout.starts[:-1]
        nulls = np.add.reduceat(ranks < 0, starts, dtype=np.int64)
        is_nan = ranks == (-2 if column.nan is None else column.nan)
        nans = np.add.reduceat(is_nan, starts, dtype=np.int64)
        has_values = layout.record_counts > nulls + nans
        presence = Presence(null=nulls > 0, nan=nans > 0, value=has_values)
        if not mode.has_bounds:
            return [ColumnBounds(self.count, presence=presence)]
        beyond = len(column.values)
        is_value = (ranks >= 0) & ~is_nan
        least = np.minimum.reduceat(np.where(is_value, ranks, beyond), starts)
        most = np.maximum.reduceat(np.where(is_value, ranks, -1), starts)
        lower = _bounds(column, np.where(has_values, least, -1), mode, upper=False)
        upper = _bounds(column, np.where(has_values, most, -1), mode, upper=True)
        if column.type.name in MICROSECONDS:
            lower, upper = trusted_microseconds(lower, upper)
        one_order = layout.record_counts <= layout.model.rows_per_row_group(layout.properties)
        lower, upper = believed_bounds(column.type, lower, upper, self.count, one_order=one_order)
        return [ColumnBounds(self.count, lower, upper, presence)]


def _bounds(column: RankedColumn, ranks: Rows, mode: MetricsMode, *, upper: bool) -> Vector | None:
    """The bounds that a writer would keep of values of these ranks; none of -1."""
    taken = column.values.take(pa.array(ranks, mask=ranks < 0))
    values = from_arrow_array(column.type, taken)
    if column.type.name not in ("string", "binary"):
        return vector_of(column.type, values)
    shorten = upper_bound if upper else lower_bound
    raw = [v.encode() if isinstance(v, str) else v for v in values]
    cut = [None if v is None else shorten(column.type, v, mode) for v in raw]
    offsets, data = pack([v or b"" for v in cut])
    return from_serialized(column.type, offsets, data, np.array([v is not None for v in cut], np.bool_))
