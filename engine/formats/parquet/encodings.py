"""The encodings of columns without a dictionary, in files of data pages of version 2: those of parquet-mr."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.formats.parquet.dictionaries import leaf_values

_MOST_DIGITS_OF_A_LONG = 18


def encodings_without_dictionary(rows: pa.Table, *, dictionaries: list[str] | bool) -> dict[str, str]:
    """Encodings by the paths that columns have in Parquet; of floating-point numbers, which are plain, none.

    Args:
        rows: Any of the file.
        dictionaries: The columns that have a dictionary, or whether all have one: they have the encoding that pyarrow
            falls back to where the dictionary becomes too large, which it lets nobody choose.
    """
    if dictionaries is True:
        return {}
    found = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        for _, stored, values in leaf_values(field, column.slice(0, 0), "", ""):
            encoding = _encoding(values.type)
            if encoding is not None and stored not in (dictionaries or ()):
                found[stored] = encoding
    return found


def _encoding(type_: pa.DataType) -> str | None:
    if pat.is_dictionary(type_):
        return _encoding(type_.value_type)
    if pat.is_boolean(type_):
        return "RLE"
    if pat.is_floating(type_) or pat.is_null(type_):
        return None
    is_text = pat.is_binary(type_) or pat.is_large_binary(type_) or pat.is_string(type_) or pat.is_large_string(type_)
    is_wide = pat.is_decimal(type_) and type_.precision > _MOST_DIGITS_OF_A_LONG
    if is_text or is_wide or pat.is_fixed_size_binary(type_):
        return "DELTA_BYTE_ARRAY"
    return "DELTA_BINARY_PACKED"
