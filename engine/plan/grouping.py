"""Dense codes of equal values: file paths and partition tuples across manifests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import (
    Int64Array,
    bytes_array,
    data_of,
    number_array,
    offsets_of,
    valid_of,
    values_of,
)
from icebench.engine.codec.taking import take
from icebench.engine.errors import CorruptTable
from icebench.engine.expressions.vectors import big_endian
from icebench.engine.plan.manifests import LiveEntries
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.types import DecimalType

_DECIMAL_BYTES = 17


def codes_of(array: pa.Array) -> Int64Array:
    """A dense code for each value, equal for equal values; null is a value."""
    # Arrow's own conversion to numpy loads pandas.
    return values_of(array.dictionary_encode(null_encoding="encode").indices).astype(np.int64)


def partition_codes(entries: Sequence[LiveEntries], metadata: TableMetadata) -> Int64Array:
    """A code for each entry, in order; entries have the same code exactly if they have the same spec and partition
    tuple.

    Values are equal as the spec has it for partitions: floats by their bits, with one NaN.
    """
    codes = np.concatenate([np.full(len(e), e.manifest.partition_spec_id, np.int64) for e in entries])
    codes = codes_of(number_array(codes))
    field_ids = sorted({field_id for each in entries for field_id in each.columns.keys_of("partition")})
    decimals = _decimal_fields(metadata)
    for field_id in field_ids:
        columns = [each.columns.get("partition", field_id) for each in entries]
        own = _value_codes(columns, [each.rows for each in entries], is_decimal=field_id in decimals)
        # Dense again after each field, so that the product of many cannot overflow.
        codes = codes_of(number_array(codes * (own.max(initial=0) + 1) + own))
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


def _value_codes(columns: Sequence[pa.Array | None], rows: Sequence[Int64Array], *, is_decimal: bool) -> Int64Array:
    """Codes of one partition field's values; null for manifests without the field."""
    known = [column.type for column in columns if column is not None]
    if any(pa.types.is_large_binary(type_) for type_ in known):
        if not all(pa.types.is_large_binary(type_) for type_ in known):
            raise CorruptTable("a partition field with values of several types")
        texts = [_bytes_or_nulls(column, r, is_decimal=is_decimal) for column, r in zip(columns, rows, strict=True)]
        return codes_of(pa.concat_arrays(texts))
    floating = any(pa.types.is_floating(type_) for type_ in known)
    parts = [_number_bits(column, r, floating=floating) for column, r in zip(columns, rows, strict=True)]
    return codes_of(pa.concat_arrays(parts))


def _bytes_or_nulls(column: pa.Array | None, rows: Int64Array, *, is_decimal: bool) -> pa.Array:
    if column is None:
        return pa.nulls(len(rows), pa.large_binary())
    chosen = take(column, rows)
    if not is_decimal:
        return chosen
    # The same number may have been written in several widths.
    keys, fits = big_endian(offsets_of(chosen), data_of(chosen), valid_of(chosen), _DECIMAL_BYTES)
    return bytes_array(np.arange(len(fits) + 1, dtype=np.int64) * _DECIMAL_BYTES, keys, fits)


def _number_bits(column: pa.Array | None, rows: Int64Array, *, floating: bool) -> pa.Array:
    if column is None:
        return pa.nulls(len(rows), pa.int64())
    chosen = take(column, rows)
    values = values_of(chosen)
    if not floating:
        return number_array(values.astype(np.int64, copy=False), valid_of(chosen))
    numbers = values.astype(np.float64)
    return number_array(np.where(np.isnan(numbers), np.float64(np.nan), numbers).view(np.int64), valid_of(chosen))
