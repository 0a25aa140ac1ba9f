"""Decoded manifest columns as Arrow arrays, from their own buffers: no Python object per entry.

Where all rows are wanted, bytes are not copied; the arrays then share memory with the cache.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.codec.columns import BoolArray, BytesColumn, FixedColumn, Int64Array, ListColumn, PartitionColumn
from engine.columnar.schemas import to_arrow_type
from engine.errors import CorruptTable
from engine.expressions.kernels import big_endian
from engine.expressions.vectors import mask_of
from engine.spec.types import DecimalType, PrimitiveType

_DECIMAL_BYTES = 16
_INT32_MAX = (1 << 31) - 1


def validity(valid: BoolArray | None) -> pa.Buffer | None:
    """A mask as Arrow's bitmap."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def numbers(column: FixedColumn, rows: Int64Array | None, type_: pa.DataType) -> pa.Array:
    """Integers, floats, dates or timestamps of these rows (None: all), stored as `type_` stores them."""
    width = type_.bit_width // 8
    dtype = np.dtype(f"f{width}" if pa.types.is_floating(type_) else f"i{width}")
    values = (column.values if rows is None else column.values[rows]).astype(dtype, copy=False)
    valid = column.valid if rows is None or column.valid is None else column.valid[rows]
    return pa.Array.from_buffers(type_, len(values), [validity(valid), pa.py_buffer(np.ascontiguousarray(values))])


def strings(column: BytesColumn, rows: Int64Array | None, type_: pa.DataType) -> pa.Array:
    """Text or binary of these rows (None: all). Raises CorruptTable for two gigabytes of it in one manifest."""
    if column.offsets[-1] > _INT32_MAX:
        raise CorruptTable("a manifest with two gigabytes of text in one column")
    buffers = [
        validity(column.valid),
        pa.py_buffer(column.offsets.astype(np.int32)),
        pa.py_buffer(np.ascontiguousarray(column.data)),
    ]
    array = pa.Array.from_buffers(type_, len(column), buffers)
    return array if rows is None else array.take(pa.array(rows))


def lists(column: ListColumn, rows: Int64Array | None, type_: pa.ListType) -> pa.Array:
    """Lists of integers of these rows (None: all)."""
    width = type_.value_type.bit_width // 8
    values = pa.array(column.values.astype(f"i{width}", copy=False))
    buffers = [validity(column.valid), pa.py_buffer(column.offsets.astype(np.int32))]
    array = pa.Array.from_buffers(type_, len(column), buffers, children=[values])
    return array if rows is None else array.take(pa.array(rows))


def partition_values(type_: PrimitiveType, column: PartitionColumn | None, rows: Int64Array) -> pa.Array:
    """Partition values as Arrow has them for columns of this type; null where the spec has no such field."""
    target = to_arrow_type(type_)
    if column is None or pa.types.is_null(target):
        return pa.nulls(len(rows), target)
    if isinstance(type_, DecimalType):
        assert isinstance(column, BytesColumn)
        return _decimals(type_, column, rows)
    if isinstance(column, BytesColumn):
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


def _decimals(type_: DecimalType, column: BytesColumn, rows: Int64Array) -> pa.Array:
    keys, fits = big_endian(column.offsets, column.data, mask_of(column.valid), _DECIMAL_BYTES)
    little: NDArray[np.uint8] = keys.reshape(-1, _DECIMAL_BYTES)[rows, ::-1].copy()
    little[:, -1] ^= 0x80  # the sign bit, which `big_endian` flips
    buffers = [validity(fits[rows]), pa.py_buffer(little)]
    return pa.Array.from_buffers(to_arrow_type(type_), len(rows), buffers)
