"""Partition transforms of whole arrays (spec: "Partition Transforms").

Results equal those of `Transform.apply` of `icebench.engine.spec.transforms`, value by value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebench.engine.codec.array_views import fits_int32
from icebench.engine.columnar.hashing import murmur3_of_bytes, murmur3_of_decimals, murmur3_of_longs
from icebench.engine.columnar.schemas import storage_of, to_arrow_type
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.spec.calendar import UNITS_PER_DAY, UNITS_PER_SECOND
from icebench.engine.spec.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Void, Year
from icebench.engine.spec.types import DecimalType, PrimitiveType

_ALL_32_BITS = 0x7FFFFFFF


def transform_array(source: PrimitiveType, transform: Transform, array: pa.Array) -> pa.Array:
    """Partition values of a column.

    Args:
        source: The Iceberg type of the column.
        transform: Any transform of the spec that accepts the type.
        array: Values of `to_arrow_type(source)`.

    Returns:
        As many values of `to_arrow_type(transform.result_type(source))`, null where the source is null.

    Raises:
        Unsupported: A transform that this engine does not know.
        Invalid: A truncated integer or decimal leaves the range of its type, or an hour that of int.
    """
    match transform:
        case Identity():
            return array
        case Void():
            return pa.nulls(len(array), to_arrow_type(source))
        case Bucket(width):
            hashes = _hashes(source, array)
            return _with_nulls_of(array, (hashes & np.int32(_ALL_32_BITS)) % np.int32(width), pa.int32())
        case Truncate(width):
            return _truncate(source, array, width)
        case Year() | Month() | Day():
            days = _days(source, array)
            if isinstance(transform, Day):
                return _with_nulls_of(array, days.astype(np.int32), pa.int32()).view(pa.date32())
            unit = "datetime64[Y]" if isinstance(transform, Year) else "datetime64[M]"
            return _with_nulls_of(array, days.view("datetime64[D]").astype(unit).astype(np.int32), pa.int32())
        case Hour():
            hours = _integers(array) // (3600 * UNITS_PER_SECOND[source.name])
            if not fits_int32(hours):  # other periods of 64-bit timestamps fit
                raise Invalid(f"a value of {source} is too far from 1970: its hour is no int")
            return _with_nulls_of(array, hours, pa.int32())
    raise Unsupported(f"the partition transform {transform} is not known here")


def _hashes(source: PrimitiveType, array: pa.Array) -> npt.NDArray[np.int32]:
    if isinstance(source, DecimalType):
        return murmur3_of_decimals(array)
    if source.name in ("string", "binary", "fixed", "uuid"):
        return murmur3_of_bytes(storage_of(array))
    integers = _integers(array)
    return murmur3_of_longs(integers // 1000 if source.name.endswith("_ns") else integers)


def _integers(array: pa.Array) -> npt.NDArray[np.int64]:
    """The stored integers, with zero for null."""
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    view = array.view(width)
    if view.null_count:
        view = pc.fill_null(view, 0)
    return view.to_numpy(zero_copy_only=False).astype(np.int64)


def _days(source: PrimitiveType, array: pa.Array) -> npt.NDArray[np.int64]:
    integers = _integers(array)
    return integers if source.name == "date" else integers // UNITS_PER_DAY[source.name]


def _truncate(source: PrimitiveType, array: pa.Array, width: int) -> pa.Array:
    if source.name == "string":
        return pc.utf8_slice_codeunits(array, 0, width)
    if source.name == "binary":
        return pc.binary_slice(array, 0, width)
    if isinstance(source, DecimalType):
        return _truncate_decimal(source, array, width)
    integers = _integers(array)
    with np.errstate(over="ignore"):
        truncated = integers - integers % width
    smallest = np.iinfo(np.int32 if source.name == "int" else np.int64).min
    if bool(np.any((truncated > integers) | (truncated < smallest))):
        raise Invalid(f"a value is less than the least multiple of {width} that {source} can hold")
    return _with_nulls_of(array, truncated, array.type)


def _truncate_decimal(source: DecimalType, array: pa.Array, width: int) -> pa.Array:
    """Truncate with Python integers if unscaled values need more than 64 bits, else with numpy."""
    if source.precision > 18:
        transform = Truncate(width)
        values = [transform.apply(source, v) for v in array.to_pylist()]
        try:
            return pa.array(values, array.type)
        except pa.ArrowInvalid as error:
            raise Invalid(f"a value is less than the least multiple of {width} that {source} can hold") from error
    words = np.frombuffer(array.buffers()[1], np.int64, count=len(array) * 2, offset=array.offset * 16)
    low = words[::2]
    truncated = low - low % width
    if bool(np.any(_valid(array) & (truncated <= -(10**source.precision)))):
        raise Invalid(f"a value is less than the least multiple of {width} that {source} can hold")
    made = np.empty(len(array) * 2, np.int64)
    made[::2] = truncated
    made[1::2] = truncated >> 63
    return pa.Array.from_buffers(array.type, len(array), [_validity(array), pa.py_buffer(made)])


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _validity(array: pa.Array) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(_valid(array), bitorder="little")) if array.null_count else None


def _with_nulls_of(
    array: pa.Array, values: npt.NDArray[np.int64] | npt.NDArray[np.int32], type_: pa.DataType
) -> pa.Array:
    """Values as `type_`, with the nulls of `array`."""
    mask = ~_valid(array) if array.null_count else None
    return pa.array(values.astype(type_.to_pandas_dtype(), copy=False), type_, mask=mask)
