"""Manifest entries as Avro bytes, a batch at a time: objects to columns here, columns to bytes in kernels."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec import avro_write_kernels as kernels
from engine.codec import manifest_schema as ids
from engine.codec.avro_schema import decimal_width
from engine.codec.columns import Int64Array
from engine.codec.kernel_choice import compiled, interprets
from engine.spec.manifest import ManifestEntry
from engine.spec.types import DecimalType, FixedType, ListType, MapType, PrimitiveType, StructType, Type
from engine.spec.values import unscaled

_LONGEST_NUMBER = 10
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


def encode_rows(entries: Sequence[ManifestEntry], entry_type: StructType) -> tuple[bytes, list[int]]:
    """The Avro objects of entries one after the other, and where each one ends.

    Args:
        entries: At least one; partition tuples have as many values as the partition struct has fields.
        entry_type: The `manifest_entry` struct of a format version.

    Raises:
        ValueError, TypeError, OverflowError, struct.error: A value does not fit its type.
    """
    batch = _Batch(len(entries))
    batch.add_struct(entry_type, entries)
    return batch.encode()


class _Batch:
    """Columns of one batch, in the layout of `avro_write_kernels`, and the instructions that write them."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._code: list[int] = []
        self._columns: list[int] = []
        self._memory: list[NDArray[Any]] = []
        self._memory_size = 0
        self._blob: list[bytes] = []
        self._blob_size = 0
        self._elements = 0
        self._key_sets: dict[tuple[int, ...], int] = {}

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
                self._instruct(kernels.WRITE_LIST, self._lists(values), required)
            case PrimitiveType(name) if name in _NUMBER_TYPES:
                _check_range(name, values)
                self._instruct(kernels.WRITE_NUMBER, self._numbers(values), required)
            case PrimitiveType(name) if name == "unknown":
                # An Avro null takes no bytes.
                if any(value is not None for value in values):
                    raise ValueError("a partition field whose source column was dropped has only nulls")
            case PrimitiveType(name):
                what = kernels.WRITE_BYTES if name in ("string", "binary") else kernels.WRITE_FIXED
                convert = _converter(type_)
                raw = [None if value is None else convert(value) for value in values]
                self._instruct(what, self._bytes(raw), required)

    def _instruct(self, what: int, column: int, required: bool, argument: int = 0) -> None:  # noqa: FBT001
        self._code += [what, column, int(not required), argument]

    def _column(self, pairs: Int64Array) -> int:
        self._columns.append(self._append(pairs.reshape(-1)))
        return len(self._columns) - 1

    def _append(self, numbers: NDArray[Any]) -> int:
        begin = self._memory_size
        self._memory.append(numbers)
        self._memory_size += len(numbers)
        return begin

    def _numbers(self, values: list[Any]) -> int:
        pairs = np.zeros((self._rows, 2), np.int64)
        missing = values.count(None)
        if missing == 0:
            pairs[:, 0] = np.fromiter(values, np.int64, self._rows)
            pairs[:, 1] = 1
        elif missing < self._rows:
            pairs[:, 1] = [value is not None for value in values]
            pairs[:, 0] = np.fromiter((value or 0 for value in values), np.int64, self._rows)
        return self._column(pairs)

    def _bytes(self, values: list[bytes | None]) -> int:
        pairs = np.zeros((self._rows, 2), np.int64)
        if values.count(None) < self._rows:
            pairs[:, 1] = [0 if value is None else len(value) + 1 for value in values]
            sizes = np.maximum(pairs[:, 1] - 1, 0)
            pairs[:, 0] = self._blob_size + np.cumsum(sizes) - sizes
            self._add_blob(value for value in values if value is not None)
        return self._column(pairs)

    def _add_blob(self, values: Iterable[bytes]) -> None:
        joined = b"".join(values)
        self._blob.append(joined)
        self._blob_size += len(joined)

    def _lists(self, values: list[Sequence[int] | None]) -> int:
        sizes = np.fromiter((0 if value is None else len(value) for value in values), np.int64, self._rows)
        total = int(sizes.sum())
        self._elements += total
        flat = np.fromiter(chain.from_iterable(value for value in values if value), np.int64, total)
        pairs = np.zeros((self._rows, 2), np.int64)
        pairs[:, 0] = self._append(flat) + np.cumsum(sizes) - sizes
        pairs[:, 1] = sizes + [value is not None for value in values]
        return self._column(pairs)

    def _add_map(self, of_bytes: bool, maps: list[Mapping[int, Any]]) -> None:  # noqa: FBT001
        """An empty map is written as null, as writers do that have no metrics."""
        sizes = np.fromiter(map(len, maps), np.int64, self._rows)
        total = int(sizes.sum())
        if total == 0:
            self._instruct(kernels.WRITE_NUMBER_MAP, self._column(np.zeros((self._rows, 2), np.int64)), required=False)
            return
        self._elements += 2 * total
        values = chain.from_iterable(m.values() for m in maps)
        pairs = np.zeros((self._rows, 2), np.int64)
        if of_bytes:
            strings = list(values)
            offsets = np.zeros(total + 1, np.int64)
            np.cumsum(np.fromiter(map(len, strings), np.int64, total), out=offsets[1:])
            elements = offsets + self._blob_size
            self._add_blob(strings)
        else:
            elements = np.fromiter(values, np.int64, total)
        pairs[:, 0] = self._append(elements) + np.cumsum(sizes) - sizes
        pairs[:, 1] = sizes + (sizes > 0)
        what = kernels.WRITE_BYTES_MAP if of_bytes else kernels.WRITE_NUMBER_MAP
        self._instruct(what, self._column(pairs), required=False, argument=self._keys(maps))

    def _keys(self, maps: list[Mapping[int, Any]]) -> int:
        """The keys of maps; most files of a table have the same, which are kept once."""
        pairs = np.zeros((self._rows, 2), np.int64)
        known = self._key_sets
        begins = []
        for m in maps:
            keys = tuple(m)
            begin = known.get(keys)
            if begin is None:
                _check_range("int", keys)
                begin = known[keys] = self._append(np.array(keys, np.int64))
            begins.append(begin)
        pairs[:, 0] = begins
        return self._column(pairs)

    def encode(self) -> tuple[bytes, list[int]]:
        """The bytes of all rows, and where each one ends."""
        memory = np.concatenate([numbers.astype(np.int64, copy=False) for numbers in self._memory])
        blob = b"".join(self._blob)
        instructions = len(self._code) // 4
        # Of each value its number or length, an option's branch, and a map's count, size and end.
        bound = self._rows * instructions * 4 * _LONGEST_NUMBER + self._elements * _LONGEST_NUMBER + len(blob)
        if interprets(self._memory_size * 4):
            ends = [0] * self._rows
            out = bytearray(bound)
            size = kernels.write_rows(self._code, self._columns, memory.tolist(), blob, out, ends)
            return bytes(out[:size]), ends
        array = np.empty(bound, np.uint8)
        row_ends = np.zeros(self._rows, np.int64)
        code, columns = np.array(self._code, np.int64), np.array(self._columns, np.int64)
        size = compiled().write_rows(code, columns, memory, np.frombuffer(blob, np.uint8), array, row_ends)
        return array[:size].tobytes(), row_ends.tolist()


def _check_range(name: str, values: Iterable[Any]) -> None:
    if name in _INT32_TYPES:
        for value in values:
            if value is not None and not -(1 << 31) <= value < 1 << 31:
                raise OverflowError(f"{value} is out of range for {name}")


def _converter(type_: PrimitiveType) -> Callable[[Any], bytes]:
    """How a value of that type becomes bytes in Avro."""
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
