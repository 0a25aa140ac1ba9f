"""Decoded manifest columns as those of `plan.files`: no Python object per entry.

Where all rows are wanted, bytes are not copied; the arrays then share memory with the cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import Int64Array, cast_array, data_of, offsets_of, valid_of, validity
from icebench.engine.codec.taking import take
from icebench.engine.columnar.schemas import to_arrow_type
from icebench.engine.errors import CorruptTable
from icebench.engine.expressions.vectors import big_endian
from icebench.engine.spec.types import DecimalType, PrimitiveType

_DECIMAL_BYTES = 16
_BYTE_STRINGS = frozenset({"string", "binary", "fixed", "uuid"})


def texts(values: Sequence[str]) -> pa.Array:
    """A few strings as an Arrow array."""
    raw = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, raw)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(raw), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(raw))])


def selected(column: pa.Array, rows: Int64Array | None, type_: pa.DataType) -> pa.Array:
    """The values of these rows (None: all) as `cast_array` makes them. Raises CorruptTable for two gigabytes of text in
    one manifest."""
    try:
        return cast_array(column if rows is None else take(column, rows), type_)
    except ValueError as error:
        raise CorruptTable(f"a manifest with {error}") from error


def partition_values(type_: PrimitiveType, column: pa.Array | None, rows: Int64Array) -> pa.Array:
    """Partition values as Arrow has them for columns of this type; null where the spec has no such field.

    Raises:
        ValueError: The manifest has numbers where values of this type are byte strings, or the other way round.
    """
    target = to_arrow_type(type_)
    if column is None or pa.types.is_null(target):
        return pa.nulls(len(rows), target)
    is_bytes = pa.types.is_large_binary(column.type)
    if is_bytes != (isinstance(type_, DecimalType) or type_.name in _BYTE_STRINGS):
        raise ValueError(f"{'byte strings' if is_bytes else 'numbers'} are no values of {type_}")
    if isinstance(type_, DecimalType):
        return _decimals(type_, take(column, rows))
    if type_.name in ("uuid", "fixed"):
        storage = target.storage_type if type_.name == "uuid" else target
        fixed = selected(column, rows, pa.binary()).cast(storage)
        return pa.ExtensionArray.from_storage(target, fixed) if type_.name == "uuid" else fixed
    return selected(column, rows, target)


def any_values(column: pa.Array | None, rows: Int64Array) -> pa.Array:
    """Partition values of a transform that is not known here, whose type nobody says, as text; bytes as hexadecimal."""
    if column is None:
        return pa.nulls(len(rows), pa.string())
    raw = take(column, rows)
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if value is None else value.hex() for value in raw.to_pylist()], pa.string())


def _decimals(type_: DecimalType, column: pa.Array) -> pa.Array:
    keys, fits = big_endian(offsets_of(column), data_of(column), valid_of(column), _DECIMAL_BYTES)
    little: NDArray[np.uint8] = keys.reshape(-1, _DECIMAL_BYTES)[:, ::-1].copy()
    little[:, -1] ^= 0x80  # the sign bit, which `big_endian` flips
    return pa.Array.from_buffers(to_arrow_type(type_), len(column), [validity(fits), pa.py_buffer(little)])
