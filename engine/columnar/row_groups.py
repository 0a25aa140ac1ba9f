"""Parquet row-group statistics as one more source for the bounds evaluator of `engine.expressions.bounds`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pyarrow.types as pat

from engine.columnar.file_columns import FileColumns
from engine.columnar.metrics import physical_value
from engine.columnar.schemas import Leaf, field_id_of
from engine.expressions.bound import BoundPredicate
from engine.expressions.bounds import ColumnBounds, Evaluator, Evidence, Presence
from engine.expressions.segments import TRUE
from engine.expressions.vectors import vector_of
from engine.spec.schema import Schema
from engine.spec.types import DecimalType, PrimitiveType
from engine.spec.values import Value, decimal_of

_UNITS_PER_DAY = {"timestamp": 86_400_000_000, "timestamp_ns": 86_400_000_000_000}


class RowGroupStatistics:
    """What the footer of one file says of each of its row groups.

    Args:
        footer: The file's metadata.
        columns: The file's columns.
        schema: The table's types.
        missing: Gives the value that a column reads as when the file does not have it.
    """

    def __init__(
        self,
        footer: pq.FileMetaData,
        columns: FileColumns,
        schema: Schema,
        missing: Callable[[int], Value | None],
    ) -> None:
        self._footer = footer
        self._schema = schema
        self._missing = missing
        self._leaves: Mapping[int | None, Leaf] = {field_id_of(leaf.field): leaf for leaf in columns.leaves}

    @property
    def count(self) -> int:
        """How many row groups there are."""
        return int(self._footer.num_row_groups)

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        """Bounds and null counts of a column; nothing where the file does not tell."""
        type_ = self._schema.by_id[field_id].type
        if not isinstance(type_, PrimitiveType):
            return ()
        leaf = self._leaves.get(field_id)
        if leaf is None:
            # A missing field of a struct that the file has is null where the struct is: that is not one value.
            return () if field_id in self._schema.parent_of else (self._constant(type_, self._missing(field_id)),)
        if leaf.repeated:
            return ()
        found = [self._footer.row_group(i).column(leaf.index).statistics for i in range(self.count)]
        bounds = [_bounds(leaf, type_, statistics) for statistics in found]
        return (
            ColumnBounds(
                count=self.count,
                lower=vector_of(type_, [pair[0] for pair in bounds]),
                upper=vector_of(type_, [pair[1] for pair in bounds]),
                presence=Presence(
                    null=np.array([s is None or not s.has_null_count or s.null_count > 0 for s in found], np.bool_),
                    value=np.array([s is None or not s.has_null_count or s.num_values > 0 for s in found], np.bool_),
                    nan=np.array([s is None or not s.has_null_count or s.num_values > 0 for s in found], np.bool_),
                ),
            ),
        )

    def _constant(self, type_: PrimitiveType, value: Value | None) -> ColumnBounds:
        is_nan = isinstance(value, float) and value != value  # noqa: PLR0124 - NaN
        vector = vector_of(type_, [value] * self.count)
        presence = Presence(null=value is None, nan=is_nan, value=value is not None and not is_nan)
        return ColumnBounds(count=self.count, lower=vector, upper=vector, presence=presence)


def _bounds(leaf: Leaf, type_: PrimitiveType, statistics: pq.Statistics | None) -> tuple[Any, Any]:
    """Lower and upper bound in the internal representation (text and uuid as bytes), None where not known."""
    if statistics is None or not statistics.has_min_max:
        return None, None
    return _value(leaf, type_, statistics.min_raw), _value(leaf, type_, statistics.max_raw)


def _value(leaf: Leaf, type_: PrimitiveType, raw: Any) -> Any:  # noqa: ANN401 - Parquet's physical types
    value = physical_value(leaf, type_, raw)
    if isinstance(type_, DecimalType):
        stored = leaf.field.type
        same = pat.is_decimal(stored) and stored.scale == type_.scale and isinstance(value, int)
        return decimal_of(value, type_.scale) if same else None
    if pat.is_date(leaf.field.type) and type_.name in _UNITS_PER_DAY:
        return value * _UNITS_PER_DAY[type_.name]
    return value


def matching_row_groups(source: RowGroupStatistics, bound: BoundPredicate) -> tuple[int, ...]:
    """The row groups in which a row may match; the others hold none for certain."""
    outcomes = Evaluator(bound).outcomes(source)
    return tuple(int(i) for i in np.flatnonzero(outcomes & TRUE))
