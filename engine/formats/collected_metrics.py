"""Column metrics of a data file from the rows that are written, for formats whose writers report none.

They are those of `icebench.engine.formats.parquet.metrics` without the sizes of columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from icebench.engine.columnar.schemas import child_fields, field_id_of, storage_of
from icebench.engine.formats.metrics_modes import MetricsMode
from icebench.engine.formats.parquet.metrics import FileMetrics, lower_bound, upper_bound
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import DecimalType, GeospatialType, PrimitiveType
from icebench.engine.spec.values import unscaled


class MetricsCollector:
    """Counts, and keeps the least and the greatest value of each column that is not in a list or map.

    Args:
        schema: The table schema that the ids of the batches refer to.
        modes: Column id -> metrics mode.
    """

    def __init__(self, schema: Schema, modes: Mapping[int, MetricsMode]) -> None:
        types = {i: f.type for i, f in schema.by_id.items()}
        self._columns = {
            i: (type_, modes[i])
            for i, type_ in types.items()
            if isinstance(type_, PrimitiveType) and i in modes and modes[i].kind != "none"
        }
        self._nulls: dict[int, int] = {}
        self._nans: dict[int, int] = {}
        self._ranges: dict[int, tuple[Any, Any]] = {}
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch into account, whose fields have ids."""
        self._rows += batch.num_rows
        for field, column in zip(batch.schema, batch.columns, strict=True):
            self._visit(field, column)

    def _visit(self, field: pa.Field, array: pa.Array) -> None:
        if pat.is_struct(field.type):
            for child, values in zip(child_fields(field.type), array.flatten(), strict=True):
                self._visit(child, values)
        column_id = field_id_of(field)
        if column_id is None or column_id not in self._columns or child_fields(field.type):
            return
        type_, mode = self._columns[column_id]
        self._nulls[column_id] = self._nulls.get(column_id, 0) + array.null_count
        if pat.is_floating(field.type):
            nan = pc.is_nan(array)
            count = int(pc.sum(nan).as_py() or 0)
            self._nans[column_id] = self._nans.get(column_id, 0) + count
            array = array.filter(pc.invert(nan)) if count else array
        if mode.has_bounds and not isinstance(type_, GeospatialType) and array.null_count < len(array):
            found = _value_range(array, type_)
            low, high = self._ranges.get(column_id, found)
            self._ranges[column_id] = min(low, found[0]), max(high, found[1])

    def metrics(self, split_offsets: tuple[int, ...] = ()) -> FileMetrics:
        """The metrics of all batches so far."""
        lowers, uppers = {}, {}
        for column_id, (low, high) in self._ranges.items():
            type_, mode = self._columns[column_id]
            is_float = type_.name in ("float", "double")
            # Zeros are equal, and readers may order them.
            lower = lower_bound(type_, -0.0 if is_float and low == 0 else low, mode)
            upper = upper_bound(type_, 0.0 if is_float and high == 0 else high, mode)
            if lower is not None:
                lowers[column_id] = lower
            if upper is not None:
                uppers[column_id] = upper
        return FileMetrics(
            record_count=self._rows,
            value_counts=dict.fromkeys(self._nulls, self._rows),
            null_value_counts=self._nulls,
            nan_value_counts=self._nans,
            lower_bounds=lowers,
            upper_bounds=uppers,
            split_offsets=split_offsets,
        )


def _value_range(array: pa.Array, type_: PrimitiveType) -> tuple[Any, Any]:
    """The least and the greatest value, as `lower_bound` takes them."""
    stored = storage_of(array)
    if pat.is_dictionary(stored.type):
        stored = stored.dictionary_decode()
    if pat.is_temporal(stored.type):
        stored = stored.view(pa.int32() if stored.type.bit_width == 32 else pa.int64())
    elif pat.is_string(stored.type):
        stored = stored.cast(pa.binary())
    found = pc.min_max(stored).as_py()
    low, high = found["min"], found["max"]
    if isinstance(type_, DecimalType):
        return unscaled(low, type_.scale), unscaled(high, type_.scale)
    return low, high
