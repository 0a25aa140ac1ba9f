"""Converts between Arrow values and the internal representation of `icebench.engine.spec.values`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icebench.engine.columnar.schemas import storage_of, to_arrow_type
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.spec.values import Value

_INTEGERS: dict[str, pa.DataType] = {
    "date": pa.int32(),
    "time": pa.int64(),
    "timestamp": pa.int64(),
    "timestamptz": pa.int64(),
    "timestamp_ns": pa.int64(),
    "timestamptz_ns": pa.int64(),
}
"""Types whose internal representation is a plain integer of the same width."""


def to_arrow_scalar(type_: PrimitiveType, value: Value | None) -> pa.Scalar:
    """The Arrow scalar of a single value; null for None."""
    return to_arrow_array(type_, [value])[0]


def to_arrow_array(type_: PrimitiveType, values: Sequence[Value | None], *, narrow: bool = False) -> pa.Array:
    """Single values in the internal representation as an Arrow array of `to_arrow_type(type_, narrow=narrow)`."""
    target = to_arrow_type(type_, narrow=narrow)
    integers = _INTEGERS.get(type_.name)
    if integers is not None:
        return pa.array(values, integers).view(target)
    if type_.name == "uuid":
        raw = [v.bytes if isinstance(v, uuid.UUID) else v for v in values]
        return pa.ExtensionArray.from_storage(target, pa.array(raw, target.storage_type))
    return pa.array(values, target)


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


def repeat(type_: PrimitiveType, value: Value | None, length: int) -> pa.Array:
    """An array of `length` times the same value."""
    if value is None:
        return pa.nulls(length, to_arrow_type(type_))
    if type_.name == "uuid":
        target = to_arrow_type(type_)
        return pa.ExtensionArray.from_storage(target, pa.repeat(to_arrow_scalar(type_, value).value, length))
    return pa.repeat(to_arrow_scalar(type_, value), length)
