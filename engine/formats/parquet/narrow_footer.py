"""Footers with which pyarrow decodes decimals in 4 or 8 bytes per value.

pyarrow decodes a Parquet decimal as decimal128 unless the Arrow schema that is stored in the file says otherwise. Few
writers store one, but a footer need not be the file's own: a footer with the same columns, whose stored Arrow schema
asks for decimal32 and decimal64, can take over the row groups of the file.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from icebench.engine.columnar.schemas import child_fields, is_list, narrow_decimal

_FEWEST_ROWS_A_COLUMN = 100
"""Making the footer takes 10 microseconds for each column of the file, whichever are read: too much for a file of many
columns and few rows."""


def narrow_footer(footer: pq.FileMetaData) -> pq.FileMetaData | None:
    """A footer of the same file with which pyarrow decodes decimals of up to 18 digits to decimal32 and decimal64.

    None if that gains nothing (no such decimals, or few rows for many columns), or if pyarrow writes such a schema in
    another way than the file's writer (lists of an older style, for example).
    """
    if footer.num_rows < _FEWEST_ROWS_A_COLUMN * footer.num_columns:
        return None
    schema = footer.schema.to_arrow_schema()
    narrow = pa.schema([_narrow(f) for f in schema])
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
    """Whether decimals are stored as integers. Files that mix both are not written by pyarrow."""
    columns = (footer.schema.column(i) for i in range(footer.num_columns))
    decimals = (c.physical_type for c in columns if c.converted_type == "DECIMAL" and c.precision <= 18)
    return next(decimals, "INT64") != "FIXED_LEN_BYTE_ARRAY"


@lru_cache(maxsize=64)
def _empty_file(schema: bytes, *, as_integers: bool) -> bytes:
    """A Parquet file without rows. Files of a table mostly share a schema, so this is cached."""
    sink = pa.BufferOutputStream()
    arrow = pa.ipc.read_schema(pa.BufferReader(schema))
    pq.ParquetWriter(sink, arrow, store_decimal_as_integer=as_integers).close()
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _narrow(field: pa.Field) -> pa.Field:
    type_ = field.type
    if pat.is_decimal128(type_):
        return field.with_type(narrow_decimal(type_.precision, type_.scale))
    inner = [_narrow(child) for child in child_fields(type_)]
    if pat.is_struct(type_):
        return field.with_type(pa.struct(inner))
    if pat.is_map(type_):
        return field.with_type(pa.map_(*inner))
    if is_list(type_):
        return field.with_type(pa.list_(inner[0]))
    return field
