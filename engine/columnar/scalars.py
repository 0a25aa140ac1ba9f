"""Converts between Arrow values and the internal representation of `icebench.engine.spec.values`, and to literals."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.codec.array_views import (
    boolean_array,
    bytes_array_of,
    cast_array,
    mask_of_values,
    number_array,
    validity,
)
from icebench.engine.columnar.schemas import storage_of, to_arrow_type
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalKind, TemporalLiteral
from icebench.engine.spec.types import DecimalType, PrimitiveType
from icebench.engine.spec.values import Value, unscaled

_INTEGERS: dict[str, pa.DataType] = {
    "date": pa.int32(),
    "time": pa.int64(),
    "timestamp": pa.int64(),
    "timestamptz": pa.int64(),
    "timestamp_ns": pa.int64(),
    "timestamptz_ns": pa.int64(),
}
"""Types whose internal representation is a plain integer of the same width."""
_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_ZERO = Decimal(0)
FALSE: pa.BooleanScalar = boolean_array(np.zeros(1, np.bool_))[0]
"""Not by `pa.scalar`, which loads pandas as `pa.array` does."""


def to_arrow_scalar(type_: PrimitiveType, value: Value | None) -> pa.Scalar:
    """The Arrow scalar of a single value; null for None."""
    return to_arrow_array(type_, [value])[0]


def to_arrow_array(type_: PrimitiveType, values: Sequence[Value | None], *, narrow: bool = False) -> pa.Array:
    """Single values in the internal representation as an Arrow array of `to_arrow_type(type_, narrow=narrow)`.

    Their memory is put together here, since `pa.array` loads pandas, which takes as long as reading a small table.

    Raises:
        pa.ArrowInvalid: An integer or decimal is beyond the type.
    """
    target = to_arrow_type(type_, narrow=narrow)
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, _stored(target.storage_type, type_, values))
    return _stored(target, type_, values)


def _stored(target: pa.DataType, type_: PrimitiveType, values: Sequence[Any]) -> pa.Array:
    valid = mask_of_values(values)
    if pat.is_null(target):
        return pa.nulls(len(values))
    if pat.is_boolean(target):
        flags = boolean_array(np.array([value is True for value in values], np.bool_))
        return pa.Array.from_buffers(target, len(values), [validity(valid), flags.buffers()[1]])
    if pat.is_string(target):
        return cast_array(bytes_array_of([None if value is None else value.encode() for value in values]), target)
    if target == pa.binary():
        return cast_array(bytes_array_of(values), target)
    width = target.byte_width
    if isinstance(type_, DecimalType):
        memory = b"".join(_unscaled_bytes(type_, value or _ZERO, width) for value in values)
    elif pat.is_fixed_size_binary(target):
        raw = (value.bytes if isinstance(value, uuid.UUID) else value for value in values)
        memory = b"".join(bytes(width) if value is None else value for value in raw)
    else:
        kind = "f" if pat.is_floating(target) else "i"
        try:
            with np.errstate(over="ignore"):  # one of 64 bits may be infinite in 32, as `pa.array` has it
                numbers = np.array([0 if value is None else value for value in values], f"{kind}{width}")
        except OverflowError as error:
            raise pa.ArrowInvalid(f"a value is beyond {type_}: {error}") from error
        return number_array(numbers, valid, target)
    return pa.Array.from_buffers(target, len(values), [validity(valid), pa.py_buffer(memory)])


def _unscaled_bytes(type_: DecimalType, value: Decimal, width: int) -> bytes:
    number = unscaled(value, type_.scale)
    if abs(number) >= 10**type_.precision:
        raise pa.ArrowInvalid(f"{value} is beyond {type_}")
    return number.to_bytes(width, "little", signed=True)


def from_arrow_array(type_: PrimitiveType, array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The internal representation of each value of an array of `to_arrow_type(type_)`; None for null."""
    storage = storage_of(array)
    integers = _INTEGERS.get(type_.name)
    if integers is not None:
        return storage.cast(integers).to_pylist()
    values = storage.to_pylist()
    if type_.name == "uuid":
        return [None if v is None else uuid.UUID(bytes=v) for v in values]
    return values


def literal_of(scalar: pa.Scalar) -> Any:  # noqa: ANN401 - as an expression takes it
    """A literal; dates, timestamps and times exactly, whatever the year."""
    type_ = scalar.type
    if scalar.is_valid and pat.is_date(type_):
        return TemporalLiteral("date", scalar.cast(pa.date32()).value * NANOS_PER_DAY)
    if scalar.is_valid and (pat.is_timestamp(type_) or pat.is_time(type_)):
        kind: TemporalKind = "time" if pat.is_time(type_) else "timestamp" if type_.tz is None else "timestamptz"
        return TemporalLiteral(kind, scalar.value * _NANOS[type_.unit])
    return scalar.as_py()


def shown_value(scalar: pa.Scalar) -> Any:  # noqa: ANN401 - any value that Arrow holds
    """A value for a message: dates, timestamps and times as ISO 8601 text, as Python lacks most years."""
    value = literal_of(scalar)
    return str(value) if isinstance(value, TemporalLiteral) else value


def repeat(type_: PrimitiveType, value: Value | None, length: int) -> pa.Array:
    """An array of `length` times the same value."""
    if value is None:
        return pa.nulls(length, to_arrow_type(type_))
    if type_.name == "uuid":
        target = to_arrow_type(type_)
        return pa.ExtensionArray.from_storage(target, pa.repeat(to_arrow_scalar(type_, value).value, length))
    return pa.repeat(to_arrow_scalar(type_, value), length)
