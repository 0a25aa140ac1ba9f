"""A checksum of rows by which all engines are compared: exact, and independent of the order and batches of the rows.

Per column it keeps the nulls and the exact sum of the values as integers (unscaled decimals, days, microseconds; the
bits of floats; the CRC-32 of text and bytes) and what these integers represent, so that a difference can be put into
words. Over whole rows it keeps the sum, modulo 2**64, of a mix of the row's values, so that values in the wrong row
are found too.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_NULL = np.uint64(0x9E3779B97F4A7C15)
_QUIET_NAN = np.uint64(0x7FF8000000000000)
_UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ROWS_IN_CACHE = 1 << 16
"""A column of so many rows is mixed in 0.4 of the time that one of a million takes."""


@dataclass(frozen=True)
class ColumnSum:
    """The nulls of a column, the sum of its other values, as `checksum_of` turns them into integers, and their kinds,
    without which a date would equal a number. There is no kind where all are null."""

    nulls: int
    total: int
    kinds: frozenset[str] = frozenset()

    def __add__(self, other: ColumnSum) -> ColumnSum:
        """Of both lots of values."""
        return ColumnSum(self.nulls + other.nulls, self.total + other.total, self.kinds | other.kinds)


@dataclass(frozen=True)
class Checksum:
    """The checksum of rows of named columns. Equal if, and practically only if, the rows are the same."""

    rows: int
    row_mix: int
    columns: Mapping[str, ColumnSum] = field(default_factory=dict)

    def __add__(self, other: Checksum) -> Checksum:
        """Of both lots of rows together; the columns must be the same."""
        if list(self.columns) != list(other.columns):
            raise ValueError(f"checksums of {list(self.columns)} and {list(other.columns)} do not add")
        return Checksum(
            self.rows + other.rows,
            (self.row_mix + other.row_mix) % 2**64,
            {name: own + other.columns[name] for name, own in self.columns.items()},
        )

    @property
    def text(self) -> str:
        """Twenty hexadecimal digits over the values, for a record."""
        columns = [[name, c.nulls, str(c.total)] for name, c in self.columns.items()]
        encoded = json.dumps([self.rows, str(self.row_mix), columns])
        return hashlib.sha256(encoded.encode()).hexdigest()[:20]

    def encode(self) -> str:
        """JSON that `decode_checksum` reads."""
        columns = [[name, c.nulls, str(c.total), sorted(c.kinds)] for name, c in self.columns.items()]
        return json.dumps([self.rows, str(self.row_mix), columns])

    def difference(self, other: Checksum) -> str | None:
        """What differs, in words; None when nothing does."""
        if self.rows != other.rows:
            return f"{self.rows} rows against {other.rows}"
        if list(self.columns) != list(other.columns):
            return f"columns {list(self.columns)} against {list(other.columns)}"
        for name, own in self.columns.items():
            its = other.columns[name]
            if own.nulls != its.nulls:
                return f"column {name}: {own.nulls} nulls against {its.nulls}"
            if own.kinds != its.kinds:
                return f"column {name}: {' and '.join(sorted(own.kinds))} against {' and '.join(sorted(its.kinds))}"
            if own.total != its.total:
                return f"column {name}: sum {own.total} against {its.total}"
        return None if self.row_mix == other.row_mix else "the same values in other rows"


def decode_checksum(text: str) -> Checksum:
    """The checksum that `Checksum.encode` gave."""
    rows, row_mix, columns = json.loads(text)
    return Checksum(
        rows,
        int(row_mix),
        {name: ColumnSum(nulls, int(total), frozenset(kinds)) for name, nulls, total, kinds in columns},
    )


def empty_checksum(columns: Sequence[str]) -> Checksum:
    """Of no rows."""
    return Checksum(0, 0, {name: ColumnSum(0, 0) for name in columns})


def checksum_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Checksum:
    """The checksum of these columns of all batches.

    Integers of any width, 32- and 64-bit floats, decimals of any width, and the variants of text, binary and lists
    count as the same type, because engines differ in which they deliver. NaNs are all one value; 0.0 and -0.0 are two.
    Of nested values, whose fields have the same names, a hash is summed; a null in one is neither zero nor empty. A
    UUID in canonical lower-case text equals its bytes, which some engines deliver, also inside nested values.

    Raises:
        TypeError: A column of an unknown type.
        KeyError: A batch lacks a column.
    """
    total = empty_checksum(columns)
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_IN_CACHE):
            total = total + _of_batch(batch.slice(start, _ROWS_IN_CACHE), columns)
    return total


def _of_batch(batch: pa.RecordBatch, columns: Sequence[str]) -> Checksum:
    mix = np.full(batch.num_rows, 1, dtype=np.uint64)
    sums: dict[str, ColumnSum] = {}
    for name in columns:
        array = batch.column(name)
        words = _words(array, name)
        valid = None if array.null_count == 0 else np.asarray(array.is_valid())
        if valid is not None:
            words = [np.where(valid, word, np.uint64(0)) for word in words]
        kinds = {_kind(array.type)} if array.null_count < len(array) else ()
        sums[name] = ColumnSum(array.null_count, _exact_sum(words), frozenset(kinds))
        for word in words:
            mixed = word if valid is None else np.where(valid, word, _NULL)
            mix = _mixed(mix * np.uint64(31) + mixed)
    return Checksum(batch.num_rows, int(mix.sum(dtype=np.uint64)), sums)


def _words(array: pa.Array, name: str) -> list[np.ndarray]:
    """The values as little-endian 64-bit words of two's complement, lowest first; what stands for null is undefined."""
    kind = array.type
    if isinstance(kind, pa.DictionaryType):
        return _words(array.dictionary_decode(), name)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return [_int64(array.cast(pa.int64()))]
    if pa.types.is_date32(kind):
        return [_int64(array.cast(pa.int32()).cast(pa.int64()))]
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        return [_int64(_micros(array))]
    if pa.types.is_floating(kind):
        bits = np.asarray(array.cast(pa.float64()).fill_null(0.0)).view(np.uint64)
        return [np.where(np.isnan(bits.view(np.float64)), _QUIET_NAN, bits)]
    if pa.types.is_decimal(kind):
        return _decimal_words(array)
    if _is_bytes(kind):
        return [_crc32(array)]
    if isinstance(kind, pa.BaseExtensionType):
        return _words(array.storage, name)
    if pa.types.is_nested(kind):
        return [_hashes(array, name)]
    raise TypeError(f"column {name} of type {kind} has no checksum")


def _kind(kind: pa.DataType) -> str:
    """What the integers of a column stand for, and those of the parts of nested values."""
    if isinstance(kind, pa.DictionaryType):
        return _kind(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _kind(kind.storage_type)
    if pa.types.is_decimal(kind):
        return f"decimals of scale {kind.scale}"
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        unit = "nanoseconds" if kind.unit == "ns" and pa.types.is_timestamp(kind) else "microseconds"
        return f"{'timestamps' if pa.types.is_timestamp(kind) else 'times'} in {unit}"
    if pa.types.is_struct(kind):
        return f"structs of ({', '.join(f'{json.dumps(f.name)}: {_kind(f.type)}' for f in kind.fields)})"
    if pa.types.is_map(kind):
        return f"maps of ({_kind(kind.key_type)}: {_kind(kind.item_type)})"
    if pa.types.is_nested(kind):
        return f"lists of ({_kind(kind.value_type)})"
    names = {
        "whole numbers": pa.types.is_boolean(kind) or pa.types.is_integer(kind),
        "dates": pa.types.is_date(kind),
        "floats": pa.types.is_floating(kind),
        "texts or bytes": _is_bytes(kind),
    }
    return next(name for name, fits in names.items() if fits)


def _hashes(array: pa.Array, name: str) -> np.ndarray:
    """One word for each value, nested ones by their parts: fields and elements in order, entries of maps in any."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_hashes(array.field(i), name) for i in range(kind.num_fields)]
    elif pa.types.is_nested(kind):
        if in_any_order := pa.types.is_map(kind):
            array = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        lengths = np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
        ends = np.cumsum(lengths)
        elements = _hashes(array.flatten(), name)
        if not in_any_order:
            elements = _mixed(elements + _place_in_list(lengths, ends))
        sums = np.concatenate(([np.uint64(0)], np.cumsum(elements, dtype=np.uint64)))
        parts = [sums[ends] - sums[ends - lengths], lengths.view(np.uint64)]
    else:
        parts = _words(array, name)
    mix = np.full(len(array), 1, dtype=np.uint64)
    for part in parts:
        mix = _mixed(mix * np.uint64(31) + part)
    return np.where(np.asarray(array.is_valid()), mix, _NULL)


def _place_in_list(lengths: np.ndarray, ends: np.ndarray) -> np.ndarray:
    return (np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)).astype(np.uint64)


def _is_bytes(kind: pa.DataType) -> bool:
    checks = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary,
        pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary,
    )  # fmt: skip
    return any(check(kind) for check in checks)


def _int64(array: pa.Array) -> np.ndarray:
    return np.asarray(array.fill_null(0)).view(np.uint64)


def _micros(array: pa.Array) -> pa.Array:
    """Microseconds as int64; timestamps in nanoseconds stay what they are, as microseconds could not hold them."""
    kind = array.type
    if pa.types.is_time(kind):
        array = array.cast(pa.time64("us"))
    elif pa.types.is_timestamp(kind) and kind.unit != "ns":
        array = array.cast(pa.timestamp("us", tz=kind.tz))
    return array.cast(pa.int64())


def _decimal_words(array: pa.Array) -> list[np.ndarray]:
    kind = array.type
    wide = array if pa.types.is_decimal128(kind) else array.cast(pa.decimal128(kind.precision, kind.scale))
    data = wide.buffers()[1]
    pairs = np.frombuffer(data, dtype=np.uint64, count=2 * len(wide), offset=16 * wide.offset).reshape(-1, 2)
    return [pairs[:, 0], pairs[:, 1]]


def _crc32(array: pa.Array) -> np.ndarray:
    encoded = array.cast(pa.large_binary()).dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = np.array([zlib.crc32(_as_stored(value)) for value in values] or [0], dtype=np.uint64)
    return codes[np.asarray(encoded.indices.fill_null(0))]


def _as_stored(value: bytes) -> bytes:
    """The 16 bytes of a UUID in canonical text; all else as it is."""
    return bytes.fromhex(value.replace(b"-", b"").decode()) if _UUID.fullmatch(value) else value


def _exact_sum(words: Sequence[np.ndarray]) -> int:
    """The sum of multi-word two's complement integers, exact for up to 2**31 rows."""
    total = 0
    for place, word in enumerate(words):
        low = int((word & _LOW).sum(dtype=np.uint64))
        if place == len(words) - 1:
            high = int((word.view(np.int64) >> 32).sum(dtype=np.int64))
        else:
            high = int((word >> _HALF).sum(dtype=np.uint64))
        total += (low + (high << 32)) << (64 * place)
    return total


def _mixed(values: np.ndarray) -> np.ndarray:
    """The finalizer of splitmix64: every bit of the input reaches every bit of the output."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
