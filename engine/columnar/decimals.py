"""Decimals in 4 or 8 bytes a value where their precision allows, instead of Arrow's usual 16.

pyarrow decodes a Parquet decimal as decimal128 unless the file's own stored Arrow schema says otherwise. Few writers
store one, but a footer need not be the file's own: one with the same columns, whose stored Arrow schema asks for
decimal32 and decimal64, takes over the row groups of the file, and the file is opened with that.

Arrow has few functions for narrow decimals, so comparisons and look-ups work on the unscaled integers, of which a
narrow decimal is nothing but another name.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from engine.columnar.schemas import child_fields, is_list, narrow_decimal

_FEWEST_ROWS_A_COLUMN = 100
"""Making the other footer takes 10 microseconds for each of the file's columns, whichever are read: too much for a file
of many columns and few rows."""


def is_narrow(type_: pa.DataType) -> bool:
    """Whether values of the type are decimals of 4 or 8 bytes."""
    return pat.is_decimal32(type_) or pat.is_decimal64(type_)


def unscaled(array: pa.Array) -> pa.Array:
    """The unscaled integers of a narrow decimal array, int32 or int64, in the same memory."""
    return array.view(pa.int32() if pat.is_decimal32(array.type) else pa.int64())


def widened(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Narrow decimals as decimal128 `target` of the same scale: a tenth of the time of Arrow's cast."""
    buffer = pa.allocate_buffer(len(array) * 16)
    words = np.frombuffer(buffer, np.int64).reshape(-1, 2)
    words[:, 0] = np.frombuffer(
        array.buffers()[1],
        np.int32 if pat.is_decimal32(array.type) else np.int64,
        count=len(array),
        offset=array.offset * (array.type.bit_width // 8),
    )
    np.right_shift(words[:, 0], 63, out=words[:, 1])
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(target, len(array), [validity, buffer])


def narrow_footer(footer: pq.FileMetaData) -> pq.FileMetaData | None:
    """A footer of the same file with which pyarrow decodes decimals of up to 18 digits narrow.

    None where that gains nothing (no such decimals, or few rows for many columns), or where pyarrow would not write the
    file's schema as its writer did (lists of an older style, say).
    """
    if footer.num_rows < _FEWEST_ROWS_A_COLUMN * footer.num_columns:
        return None
    schema = footer.schema.to_arrow_schema()
    narrow = pa.schema([_narrowed(f) for f in schema])
    if narrow == schema:
        return None
    as_integers = _stores_integers(footer)
    made = pq.read_metadata(pa.BufferReader(_empty_file(narrow.serialize().to_pybytes(), as_integers=as_integers)))
    try:
        made.append_row_groups(footer)
    except RuntimeError:
        return None
    return made


def _stores_integers(footer: pq.FileMetaData) -> bool:
    """Whether decimals are stored as integers: a file that mixes both ways is no file that pyarrow writes."""
    columns = (footer.schema.column(i) for i in range(footer.num_columns))
    decimals = (c.physical_type for c in columns if c.converted_type == "DECIMAL" and c.precision <= 18)
    return next(decimals, "INT64") != "FIXED_LEN_BYTE_ARRAY"


@lru_cache(maxsize=64)
def _empty_file(schema: bytes, *, as_integers: bool) -> bytes:
    """A Parquet file without rows; files of a table mostly have one schema, and so one of these."""
    sink = pa.BufferOutputStream()
    arrow = pa.ipc.read_schema(pa.BufferReader(schema))
    pq.ParquetWriter(sink, arrow, store_decimal_as_integer=as_integers).close()
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _narrowed(field: pa.Field) -> pa.Field:
    type_ = field.type
    if pat.is_decimal128(type_):
        return field.with_type(narrow_decimal(type_.precision, type_.scale))
    inner = [_narrowed(child) for child in child_fields(type_)]
    if pat.is_struct(type_):
        return field.with_type(pa.struct(inner))
    if pat.is_map(type_):
        return field.with_type(pa.map_(*inner))
    if is_list(type_):
        return field.with_type(pa.list_(inner[0]))
    return field
