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
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
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
    spec_ids = [each.manifest.partition_spec_id for each in entries]
    ends = np.cumsum([0, *map(len, entries)])
    codes: Int64Array = np.zeros(ends[-1], np.int64)
    count = 0
    # One spec after the other: fields of two specs may share an id in format version 1, and have values of other types.
    for spec_id in dict.fromkeys(spec_ids):
        chosen = [place for place, each in enumerate(spec_ids) if each == spec_id]
        own = _tuple_codes([entries[place] for place in chosen], metadata.spec_by_id[spec_id], metadata.schemas)
        codes[np.concatenate([np.arange(ends[place], ends[place + 1]) for place in chosen])] = own + count
        count += int(own.max(initial=-1)) + 1
    return codes


def _tuple_codes(entries: Sequence[LiveEntries], spec: PartitionSpec, schemas: Sequence[Schema]) -> Int64Array:
    """As `partition_codes`, of manifests of one spec."""
    codes: Int64Array = np.zeros(sum(map(len, entries)), np.int64)
    for field in spec.fields:
        columns = [each.columns.get("partition", field.field_id) for each in entries]
        sources = [schema.by_id.get(field.source_id) for schema in schemas]
        is_decimal = any(source is not None and isinstance(source.type, DecimalType) for source in sources)
        own = _value_codes(columns, [each.rows for each in entries], is_decimal=is_decimal)
        # Dense again after each field, so that the product of many cannot overflow.
        codes = codes_of(number_array(codes * (own.max(initial=0) + 1) + own))
    return codes


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
