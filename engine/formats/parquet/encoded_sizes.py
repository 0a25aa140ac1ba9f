"""Sizes of values in Parquet's plain encoding, before compression."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

_LENGTH_BYTES = 4


def encoded_width(type_: pa.DataType) -> float | None:
    """Bytes of a value of a fixed-width leaf type in Parquet's plain encoding; None for other types."""
    if pat.is_decimal(type_):
        return 4 if type_.precision <= 9 else 8 if type_.precision <= 18 else 16
    if isinstance(type_, pa.BaseExtensionType):
        return encoded_width(type_.storage_type)
    if pat.is_boolean(type_):
        return 1 / 8
    return type_.bit_width / 8 if pat.is_primitive(type_) or pat.is_fixed_size_binary(type_) else None


def encoded_size(batch: pa.RecordBatch) -> int:
    """Estimated bytes of a batch in Parquet before dictionaries and compression."""
    total = 0.0
    for column in batch.columns:
        width = encoded_width(column.type)
        total += column.nbytes if width is None else width * len(column)
    return int(total)


def plain_size(values: pa.Array | pa.ChunkedArray) -> float:
    """Bytes of the values of a leaf that are not null."""
    count = len(values) - values.null_count
    width = encoded_width(values.type)
    if width is not None:
        return count * width
    return count * _LENGTH_BYTES + (pc.sum(pc.binary_length(values)).as_py() or 0)
