"""Decoded manifest columns as Arrow arrays, from their own buffers: no Python object per entry.

Where all rows are wanted, bytes are not copied; the arrays then share memory with the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.codec.columns import BoolArray, BytesColumn, FixedColumn, Int64Array, ListColumn, PartitionColumn
from engine.codec.taking import take_bytes, take_lists, take_numbers
from engine.columnar.schemas import to_arrow_type
from engine.errors import CorruptTable
from engine.expressions.kernels import big_endian
from engine.expressions.vectors import mask_of
from engine.spec.types import DecimalType, PrimitiveType

_DECIMAL_BYTES = 16
_BYTE_STRINGS = frozenset({"string", "binary", "fixed", "uuid"})
_INT32_MAX = (1 << 31) - 1


def plain(values: NDArray[Any], type_: pa.DataType | None = None, valid: BoolArray | None = None) -> pa.Array:
    """Numbers as an Arrow array that shares their memory; `pa.array` would load pandas, to see whether they are its."""
    known = pa.from_numpy_dtype(values.dtype) if type_ is None else type_
    return pa.Array.from_buffers(known, len(values), [validity(valid), pa.py_buffer(np.ascontiguousarray(values))])


def texts(values: Sequence[str]) -> pa.Array:
    """A few strings as an Arrow array."""
    raw = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, raw)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(raw), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(raw))])


def validity(valid: BoolArray | None) -> pa.Buffer | None:
    """A mask as Arrow's bitmap."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def numbers(column: FixedColumn, rows: Int64Array | None, type_: pa.DataType) -> pa.Array:
    """Integers, floats, dates or timestamps of these rows (None: all), stored as `type_` stores them."""
    width = type_.bit_width // 8
    dtype = np.dtype(f"f{width}" if pa.types.is_floating(type_) else f"i{width}")
    chosen = column if rows is None else take_numbers(column, rows)
    return plain(chosen.values.astype(dtype, copy=False), type_, chosen.valid)


def strings(column: BytesColumn, rows: Int64Array | None, type_: pa.DataType) -> pa.Array:
    """Text or binary of these rows (None: all). Raises CorruptTable for two gigabytes of it in one manifest."""
    if column.offsets[-1] > _INT32_MAX:
        raise CorruptTable("a manifest with two gigabytes of text in one column")
    chosen = column if rows is None else take_bytes(column, rows)
    buffers = [
        validity(chosen.valid),
        pa.py_buffer(chosen.offsets.astype(np.int32)),
        pa.py_buffer(np.ascontiguousarray(chosen.data)),
    ]
    return pa.Array.from_buffers(type_, len(chosen), buffers)


def lists(column: ListColumn, rows: Int64Array | None, type_: pa.ListType) -> pa.Array:
    """Lists of integers of these rows (None: all)."""
    width = type_.value_type.bit_width // 8
    chosen = column if rows is None else take_lists(column, rows)
    values = plain(chosen.values.astype(f"i{width}", copy=False))
    buffers = [validity(chosen.valid), pa.py_buffer(chosen.offsets.astype(np.int32))]
    return pa.Array.from_buffers(type_, len(chosen), buffers, children=[values])


def partition_values(type_: PrimitiveType, column: PartitionColumn | None, rows: Int64Array) -> pa.Array:
    """Partition values as Arrow has them for columns of this type; null where the spec has no such field.

    Raises:
        ValueError: The manifest has numbers where values of this type are byte strings, or the other way round.
    """
    target = to_arrow_type(type_)
    if column is None or pa.types.is_null(target):
        return pa.nulls(len(rows), target)
    if isinstance(column, BytesColumn) != (isinstance(type_, DecimalType) or type_.name in _BYTE_STRINGS):
        raise ValueError(f"{'byte strings' if isinstance(column, BytesColumn) else 'numbers'} are no values of {type_}")
    if isinstance(column, BytesColumn):
        if isinstance(type_, DecimalType):
            return _decimals(type_, column, rows)
        if type_.name in ("uuid", "fixed"):
            storage = target.storage_type if type_.name == "uuid" else target
            fixed = strings(column, rows, pa.binary()).cast(storage)
            return pa.ExtensionArray.from_storage(target, fixed) if type_.name == "uuid" else fixed
        return strings(column, rows, target)
    if pa.types.is_boolean(target):
        valid = None if column.valid is None else column.valid[rows]
        bits = pa.py_buffer(np.packbits(column.values[rows] != 0, bitorder="little"))
        return pa.Array.from_buffers(target, len(rows), [validity(valid), bits])
    return numbers(column, rows, target)


def any_values(column: PartitionColumn | None, rows: Int64Array) -> pa.Array:
    """Partition values of a transform that is not known here, whose type nobody says, as text; bytes as hexadecimal."""
    if column is None:
        return pa.nulls(len(rows), pa.string())
    if isinstance(column, BytesColumn):
        raw = strings(column, rows, pa.binary())
        try:
            return raw.cast(pa.string())
        except pa.ArrowInvalid:
            return pa.array([None if value is None else value.hex() for value in raw.to_pylist()], pa.string())
    chosen = take_numbers(column, rows)
    return plain(chosen.values, valid=chosen.valid).cast(pa.string())


def _decimals(type_: DecimalType, column: BytesColumn, rows: Int64Array) -> pa.Array:
    keys, fits = big_endian(column.offsets, column.data, mask_of(column.valid), _DECIMAL_BYTES)
    little: NDArray[np.uint8] = keys.reshape(-1, _DECIMAL_BYTES)[rows, ::-1].copy()
    little[:, -1] ^= 0x80  # the sign bit, which `big_endian` flips
    buffers = [validity(fits[rows]), pa.py_buffer(little)]
    return pa.Array.from_buffers(to_arrow_type(type_), len(rows), buffers)
