"""Columnar containers of manifest entries: numpy arrays with one value per entry, no Python object per entry.

`valid` is a bool array, or None when every value is present. A slot that is not valid holds an unspecified fixed value
or an empty byte string. Arrays are read-only by convention: several plans may share them through a cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
Int64Array: TypeAlias = NDArray[np.int64]
ByteArray: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class FixedColumn:
    """Numbers. `values` has the dtype of the column's type: int32, int64, float32, float64, or uint8 for booleans."""

    values: NDArray[Any]
    valid: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def to_pylist(self) -> list[Any]:
        """Python numbers, None where there is no value."""
        return _masked(self.values.tolist(), self.valid)

    @property
    def has_values(self) -> bool:
        """Whether any slot is valid."""
        return len(self) > 0 if self.valid is None else bool(self.valid.any())

    @property
    def size_bytes(self) -> int:
        """Memory held by the arrays."""
        return self.values.nbytes + _nbytes(self.valid)


@dataclass(frozen=True, slots=True)
class BytesColumn:
    """Byte strings (UTF-8 for text): value i is ``data[offsets[i]:offsets[i + 1]]``; `offsets` has one more element."""

    offsets: Int64Array
    data: ByteArray
    valid: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_pylist(self) -> list[bytes | None]:
        """Bytes objects, None where there is no value."""
        data, ends = self.data.tobytes(), self.offsets.tolist()
        return _masked([data[a:b] for a, b in pairwise(ends)], self.valid)

    @property
    def has_values(self) -> bool:
        """Whether any slot is valid."""
        return len(self) > 0 if self.valid is None else bool(self.valid.any())

    @property
    def size_bytes(self) -> int:
        """Memory held by the arrays."""
        return self.offsets.nbytes + self.data.nbytes + _nbytes(self.valid)


@dataclass(frozen=True, slots=True)
class ListColumn:
    """Lists of int64: value i is ``values[offsets[i]:offsets[i + 1]]``; `offsets` has one more element."""

    offsets: Int64Array
    values: Int64Array
    valid: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_ranges(self) -> list[tuple[int, int] | None]:
        """Where each list's elements begin and end, None where there is no list."""
        return _masked(list(pairwise(self.offsets.tolist())), self.valid)

    def to_pylist(self) -> list[list[int] | None]:
        """Lists of int, None where there is no list."""
        values, ends = self.values.tolist(), self.offsets.tolist()
        return _masked([values[a:b] for a, b in pairwise(ends)], self.valid)

    @property
    def has_values(self) -> bool:
        """Whether any slot is valid."""
        return len(self) > 0 if self.valid is None else bool(self.valid.any())

    @property
    def size_bytes(self) -> int:
        """Memory held by the arrays."""
        return self.offsets.nbytes + self.values.nbytes + _nbytes(self.valid)


PartitionColumn: TypeAlias = FixedColumn | BytesColumn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ManifestColumns:
    """The entries of one manifest by column (spec: "Manifest Entry Fields", "Data File Fields").

    Null snapshot ids, sequence numbers and first row ids are left null: inheritance is the planner's business.
    A field that the writer schema lacks is a column without a valid value; `content` and `status` are always valid.
    `partition` is keyed by partition field id: integers, dates, times and timestamps as int64, booleans as uint8,
    floats as float32 or float64, text and binary as bytes, uuid and fixed as raw bytes, decimals as big-endian two's
    complement of any width. Metric columns are keyed by column id and hold the ids that were asked for and occur.
    """

    count: int
    status: FixedColumn
    snapshot_id: FixedColumn
    sequence_number: FixedColumn
    file_sequence_number: FixedColumn
    content: FixedColumn
    file_path: BytesColumn
    file_format: BytesColumn
    record_count: FixedColumn
    file_size_in_bytes: FixedColumn
    split_offsets: ListColumn
    equality_ids: ListColumn
    sort_order_id: FixedColumn
    first_row_id: FixedColumn
    referenced_data_file: BytesColumn
    content_offset: FixedColumn
    content_size_in_bytes: FixedColumn
    key_metadata: BytesColumn
    partition: Mapping[int, PartitionColumn] = field(default_factory=dict)
    column_sizes: Mapping[int, FixedColumn] = field(default_factory=dict)
    value_counts: Mapping[int, FixedColumn] = field(default_factory=dict)
    null_value_counts: Mapping[int, FixedColumn] = field(default_factory=dict)
    nan_value_counts: Mapping[int, FixedColumn] = field(default_factory=dict)
    lower_bounds: Mapping[int, BytesColumn] = field(default_factory=dict)
    upper_bounds: Mapping[int, BytesColumn] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Memory held by all arrays, for caches that are bounded by bytes."""
        total = 0
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, Mapping):
                total += sum(column.size_bytes for column in value.values())
            elif not isinstance(value, int):
                total += value.size_bytes
        return total


def first_not_utf8(column: BytesColumn) -> int | None:
    """The first value that is not UTF-8, None when all are."""
    if len(column.data) == 0 or int(column.data.max()) < 0x80:
        return None
    for index, value in enumerate(column.to_pylist()):
        try:
            (value or b"").decode("utf-8")
        except UnicodeDecodeError:
            return index
    return None


def _nbytes(array: NDArray[Any] | None) -> int:
    return 0 if array is None else array.nbytes


def _masked(values: list[Any], valid: BoolArray | None) -> list[Any]:
    if valid is None:
        return values
    return [value if present else None for value, present in zip(values, valid.tolist(), strict=True)]


def fits_int32(values: NDArray[Any]) -> bool:
    """Whether no number needs more than 32 bits: Avro writes an int as it writes a long."""
    return not len(values) or (int(values.min()) >= -(1 << 31) and int(values.max()) < 1 << 31)
