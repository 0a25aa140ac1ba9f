"""Partition transforms (spec: "Partition Transforms", appendix B: "32-bit Hash Requirements").

A transform maps a source value to a partition value; null maps to null. The scalar forms here are the specification in
code and the oracle of the vectorized ones.
"""

from __future__ import annotations

import re
import struct
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import mmh3

from icebench.engine.spec.calendar import UNITS_PER_DAY, UNITS_PER_SECOND, civil_of
from icebench.engine.spec.types import DATE, INCOMPARABLE, INT, STRING, DecimalType, PrimitiveType
from icebench.engine.spec.values import Value, decimal_of, encode_value, unscaled

_INTEGRAL = frozenset({"int", "long"})
_MICROS = frozenset({"timestamp", "timestamptz"})
_NANOS = frozenset({"timestamp_ns", "timestamptz_ns"})
_TIMESTAMPS = _MICROS | _NANOS
_PARAMETRIC = re.compile(r"(bucket|truncate)\[(\d{1,10})\]", re.ASCII)
_EPOCH_YEAR = 1970


@dataclass(frozen=True, slots=True)
class Transform:
    """Base of all transforms; `str()` is the spec's name."""

    name: ClassVar[str] = ""
    preserves_order: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.name

    def accepts(self, source: PrimitiveType) -> bool:
        """Whether a column of this type may be the source."""
        raise NotImplementedError

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        """The type of the partition values."""
        raise NotImplementedError

    def apply(self, source: PrimitiveType, value: Value | None) -> Value | None:
        """The partition value of a source value, both in the internal representation."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Identity(Transform):
    """The value itself."""

    name: ClassVar[str] = "identity"
    preserves_order: ClassVar[bool] = True

    def accepts(self, source: PrimitiveType) -> bool:
        return source.name not in INCOMPARABLE

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return source

    def apply(self, source: PrimitiveType, value: Value | None) -> Value | None:
        return value


@dataclass(frozen=True, slots=True)
class Bucket(Transform):
    """Murmur3 hash modulo `width`."""

    width: int
    name: ClassVar[str] = "bucket"

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise ValueError("bucket needs at least one bucket")

    def __str__(self) -> str:
        return f"bucket[{self.width}]"

    def accepts(self, source: PrimitiveType) -> bool:
        allowed = _INTEGRAL | _TIMESTAMPS | {"decimal", "date", "time", "string", "uuid", "fixed", "binary"}
        return source.name in allowed

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return INT

    def apply(self, source: PrimitiveType, value: Value | None) -> Value | None:
        return None if value is None else (hash_value(source, value) & 0x7FFFFFFF) % self.width


@dataclass(frozen=True, slots=True)
class Truncate(Transform):
    """Numbers rounded down to a multiple of `width` (decimals: of the unscaled value), text cut to `width` characters,
    binary to `width` bytes."""

    width: int
    name: ClassVar[str] = "truncate"
    preserves_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise ValueError("truncate needs a positive width")

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    def accepts(self, source: PrimitiveType) -> bool:
        return source.name in _INTEGRAL | {"decimal", "string", "binary"}

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return source

    def apply(self, source: PrimitiveType, value: Value | None) -> Value | None:
        match value:
            case None:
                return None
            case Decimal():
                assert isinstance(source, DecimalType)
                number = unscaled(value, source.scale)
                return decimal_of(number - number % self.width, source.scale)
            case int():
                return value - value % self.width
            case str() | bytes():
                return value[: self.width]
        raise TypeError(f"truncate does not take {value!r}")


@dataclass(frozen=True, slots=True)
class _Temporal(Transform):
    preserves_order: ClassVar[bool] = True

    def accepts(self, source: PrimitiveType) -> bool:
        return source.name == "date" or source.name in _TIMESTAMPS

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return INT

    def apply(self, source: PrimitiveType, value: Value | None) -> Value | None:
        if value is None:
            return None
        assert isinstance(value, int)
        return self._of(source, value)

    def _of(self, source: PrimitiveType, value: int) -> int:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Year(_Temporal):
    """Years from 1970."""

    name: ClassVar[str] = "year"

    def _of(self, source: PrimitiveType, value: int) -> int:
        return civil_of(_days(source, value))[0] - _EPOCH_YEAR


@dataclass(frozen=True, slots=True)
class Month(_Temporal):
    """Months from 1970-01."""

    name: ClassVar[str] = "month"

    def _of(self, source: PrimitiveType, value: int) -> int:
        year, month, _ = civil_of(_days(source, value))
        return (year - _EPOCH_YEAR) * 12 + month - 1


@dataclass(frozen=True, slots=True)
class Day(_Temporal):
    """Days from 1970-01-01. The spec's result type is int; writers use date, which is stored the same."""

    name: ClassVar[str] = "day"

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return DATE

    def _of(self, source: PrimitiveType, value: int) -> int:
        return _days(source, value)


@dataclass(frozen=True, slots=True)
class Hour(_Temporal):
    """Hours from 1970-01-01T00."""

    name: ClassVar[str] = "hour"

    def accepts(self, source: PrimitiveType) -> bool:
        return source.name in _TIMESTAMPS

    def _of(self, source: PrimitiveType, value: int) -> int:
        return value // (3600 * UNITS_PER_SECOND[source.name])


@dataclass(frozen=True, slots=True)
class Void(Transform):
    """Always null: a field dropped from a v1 partition spec."""

    name: ClassVar[str] = "void"

    def accepts(self, source: PrimitiveType) -> bool:
        # Nulls are stored in the type of their source, which partition tuples have no form of for the others.
        return source.name not in INCOMPARABLE

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return source

    def apply(self, source: PrimitiveType, value: Value | None) -> Value | None:
        return None


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """A transform of a newer writer: planning ignores it, writers must refuse (spec: "Partition Transforms")."""

    text: str

    def __str__(self) -> str:
        return self.text

    def accepts(self, source: PrimitiveType) -> bool:
        return True

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return STRING


_BY_NAME: dict[str, Transform] = {t.name: t for t in (Identity(), Year(), Month(), Day(), Hour(), Void())}


def parse_transform(text: str) -> Transform:
    """The transform of that spec name, e.g. ``"bucket[16]"``; an unknown name gives `UnknownTransform`."""
    simple = _BY_NAME.get(text.lower())
    if simple is not None:
        return simple
    match = _PARAMETRIC.fullmatch(text.lower())
    if match is None or not 0 < int(match[2]) < 1 << 31:
        return UnknownTransform(text)
    return (Bucket if match[1] == "bucket" else Truncate)(int(match[2]))


def _days(source: PrimitiveType, value: int) -> int:
    return value // UNITS_PER_DAY[source.name]


def hash_value(source: PrimitiveType, value: Value) -> int:
    """The spec's 32-bit hash of a value, as a signed int."""
    if source.name in _INTEGRAL | _MICROS | {"date", "time"}:
        return murmur3(struct.pack("<q", value))
    if source.name in _NANOS:
        assert isinstance(value, int)
        return murmur3(struct.pack("<q", value // 1000))
    if isinstance(value, (str, bytes, Decimal, uuid.UUID)):
        return murmur3(encode_value(source, value))
    raise TypeError(f"{source} values are not hashed")


def murmur3(data: bytes) -> int:
    """Murmur3, x86 variant, 32 bits, seed 0, as a signed int."""
    return mmh3.hash(data)
