"""Numbers for equal things: file paths and partition tuples of many manifests, as dense codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.codec.columns import BoolArray, BytesColumn, FixedColumn, Int64Array, PartitionColumn
from engine.errors import CorruptTable
from engine.expressions.kernels import big_endian
from engine.expressions.vectors import mask_of
from engine.plan.arrow_columns import validity
from engine.plan.manifests import LiveEntries
from engine.spec.metadata import TableMetadata
from engine.spec.types import DecimalType

_DECIMAL_BYTES = 17


def binary_array(column: BytesColumn, rows: Int64Array | None = None) -> pa.Array:
    """Byte strings of these rows (None: all) as Arrow's large binary, which no number of files overflows."""
    buffers = [
        validity(column.valid),
        pa.py_buffer(np.ascontiguousarray(column.offsets)),
        pa.py_buffer(np.ascontiguousarray(column.data)),
    ]
    array = pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    return array if rows is None or len(rows) == len(column) else array.take(pa.array(rows))


def bytes_column(array: pa.Array) -> BytesColumn:
    """A large binary array, not a slice of one, as numpy has it."""
    assert array.offset == 0
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64, len(array) + 1) if len(array) else np.zeros(1, np.int64)
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return BytesColumn(ends, raw, mask_of_array(array) if array.null_count else None)


def mask_of_array(array: pa.Array) -> BoolArray:
    """Where an array has a value."""
    valid: BoolArray = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def codes_of(array: pa.Array) -> Int64Array:
    """For each value a number that only its equals have, from 0 without gaps; null is a value."""
    codes: Int64Array = array.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)


def partition_codes(entries: Sequence[LiveEntries], metadata: TableMetadata) -> Int64Array:
    """For each of these entries, in order, a number that only entries of the same spec and partition tuple have.

    Values are equal as the spec has it for partitions: floats by their bits, with one NaN.
    """
    codes = np.concatenate([np.full(len(e), e.manifest.partition_spec_id, np.int64) for e in entries])
    codes = codes_of(pa.array(codes))
    field_ids = sorted({field_id for each in entries for field_id in each.columns.partition})
    decimals = _decimal_fields(metadata)
    for field_id in field_ids:
        columns = [each.columns.partition.get(field_id) for each in entries]
        own = _value_codes(columns, [each.rows for each in entries], is_decimal=field_id in decimals)
        # Dense again after each field, so that the product of many cannot overflow.
        codes = codes_of(pa.array(codes * (own.max(initial=0) + 1) + own))
    return codes


def _decimal_fields(metadata: TableMetadata) -> frozenset[int]:
    found = set()
    for spec in metadata.partition_specs:
        for field in spec.fields:
            for schema in metadata.schemas:
                source = schema.by_id.get(field.source_id)
                if source is not None and isinstance(source.type, DecimalType):
                    found.add(field.field_id)
    return frozenset(found)


def _value_codes(
    columns: Sequence[PartitionColumn | None], rows: Sequence[Int64Array], *, is_decimal: bool
) -> Int64Array:
    """Codes of one partition field's values; a manifest without the field has nulls."""
    if any(isinstance(column, BytesColumn) for column in columns):
        if any(isinstance(column, FixedColumn) for column in columns):
            raise CorruptTable("a partition field with values of several types")
        texts = [_bytes_or_nulls(column, r, is_decimal=is_decimal) for column, r in zip(columns, rows, strict=True)]
        return codes_of(pa.concat_arrays(texts))
    floating = any(column is not None and column.values.dtype.kind == "f" for column in columns)  # type: ignore[union-attr]
    parts = [_number_bits(column, r, floating=floating) for column, r in zip(columns, rows, strict=True)]
    values, valid = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    return codes_of(pa.array(values, mask=~valid))


def _bytes_or_nulls(column: PartitionColumn | None, rows: Int64Array, *, is_decimal: bool) -> pa.Array:
    if column is None:
        return pa.nulls(len(rows), pa.large_binary())
    assert isinstance(column, BytesColumn)
    if not is_decimal:
        return binary_array(column, rows)
    # The same number may have been written in several widths.
    keys, fits = big_endian(column.offsets, column.data, mask_of(column.valid), _DECIMAL_BYTES)
    return binary_array(BytesColumn(np.arange(len(fits) + 1, dtype=np.int64) * _DECIMAL_BYTES, keys, fits), rows)


def _number_bits(column: PartitionColumn | None, rows: Int64Array, *, floating: bool) -> tuple[NDArray[Any], BoolArray]:
    if column is None:
        return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    assert isinstance(column, FixedColumn)
    values = column.values[rows]
    if floating:
        numbers = values.astype(np.float64)
        bits = np.where(np.isnan(numbers), np.float64(np.nan), numbers).view(np.int64)
    else:
        bits = values.astype(np.int64)
    return bits, np.ones(len(rows), np.bool_) if column.valid is None else column.valid[rows]
