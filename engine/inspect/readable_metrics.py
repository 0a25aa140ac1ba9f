"""Column metrics with names and typed bounds: the column ``readable_metrics`` of ``files`` and ``entries``."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.errors import CorruptTable
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import INCOMPARABLE, DecimalType, PrimitiveType
from icebench.engine.spec.values import Value, decode_value

_COUNTS = ("column_size", "value_count", "null_value_count", "nan_value_count")
_NO_BOUNDS = INCOMPARABLE | {"unknown"}


def readable_metrics(schema: Schema, rows: Sequence[DataFile]) -> pa.Array:
    """One struct per file with one struct per primitive column, named by the column's full name, in order of names:
    column_size, value_count, null_value_count, nan_value_count, lower_bound, upper_bound (of the column's type)."""
    columns = sorted((schema.name_of[f.field_id], f) for f in schema.walk() if isinstance(f.type, PrimitiveType))
    arrays, fields = [], []
    for name, column in columns:
        assert isinstance(column.type, PrimitiveType)
        made = _column(column.field_id, column.type, rows)
        arrays.append(made)
        fields.append(pa.field(name, made.type))
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _column(field_id: int, type_: PrimitiveType, rows: Sequence[DataFile]) -> pa.StructArray:
    counted = (
        [f.column_sizes for f in rows],
        [f.value_counts for f in rows],
        [f.null_value_counts for f in rows],
        [f.nan_value_counts for f in rows],
    )
    arrays = [pa.array([m.get(field_id) for m in maps], pa.int64()) for maps in counted]
    arrays.append(_bounds(field_id, type_, rows, "lower_bounds"))
    arrays.append(_bounds(field_id, type_, rows, "upper_bounds"))
    names = (*_COUNTS, "lower_bound", "upper_bound")
    return pa.StructArray.from_arrays(arrays, fields=[pa.field(n, a.type) for n, a in zip(names, arrays, strict=True)])


def _bounds(field_id: int, type_: PrimitiveType, rows: Sequence[DataFile], map_name: str) -> pa.Array:
    raw: list[bytes | None] = [getattr(f, map_name).get(field_id) for f in rows]
    if type_.name in _NO_BOUNDS:
        return pa.array(raw, pa.binary())
    return to_arrow_array(
        type_, [_decoded(type_, b, f, f"{map_name}.{field_id}") for b, f in zip(raw, rows, strict=True)]
    )


def _decoded(type_: PrimitiveType, bound: bytes | None, file: DataFile, path: str) -> Value | None:
    try:
        value = None if bound is None else decode_value(type_, bound)
    except CorruptTable as error:
        raise CorruptTable(error.reason, location=f"the manifest entry of {file.file_path}", path=path) from error
    # StarRocks writes decimals as Parquet encodes them (StarRocks 69207), which may have more digits than the type.
    if isinstance(type_, DecimalType) and isinstance(value, Decimal) and len(value.as_tuple().digits) > type_.precision:
        return None
    return value
