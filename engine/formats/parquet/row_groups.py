"""Parquet row-group statistics as a source for the evaluator of `icebench.engine.expressions.bounds`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pyarrow.types as pat

from icebench.engine.columnar.schemas import Leaf, field_id_of
from icebench.engine.expressions.bounds import ColumnBounds, Evaluator, Evidence, Presence
from icebench.engine.expressions.literal_intervals import TRUE
from icebench.engine.expressions.vectors import vector_of
from icebench.engine.formats.file_columns import FileColumns
from icebench.engine.formats.parquet.footer_chunks import ChunkStatistics, FooterChunks
from icebench.engine.formats.parquet.metrics import physical_value
from icebench.engine.spec.calendar import UNITS_PER_DAY
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import DecimalType, PrimitiveType
from icebench.engine.spec.values import Value, decimal_of

_PLAIN = {
    "BOOLEAN": struct.Struct("<?"),
    "INT32": struct.Struct("<i"),
    "INT64": struct.Struct("<q"),
    "FLOAT": struct.Struct("<f"),
    "DOUBLE": struct.Struct("<d"),
}
"""Plain encoding of physical types; INT96 has no order."""
_SIGNED = frozenset({"INT32", "INT64", "FLOAT", "DOUBLE"})


class RowGroupStatistics:
    """Statistics of the row groups of one file.

    pyarrow's objects of column chunks and statistics are not used: some damaged ones end the process.

    Args:
        footer: The file's metadata.
        chunks: Its column chunks.
        columns: The file's columns.
        schema: The table's types.
        missing: Returns the value of a column that the file lacks.
    """

    def __init__(
        self,
        footer: pq.FileMetaData,
        chunks: FooterChunks,
        columns: FileColumns,
        schema: Schema,
        missing: Callable[[int], Value | None],
    ) -> None:
        self._footer = footer
        self._chunks = chunks
        self._schema = schema
        self._missing = missing
        self._leaves: Mapping[int | None, Leaf] = {field_id_of(leaf.field): leaf for leaf in columns.leaves}

    @property
    def count(self) -> int:
        """The number of row groups."""
        return int(self._footer.num_row_groups)

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        """Bounds and null counts of a column; empty if the file has none."""
        type_ = self._schema.by_id[field_id].type
        if not isinstance(type_, PrimitiveType) or type_.name == "variant":  # a variant has several leaves, without ids
            return ()
        leaf = self._leaves.get(field_id)
        if leaf is None:
            # A missing field of a struct that the file has is null where the struct is: that is not one value.
            return () if field_id in self._schema.parent_of else (self._constant(type_, self._missing(field_id)),)
        if leaf.repeated:
            return ()
        stored = self._footer.schema.column(leaf.index)
        found = [self._statistics(group, leaf.index, stored.physical_type) for group in range(self.count)]
        bounds = [_bounds(leaf, type_, stored, statistics) for statistics in found]
        may_be_null = np.array([s is None or s.nulls is None or s.nulls > 0 for s in found], np.bool_)
        may_have_value = np.array([s is None or s.nulls is None or s.nulls < s.values for s in found], np.bool_)
        return (
            ColumnBounds(
                count=self.count,
                lower=vector_of(type_, [pair[0] for pair in bounds]),
                upper=vector_of(type_, [pair[1] for pair in bounds]),
                presence=Presence(null=may_be_null, value=may_have_value, nan=may_have_value),
            ),
        )

    def _statistics(self, row_group: int, leaf: int, physical_type: str) -> ChunkStatistics | None:
        """Those of a leaf outside of lists; None where they count other values than the row group has rows."""
        found = self._chunks.statistics(row_group, leaf, physical_type)
        return found if found is not None and found.values == self._rows[row_group] else None

    @cached_property
    def _rows(self) -> list[int]:
        """How many rows each row group has."""
        return [self._footer.row_group(group).num_rows for group in range(self.count)]

    def _constant(self, type_: PrimitiveType, value: Value | None) -> ColumnBounds:
        is_nan = isinstance(value, float) and value != value  # noqa: PLR0124 - NaN
        vector = vector_of(type_, [value] * self.count)
        presence = Presence(null=value is None, nan=is_nan, value=value is not None and not is_nan)
        return ColumnBounds(count=self.count, lower=vector, upper=vector, presence=presence)


def _bounds(
    leaf: Leaf, type_: PrimitiveType, stored: pq.ColumnSchema, statistics: ChunkStatistics | None
) -> tuple[Any, Any]:
    """Lower and upper bound in the internal representation (text and uuid as bytes), None where not known."""
    if statistics is None or pat.is_unsigned_integer(leaf.field.type):
        return None, None
    if statistics.is_signed and stored.physical_type not in _SIGNED:
        return None, None
    lower, upper = (_decoded(raw, stored) for raw in (statistics.lower, statistics.upper))
    # Zeros are equal in a footer's order, so either may be the bound.
    lower, upper = -0.0 if _is_zero(lower) else lower, 0.0 if _is_zero(upper) else upper
    return None if lower is None else _value(leaf, type_, lower), None if upper is None else _value(leaf, type_, upper)


def _decoded(raw: bytes | None, stored: pq.ColumnSchema) -> Any:  # noqa: ANN401 - Parquet's physical types
    """Decode a bound from its plain encoding; None if it is no bound."""
    if raw is None or stored.physical_type == "BYTE_ARRAY":
        return raw
    if stored.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return raw if len(raw) == stored.length else None
    form = _PLAIN.get(stored.physical_type)
    if form is None or len(raw) != form.size:
        return None
    value = form.unpack(raw)[0]
    return None if value != value else value  # noqa: PLR0124 - NaN


def _is_zero(value: Any) -> bool:  # noqa: ANN401 - Parquet's physical types
    return isinstance(value, float) and value == 0


def _value(leaf: Leaf, type_: PrimitiveType, raw: Any) -> Any:  # noqa: ANN401 - Parquet's physical types
    value = physical_value(leaf, type_, raw)
    if isinstance(type_, DecimalType):
        stored = leaf.field.type
        same = pat.is_decimal(stored) and stored.scale == type_.scale and isinstance(value, int)
        return decimal_of(value, type_.scale) if same else None
    if pat.is_date(leaf.field.type) and type_.name != "date":
        return value * UNITS_PER_DAY[type_.name] if type_.name in UNITS_PER_DAY else None
    return value


def matching_row_groups(source: RowGroupStatistics, filter: Evaluator) -> tuple[int, ...]:
    """The row groups in which a row may match; the others have none."""
    outcomes = filter.outcomes(source)
    return tuple(int(i) for i in np.flatnonzero(outcomes & TRUE))
