"""Manifest entries as Avro bytes, a batch at a time: this module converts objects to columns, `row_program` columns to
bytes."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import (
    Int64Array,
    bytes_array_of,
    data_of,
    list_array,
    mask_of_values,
    number_array,
    offsets_of,
)
from icebench.engine.codec.avro.schema import decimal_width
from icebench.engine.codec.avro.writing.row_program import RowProgram
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.spec.manifest import ManifestEntry
from icebench.engine.spec.types import DecimalType, FixedType, ListType, MapType, PrimitiveType, StructType, Type
from icebench.engine.spec.values import unscaled

_FILE = "data_file."
_ENTRY_FIELDS: dict[int, Callable[[ManifestEntry], Any]] = {
    ids.STATUS: attrgetter("status"),
    ids.SNAPSHOT_ID: attrgetter("snapshot_id"),
    ids.SEQUENCE_NUMBER: attrgetter("sequence_number"),
    ids.FILE_SEQUENCE_NUMBER: attrgetter("file_sequence_number"),
    ids.CONTENT: attrgetter(_FILE + "content"),
    ids.FILE_PATH: attrgetter(_FILE + "file_path"),
    ids.FILE_FORMAT: lambda entry: entry.data_file.file_format.upper(),
    ids.RECORD_COUNT: attrgetter(_FILE + "record_count"),
    ids.FILE_SIZE_IN_BYTES: attrgetter(_FILE + "file_size_in_bytes"),
    ids.BLOCK_SIZE_IN_BYTES: lambda _: ids.V1_BLOCK_SIZE,
    ids.COLUMN_SIZES: attrgetter(_FILE + "column_sizes"),
    ids.VALUE_COUNTS: attrgetter(_FILE + "value_counts"),
    ids.NULL_VALUE_COUNTS: attrgetter(_FILE + "null_value_counts"),
    ids.NAN_VALUE_COUNTS: attrgetter(_FILE + "nan_value_counts"),
    ids.LOWER_BOUNDS: attrgetter(_FILE + "lower_bounds"),
    ids.UPPER_BOUNDS: attrgetter(_FILE + "upper_bounds"),
    ids.KEY_METADATA: attrgetter(_FILE + "key_metadata"),
    ids.SPLIT_OFFSETS: attrgetter(_FILE + "split_offsets"),
    ids.EQUALITY_IDS: attrgetter(_FILE + "equality_ids"),
    ids.SORT_ORDER_ID: attrgetter(_FILE + "sort_order_id"),
    ids.FIRST_ROW_ID: attrgetter(_FILE + "first_row_id"),
    ids.REFERENCED_DATA_FILE: attrgetter(_FILE + "referenced_data_file"),
    ids.CONTENT_OFFSET: attrgetter(_FILE + "content_offset"),
    ids.CONTENT_SIZE_IN_BYTES: attrgetter(_FILE + "content_size_in_bytes"),
}
_NUMBER_TYPES = frozenset({"int", "long", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_INT32_TYPES = frozenset({"int", "date"})


def encode_rows(entries: Sequence[ManifestEntry], entry_type: StructType) -> tuple[memoryview, Int64Array]:
    """Encode entries as Avro objects; returns their bytes and where each object ends.

    Args:
        entries: At least one; partition tuples have as many values as the partition struct has fields.
        entry_type: The `manifest_entry` struct of a format version.

    Raises:
        ValueError, TypeError, OverflowError, struct.error: A value does not fit its type.
    """
    batch = _Batch(len(entries))
    batch.add_struct(entry_type, entries)
    return batch.program.encode()


class _Batch:
    """The columns of one batch of entries."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._key_sets: dict[tuple[int, ...], int] = {}
        self._keys: list[int] = []
        self.program = RowProgram(rows)

    def add_struct(self, type_: StructType, entries: Sequence[ManifestEntry]) -> None:
        for f in type_.fields:
            if f.field_id == ids.DATA_FILE:
                assert isinstance(f.type, StructType)
                self.add_struct(f.type, entries)
            elif f.field_id == ids.PARTITION:
                self._add_partition(f.type, entries)
            else:
                self._add(f.type, f.required, [_ENTRY_FIELDS[f.field_id](entry) for entry in entries])

    def _add_partition(self, type_: Type, entries: Sequence[ManifestEntry]) -> None:
        assert isinstance(type_, StructType)
        columns = zip(*(entry.data_file.partition for entry in entries), strict=True)
        for f, values in zip(type_.fields, columns, strict=True):
            self._add(f.type, f.required, list(values))

    def _add(self, type_: Type, required: bool, values: list[Any]) -> None:  # noqa: FBT001
        if required and None in values:
            raise ValueError("a required value is missing")
        match type_:
            case MapType(value=value):
                self._add_map(value.type.name == "binary" if isinstance(value.type, PrimitiveType) else False, values)
            case ListType():
                self.program.add(_lists(values), required=required)
            case PrimitiveType():
                add_values(self.program, type_, values, required=required)

    def _add_map(self, of_bytes: bool, maps: list[Mapping[int, Any]]) -> None:  # noqa: FBT001
        sizes = np.fromiter(map(len, maps), np.int64, self._rows)
        offsets = _offsets(sizes)
        flat = chain.from_iterable(m.values() for m in maps)
        first_keys = self._first_keys(maps)
        keys = np.array(self._keys, np.int64)
        if of_bytes:
            column = bytes_array_of(list(flat))
            self.program.add_maps(offsets, first_keys, keys, (offsets_of(column), data_of(column)))
        else:
            self.program.add_maps(offsets, first_keys, keys, np.fromiter(flat, np.int64, int(offsets[-1])))

    def _first_keys(self, maps: list[Mapping[int, Any]]) -> Int64Array:
        """Where the keys of each map begin. Most files of a table have the same keys, which are stored once."""
        known = self._key_sets
        begins = []
        for m in maps:
            keys = tuple(m)
            begin = known.get(keys)
            if begin is None:
                _check_range("int", keys)
                begin = known[keys] = len(self._keys)
                self._keys += keys
            begins.append(begin)
        return np.array(begins, np.int64)


def add_values(program: RowProgram, type_: PrimitiveType, values: list[Any], *, required: bool) -> None:
    """Add a column of primitive values in their internal representation, None for null.

    Raises:
        ValueError, TypeError, OverflowError, struct.error: A value does not fit the type.
    """
    if type_.name == "unknown":
        # An Avro null takes no bytes.
        if any(value is not None for value in values):
            raise ValueError("a partition field whose source column was dropped has only nulls")
        return
    is_fixed = type_.name not in ("string", "binary")
    program.add(value_array(type_, values), required=required, is_fixed=is_fixed)


def value_array(type_: PrimitiveType, values: list[Any]) -> pa.Array:
    """Convert primitive values to Avro's representation: numbers, or bytes for all other types; raises as
    `add_values`."""
    if type_.name in _NUMBER_TYPES:
        _check_range(type_.name, values)
        valid = mask_of_values(values)
        plain = values if valid is None else [0 if value is None else value for value in values]
        return number_array(np.fromiter(plain, np.int64, len(values)), valid)
    convert = _converter(type_)
    return bytes_array_of([None if value is None else convert(value) for value in values])


def _lists(values: list[Sequence[int] | None]) -> pa.Array:
    sizes = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
    offsets = _offsets(sizes)
    flat = np.fromiter(chain.from_iterable(value for value in values if value), np.int64, int(offsets[-1]))
    return list_array(offsets, number_array(flat), mask_of_values(values))


def _offsets(sizes: Int64Array) -> Int64Array:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _check_range(name: str, values: Iterable[Any]) -> None:
    if name in _INT32_TYPES:
        for value in values:
            if value is not None and not -(1 << 31) <= value < 1 << 31:
                raise OverflowError(f"{value} is out of range for {name}")


def _converter(type_: PrimitiveType) -> Callable[[Any], bytes]:
    """The conversion of a value of that type to its bytes in Avro."""
    match type_:
        case DecimalType(precision=precision, scale=scale):
            width = decimal_width(precision)
            limit = 10**precision
            return lambda value: _decimal_bytes(unscaled(_expect(value, Decimal), scale), limit, width)
        case FixedType(length=length):
            return lambda value: _expect_size(value, length)
    match type_.name:
        case "string":
            return lambda value: _expect(value, str).encode("utf-8")
        case "boolean":
            return lambda value: b"\x01" if _expect(value, bool) else b"\x00"
        case "float":
            return struct.Struct("<f").pack
        case "double":
            return struct.Struct("<d").pack
        case "uuid":
            return lambda value: _expect(value, uuid.UUID).bytes
    return lambda value: _expect(value, bytes)


def _decimal_bytes(number: int, limit: int, width: int) -> bytes:
    if not -limit < number < limit:
        raise OverflowError(f"the unscaled value {number} has too many digits")
    return number.to_bytes(width, "big", signed=True)


def _expect(value: Any, type_: type) -> Any:  # noqa: ANN401 - any value, checked
    if not isinstance(value, type_):
        raise TypeError(f"{value!r} is not {type_.__name__}")
    return value


def _expect_size(value: Any, size: int) -> bytes:  # noqa: ANN401 - any value, checked
    data: bytes = _expect(value, bytes)
    if len(data) != size:
        raise ValueError(f"{len(data)} bytes in a field of {size}")
    return data
