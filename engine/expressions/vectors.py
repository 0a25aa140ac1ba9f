"""Values of one column as arrays that can be placed among a filter's literals, without a Python object per row.

Three representations cover all ordered types:

==========  ====================================================================================================
whole       boolean, int, long, date, time, timestamps and decimals up to 18 digits (unscaled) as int64
float       float and double as float64
bytes       text (UTF-8), binary, fixed, uuid, and longer decimals as 17 big-endian bytes with the sign flipped;
            all compare as unsigned bytes
==========  ====================================================================================================

The one question that a vector answers is `intervals`: where does each value stand among sorted, distinct cuts? Cuts
``c0 < c1 < ...`` part the order into ``2n + 1`` intervals: below ``c0``, at ``c0``, between ``c0`` and ``c1``, at
``c1``, and so on.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from icebench.engine.expressions.kernels import ALL_VALID, Bytes, Mask, Offsets, byte_segments
from icebench.engine.spec.types import DecimalType, PrimitiveType
from icebench.engine.spec.values import Value, unscaled

Representation = Literal["whole", "float", "bytes"]

_WHOLE = frozenset(
    {"boolean", "int", "long", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
)
_UNITS_PER_DAY = {
    "timestamp": 86_400_000_000,
    "timestamptz": 86_400_000_000,
    "timestamp_ns": 86_400_000_000_000,
    "timestamptz_ns": 86_400_000_000_000,
}
_WIDE_DECIMAL_BYTES = 17
_SHORT_DECIMAL_DIGITS = 18
_WORD = 8


def representation(type_: PrimitiveType) -> Representation | None:
    """How values of a type are held; None for a type without an order that bounds follow."""
    if type_.name in _WHOLE or (isinstance(type_, DecimalType) and type_.precision <= _SHORT_DECIMAL_DIGITS):
        return "whole"
    if type_.name in ("float", "double"):
        return "float"
    return "bytes" if type_.name in ("string", "binary", "fixed", "uuid", "decimal") else None


@dataclass(frozen=True, slots=True)
class NumberCuts:
    """Sorted, distinct numbers: int64 or float64."""

    values: NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BytesCuts:
    """Sorted, distinct byte strings."""

    offsets: Offsets
    data: Bytes


Cuts = NumberCuts | BytesCuts


class Vector(Protocol):
    """A value per row; `valid` is None if every row has one."""

    @property
    def valid(self) -> Mask | None:
        """Which rows have a value."""

    def __len__(self) -> int:
        """How many rows there are."""

    def intervals(self, cuts: Cuts) -> NDArray[np.int64]:
        """For each row the interval of its value, 0 to 2n; anything where there is no value."""


@dataclass(frozen=True, slots=True)
class NumberVector:
    """Whole numbers as int64 or floating point as float64, NaN never valid."""

    values: NDArray[np.int64] | NDArray[np.float64]
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    def intervals(self, cuts: Cuts) -> NDArray[np.int64]:
        assert isinstance(cuts, NumberCuts)
        if len(cuts.values) == 1:
            cut = cuts.values[0]
            return np.add(self.values >= cut, self.values > cut, dtype=np.int64)
        below = np.searchsorted(cuts.values, self.values, side="left")
        return below + np.searchsorted(cuts.values, self.values, side="right")


@dataclass(frozen=True, slots=True)
class BytesVector:
    """Byte strings. Where `open_ended`, a row stands for a value above its string and all extensions of it."""

    offsets: Offsets
    data: Bytes
    valid: Mask | None = None
    open_ended: Mask | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def intervals(self, cuts: Cuts) -> NDArray[np.int64]:
        assert isinstance(cuts, BytesCuts)
        return byte_segments(
            self.offsets, self.data, mask_of(self.valid), mask_of(self.open_ended), cuts.offsets, cuts.data
        )


def restricted(vector: Vector | None, rows: Mask) -> Vector | None:
    """The vector without the values of all other rows."""
    match vector:
        case NumberVector(values, valid):
            return NumberVector(values, rows if valid is None else rows & valid)
        case BytesVector(offsets, data, valid, open_ended):
            return BytesVector(offsets, data, rows if valid is None else rows & valid, open_ended)
    return vector


def in_order(lower: Vector | None, upper: Vector | None) -> tuple[Vector | None, Vector | None]:
    """Bounds without those rows where the lower one is above the upper one: neither can be believed there."""
    if lower is None or upper is None:
        return lower, upper
    known = np.broadcast_to(True if lower.valid is None else lower.valid, (len(lower),))
    inverted = _is_above(lower, upper, known if upper.valid is None else known & upper.valid)
    if not inverted.any():
        return lower, upper
    return restricted(lower, ~inverted), restricted(upper, ~inverted)


def _is_above(vector: Vector, other: Vector, known: Mask) -> Mask:
    """Where a value is above the other's; only known rows are looked at."""
    if isinstance(vector, NumberVector) and isinstance(other, NumberVector):
        return known & (vector.values > other.values)
    assert isinstance(vector, BytesVector)
    assert isinstance(other, BytesVector)
    found = np.zeros(len(vector), dtype=np.bool_)
    sides = (_Words(vector), _Words(other))
    rows, at = np.flatnonzero(known), 0
    while len(rows):
        own, others = (side.at(rows, at) for side in sides)
        at += _WORD
        differs = own != others
        found[rows] = own > others
        rows = rows[~differs]
        lengths, other_lengths = (side.lengths[rows] for side in sides)
        ended = np.maximum(lengths, other_lengths) <= at
        found[rows[ended]] = (lengths > other_lengths)[ended]
        rows = rows[~ended]
    return found


class _Words:
    """Byte strings as numbers of eight bytes, which compare as the bytes do; where a string ends, zeros follow."""

    def __init__(self, vector: BytesVector) -> None:
        padded = np.concatenate([vector.data, np.zeros(_WORD, np.uint8)])
        self._words = np.ndarray((len(padded) - _WORD + 1,), np.uint64, padded.data, strides=(1,))
        self._starts = vector.offsets[:-1]
        self.lengths = np.diff(vector.offsets)

    def at(self, rows: NDArray[np.int64], place: int) -> NDArray[np.uint64]:
        """The words of these rows that begin at this place of each string."""
        lengths, starts = self.lengths[rows] - place, self._starts[rows] + place
        if lengths.min() >= _WORD:
            return self._words[starts].byteswap()
        lengths = np.clip(lengths, 0, _WORD)
        words = self._words[np.minimum(starts, len(self._words) - 1)].byteswap()
        missing = (np.uint64(8) * (_WORD - lengths).astype(np.uint64)).clip(max=63)
        return np.where(lengths == 0, np.uint64(0), words >> missing << missing)


def mask_of(valid: Mask | None) -> Mask:
    """A mask as the compiled loops take it."""
    return ALL_VALID if valid is None else valid


def key(type_: PrimitiveType, value: Value) -> int | float | bytes:
    """A value in its type's representation."""
    match value:
        case bool():
            return int(value)
        case str():
            return value.encode("utf-8")
        case uuid.UUID():
            return value.bytes
        case Decimal():
            assert isinstance(type_, DecimalType)
            number = unscaled(value, type_.scale)
            if type_.precision <= _SHORT_DECIMAL_DIGITS:
                return number
            raw = number.to_bytes(_WIDE_DECIMAL_BYTES, "big", signed=True)
            return bytes([raw[0] ^ 0x80]) + raw[1:]
        case _:
            return value


def pack(strings: Sequence[bytes]) -> tuple[Offsets, Bytes]:
    """Byte strings as offsets and data."""
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(s) for s in strings], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(strings), dtype=np.uint8)


def cuts_of(type_: PrimitiveType, keys: Sequence[int | float | bytes]) -> Cuts:
    """Cuts from sorted, distinct keys."""
    match representation(type_):
        case "whole":
            return NumberCuts(np.array(keys, dtype=np.int64))
        case "float":
            return NumberCuts(np.array(keys, dtype=np.float64))
        case _:
            return BytesCuts(*pack([k for k in keys if isinstance(k, bytes)]))


def vector_of(type_: PrimitiveType, values: Sequence[Value | None]) -> Vector | None:
    """A vector of internal values; None for a type without order. NaN has no place among bounds and becomes invalid, as
    does what is not a value of the type: it bounds nothing."""
    held = representation(type_)
    if held is None:
        return None
    keys = [key(type_, v) if v is not None and v == v else None for v in values]  # noqa: PLR0124 - NaN
    if held == "bytes":
        present = [isinstance(k, bytes) for k in keys]
        offsets, data = pack([k if isinstance(k, bytes) else b"" for k in keys])
        return BytesVector(offsets, data, np.array(present, np.bool_))
    if held == "whole":
        whole = [k if isinstance(k, int) and -(1 << 63) <= k < 1 << 63 else None for k in keys]
        present = [k is not None for k in whole]
        return NumberVector(np.array([0 if k is None else k for k in whole], np.int64), np.array(present, np.bool_))
    floating = [k if isinstance(k, (int, float)) else None for k in keys]
    present = [k is not None for k in floating]
    return NumberVector(np.array([0 if k is None else k for k in floating], np.float64), np.array(present, np.bool_))


def from_serialized(type_: PrimitiveType, offsets: Offsets, data: Bytes, valid: Mask | None) -> Vector | None:
    """A vector of binary single values (spec appendix D), as bounds are stored; None for a type without order.

    Rows of the width of a type that promotes to `type_` are widened. NaN, and bytes that no value of the type has, are
    invalid rows: a bound that cannot be read bounds nothing.
    """
    match representation(type_):
        case None:
            return None
        case "bytes" if isinstance(type_, DecimalType):
            return from_big_endian(type_, offsets, data, valid)
        case "bytes":
            return BytesVector(offsets, data, valid)
        case "whole" if isinstance(type_, DecimalType):
            return from_big_endian(type_, offsets, data, valid)
    raw, lengths = _little_endian(offsets, data, valid)
    name = type_.name
    if name == "boolean":
        return NumberVector((raw != 0).astype(np.int64), lengths == 1)
    if name in ("int", "date"):
        return NumberVector(raw, lengths == 4)
    if name in ("float", "double"):
        return _floats(raw, lengths, wide=name == "double")
    narrow = lengths == 4
    usable = lengths == 8
    if name == "long":
        usable = usable | narrow
    elif name in _UNITS_PER_DAY and narrow.any():
        unit = _UNITS_PER_DAY[name]
        fits = np.abs(raw) < (1 << 63) // unit
        raw = np.where(narrow & fits, raw * np.where(fits, unit, 0), raw)
        usable = usable | (narrow & fits)
    return NumberVector(raw, usable)


def _floats(raw: NDArray[np.int64], lengths: NDArray[np.int64], *, wide: bool) -> NumberVector:
    narrow = lengths == 4
    values = raw.view(np.float64)
    if narrow.any():
        singles = np.where(narrow, raw, 0).astype(np.uint32).view(np.float32)
        with np.errstate(invalid="ignore"):  # a signalling NaN
            values = np.where(narrow, singles.astype(np.float64), values)
    usable = (narrow | (lengths == 8)) if wide else narrow
    return NumberVector(values, usable & ~np.isnan(values))


def _little_endian(offsets: Offsets, data: Bytes, valid: Mask | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sizes = np.diff(offsets)
    width = int(sizes.max(initial=0))
    if width in (4, 8) and sizes.sum() == width * np.count_nonzero(sizes):
        # One width, as almost always: the values lie as in an array.
        packed = data[offsets[0] : offsets[-1]].view(f"<i{width}").astype(np.int64)
        if valid is None and len(packed) == len(sizes):
            return packed, np.full(len(sizes), width, dtype=np.int64)
        values = np.zeros(len(sizes), dtype=np.int64)
        values[sizes == width] = packed
        usable = sizes == width if valid is None else (sizes == width) & valid
        return np.where(usable, values, 0), np.where(usable, width, -1)
    usable = np.isin(sizes, (1, 4, 8)) if valid is None else np.isin(sizes, (1, 4, 8)) & valid
    unused = np.where(usable, 8 * (_WORD - sizes), 0)
    values = _words_at(offsets[:-1], data) << unused >> unused
    return np.where(usable, values, 0), np.where(usable, sizes, -1)


def from_big_endian(type_: DecimalType, offsets: Offsets, data: Bytes, valid: Mask | None) -> Vector:
    """A vector of decimals as big-endian two's complement of any width, in bounds and in partition values."""
    short = type_.precision <= _SHORT_DECIMAL_DIGITS
    if short and np.diff(offsets).max(initial=0) <= _WORD:
        return _from_words(offsets, data, valid)
    width = 8 if short else _WIDE_DECIMAL_BYTES
    keys, fits = big_endian(offsets, data, valid, width)
    if not short:
        return BytesVector(np.arange(len(fits) + 1, dtype=np.int64) * width, keys, fits)
    flipped = keys.view(">u8").astype(np.uint64) ^ np.uint64(1 << 63)
    return NumberVector(flipped.view(np.int64), fits)


def _from_words(offsets: Offsets, data: Bytes, valid: Mask | None) -> NumberVector:
    """Big-endian numbers of up to eight bytes: a word from where each begins, shifted by what comes after its end."""
    lengths = np.diff(offsets).astype(np.int64, copy=False)
    words = _words_at(offsets[:-1], data).byteswap()
    is_there = lengths > 0
    return NumberVector(words >> (8 * (_WORD - lengths)).clip(max=63), is_there if valid is None else is_there & valid)


def _words_at(starts: Offsets, data: Bytes) -> NDArray[np.int64]:
    """The eight bytes from each of these on, little-endian; zeros follow the data."""
    padded = np.concatenate([data, np.zeros(_WORD, np.uint8)])
    return np.ndarray((len(data) + 1,), np.int64, padded.data, strides=(1,))[starts]


def big_endian(offsets: Offsets, data: Bytes, valid: Mask | None, width: int) -> tuple[Bytes, Mask]:
    """Each row's two's complement number as `width` big-endian bytes with the sign bit flipped, which compare unsigned
    as the numbers do; False where a row is invalid, empty, or does not fit."""
    lengths, last = np.diff(offsets), offsets[1:] - 1
    fits = lengths > 0 if valid is None else (lengths > 0) & valid
    padded = np.append(data, np.uint8(0))
    keys = np.empty((len(lengths), width), np.uint8)
    sign = (padded[offsets[:-1]].view(np.int8) >> 7).view(np.uint8)
    for place in range(width):
        keys[:, -1 - place] = np.where(place < lengths, padded[np.maximum(last - place, 0)], sign)
    for row in np.flatnonzero(fits & (lengths > width)):
        number = int.from_bytes(data[offsets[row] : offsets[row + 1]].tobytes(), "big", signed=True)
        fits[row] = -1 << 8 * width - 1 <= number < 1 << 8 * width - 1
    keys[:, 0] ^= 0x80
    keys[~fits] = 0
    return keys.reshape(-1), fits
