"""Columns as Arrow arrays, and numpy's views of them. Nothing is copied either way.

Arrow arrays are what goes from the decoder through the caches to a plan: numbers as int64, floats as they are stored,
booleans as uint8, byte strings and text as large_binary, lists of numbers as large_list. What is worked out of them is
worked out in numpy: importing `pyarrow.compute` takes as long as planning a small table, and `pa.array` loads pandas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.errors import Contradiction

BoolArray: TypeAlias = NDArray[np.bool_]
Int64Array: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[np.int64] | NDArray[np.int32]
ByteArray: TypeAlias = NDArray[np.uint8]

_INT32_MAX = (1 << 31) - 1
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_WIDE = frozenset(type_.id for type_ in (pa.large_binary(), pa.large_string(), pa.large_list(pa.null())))
_LIST = pa.list_(pa.null()).id
_NARROW = frozenset({pa.binary().id, pa.string().id, _LIST})
_DTYPES = {
    pa.from_numpy_dtype(dtype).id: np.dtype(dtype)
    for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
}


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ManifestColumns:
    """The entries of one manifest as a record batch (spec: "Manifest Entry Fields", "Data File Fields").

    Columns are named as the specification's fields; ``partition/1000`` has the values of partition field 1000, and
    ``lower_bounds/7`` what that map says of column 7. All fields but partition values and metrics are there, null
    where the writer schema lacks them; `content` and `status` are never null. Of metrics those are there that were
    asked for and occur. Null snapshot ids, sequence numbers and first row ids are left null: inheritance is the
    planner's business.

    Partition values are numbers, uint8 for booleans, or byte strings: decimals as big-endian two's complement of any
    width. `contradictions` are those between the manifest and its list. `highest_field_id` is that of the table's
    schema when the manifest was written, according to its header; None where that is not known.
    """

    batch: pa.RecordBatch
    contradictions: tuple[Contradiction, ...] = ()
    highest_field_id: int | None = None
    _arrays: dict[str, pa.Array] = field(init=False, default_factory=dict, repr=False)
    """Columns that were asked for: taking one out of a batch costs more than looking at it."""

    @property
    def count(self) -> int:
        """How many entries there are."""
        return int(self.batch.num_rows)

    @property
    def size_bytes(self) -> int:
        """Memory held by all columns, for caches that are bounded by bytes."""
        return int(self.batch.get_total_buffer_size())

    def __getitem__(self, name: str) -> pa.Array:
        found = self._arrays.get(name)
        if found is None:
            found = self._arrays[name] = self.batch.column(name)
        return found

    def get(self, of: str, key: int) -> pa.Array | None:
        """The values of a partition field, or a metric of a column; None where there is none."""
        name = f"{of}/{key}"
        return self[name] if name in self._arrays or self.batch.schema.get_field_index(name) >= 0 else None

    def keys_of(self, of: str) -> list[int]:
        """The ids of the partition fields, or of the columns with that metric, that are there."""
        split = (name.partition("/") for name in self.batch.schema.names)
        return [int(key) for own, _, key in split if own == of and key]

    def numbers(self, name: str) -> NDArray[Any]:
        """The numbers of a column, whatever they are where there is none."""
        return values_of(self[name])


def validity(valid: BoolArray | None) -> pa.Buffer | None:
    """A mask as Arrow's bitmap."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def number_array(values: NDArray[Any], valid: BoolArray | None = None, type_: pa.DataType | None = None) -> pa.Array:
    """Numbers; of another type than numpy's where that is stored in the same way."""
    known = pa.from_numpy_dtype(values.dtype) if type_ is None else type_
    return pa.Array.from_buffers(known, len(values), [validity(valid), pa.py_buffer(np.ascontiguousarray(values))])


def boolean_array(values: BoolArray) -> pa.BooleanArray:
    """Truth values, none of them null."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, validity(values)])


def bytes_array(offsets: Int64Array, data: ByteArray, valid: BoolArray | None = None) -> pa.Array:
    """Byte strings: value i is ``data[offsets[i]:offsets[i + 1]]``; `offsets` has one more element."""
    buffers = [validity(valid), *(pa.py_buffer(np.ascontiguousarray(each)) for each in (offsets, data))]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def bytes_array_of(values: Sequence[bytes | None]) -> pa.Array:
    """A few byte strings."""
    sizes = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    data = np.frombuffer(b"".join(value for value in values if value is not None), np.uint8)
    return bytes_array(offsets, data, mask_of_values(values))


def mask_of_values(values: Sequence[Any]) -> BoolArray | None:
    """Which values are there; None where all are."""
    return np.array([value is not None for value in values], np.bool_) if None in values else None


def list_array(offsets: Int64Array, elements: pa.Array, valid: BoolArray | None = None) -> pa.Array:
    """Lists: value i is ``elements[offsets[i]:offsets[i + 1]]``; `offsets` has one more element."""
    buffers = [validity(valid), pa.py_buffer(np.ascontiguousarray(offsets))]
    return pa.Array.from_buffers(pa.large_list(elements.type), len(offsets) - 1, buffers, children=[elements])


def values_of(array: pa.Array) -> NDArray[Any]:
    """The numbers of an array as they are in memory, whatever they are where there is none."""
    return _view(array, _dtype_of(array.type), len(array))


def booleans_of(array: pa.BooleanArray) -> BoolArray:
    """The truth values of an array, whatever they are where there is none."""
    return _bits(array.buffers()[1], array)


def valid_of(array: pa.Array) -> BoolArray | None:
    """Which slots of an array have a value; None if all have."""
    return _bits(array.buffers()[0], array) if array.null_count else None


def offsets_of(array: pa.Array) -> Any:  # noqa: ANN401 - int64, or int32 where the type is not one of the large ones
    """Where the byte strings, lists or maps of an array begin and end in its data."""
    if not len(array):
        return np.zeros(1, np.int64)
    return _view(array, _INT64 if array.type.id in _WIDE else _INT32, len(array) + 1)


def data_of(array: pa.Array) -> ByteArray:
    """The bytes that the offsets of byte strings point into."""
    data = array.buffers()[2]
    return np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def has_values(array: pa.Array) -> bool:
    """Whether any slot has a value."""
    return bool(array.null_count < len(array))


def cast_array(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array of this module as another type: numbers as what is stored as numbers of any width, large_binary and
    large_list as binary, text and lists. Values are not checked, but for text and lists of more than two gigabytes.

    Raises:
        ValueError: More than two gigabytes.
    """
    if array.type == type_:
        return array
    valid, _, *data = array.buffers()
    if type_.id in _NARROW:
        offsets = offsets_of(array)
        if offsets[-1] > _INT32_MAX:
            raise ValueError("two gigabytes in one column")
        buffers = [valid, pa.py_buffer(offsets.astype(np.int32))]
        if type_.id == _LIST:
            children = [cast_array(array.values, type_.value_type)]
            return pa.Array.from_buffers(type_, len(array), buffers, children=children)
        return pa.Array.from_buffers(type_, len(array), buffers + data)
    if pa.types.is_boolean(type_):
        bits = np.packbits(values_of(array) != 0, bitorder="little")
        return pa.Array.from_buffers(type_, len(array), [valid, pa.py_buffer(bits)])
    values = values_of(array).astype(_dtype_of(type_), copy=False)
    return pa.Array.from_buffers(type_, len(array), [valid, pa.py_buffer(values)])


def first_not_utf8(array: pa.Array) -> int | None:
    """The first byte string that is not UTF-8, None when all are."""
    data = data_of(array)
    if len(data) == 0 or int(data.max()) < 0x80:
        return None
    for index, value in enumerate(array.to_pylist()):
        try:
            (value or b"").decode("utf-8")
        except UnicodeDecodeError:
            return index
    return None


def fits_int32(values: NDArray[Any]) -> bool:
    """Whether no number needs more than 32 bits: Avro writes an int as it writes a long."""
    return not len(values) or (int(values.min()) >= -(1 << 31) and int(values.max()) < 1 << 31)


def _dtype_of(type_: pa.DataType) -> np.dtype[Any]:
    return _DTYPES.get(type_.id) or np.dtype(f"i{type_.bit_width // 8}")  # dates and times


def _bits(bitmap: pa.Buffer | None, array: pa.Array) -> BoolArray:
    if bitmap is None:  # of Arrow's type null, or of an empty array
        return np.zeros(len(array), np.bool_)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=array.offset + len(array), bitorder="little")
    return bits[array.offset :].view(np.bool_)


def _view(array: pa.Array, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    memory = array.buffers()[1]
    if memory is None:
        return np.zeros(count, dtype)
    return np.frombuffer(memory, dtype, count, array.offset * dtype.itemsize)
