"""Single values and their binary form (spec appendix D: "Single-value serialization").

Internal representation, used for bounds, partition values, defaults and literals:

=====================  ==========================================================================
boolean, int, long     bool, int
float, double          float; of a float one that 32 bits hold
date                   int, days from 1970-01-01
time                   int, microseconds from midnight
timestamp(tz)          int, microseconds from 1970-01-01T00:00:00 (UTC)
timestamp(tz)_ns       int, nanoseconds from the same
string                 str
uuid                   uuid.UUID
fixed, binary          bytes (also geometry, geography, variant)
decimal(P, S)          decimal.Decimal with exactly S digits after the point
=====================  ==========================================================================
"""

from __future__ import annotations

import re
import struct
import uuid
from decimal import Context, Decimal
from typing import Any, cast

from icebench.engine.errors import CorruptTable
from icebench.engine.spec.calendar import UNITS_PER_DAY
from icebench.engine.spec.types import DecimalType, FixedType, PrimitiveType

Value = bool | int | float | str | bytes | uuid.UUID | Decimal
"""A non-null single value in the internal representation."""

_EXACT = Context(prec=100)
_FORMATS = {
    "int": "<i",
    "date": "<i",
    "long": "<q",
    "time": "<q",
    "timestamp": "<q",
    "timestamptz": "<q",
    "timestamp_ns": "<q",
    "timestamptz_ns": "<q",
    "float": "<f",
    "double": "<d",
}
_PROMOTED = {"long": ("<i", 4), "double": ("<f", 4), "timestamp": ("<i", 4), "timestamp_ns": ("<i", 4)}


def unscaled(value: Decimal, scale: int) -> int:
    """The integer whose `scale`-th decimal shift is `value`; exact, raises ValueError if digits would be lost."""
    shifted = value.scaleb(scale, _EXACT)
    whole = int(shifted)
    if whole != shifted:
        raise ValueError(f"{value} has more than {scale} digits after the point")
    return whole


def decimal_of(unscaled_value: int, scale: int) -> Decimal:
    """The decimal with this unscaled value and exactly `scale` digits after the point."""
    return Decimal(unscaled_value).scaleb(-scale, _EXACT)


def encode_value(type_: PrimitiveType, value: Value) -> bytes:
    """The value's binary single-value serialization."""
    match type_.name, value:
        case "boolean", bool():
            return b"\x01" if value else b"\x00"
        case "string", str():
            return value.encode("utf-8")
        case "uuid", uuid.UUID():
            return value.bytes
        case "decimal", Decimal():
            assert isinstance(type_, DecimalType)
            number = unscaled(value, type_.scale)
            return number.to_bytes(((number if number >= 0 else ~number).bit_length() // 8) + 1, "big", signed=True)
        case (("fixed" | "binary" | "geometry" | "geography" | "variant"), bytes()):
            return value
        case name, (int() | float()) if name in _FORMATS and not isinstance(value, bool):
            return struct.pack(_FORMATS[name], value)
    raise TypeError(f"{value!r} is not a value of type {type_}")


UUID_MARKS = r"urn:|uuid:|[-{}]"
"""What the text of a uuid may have beside its digits."""
UUID_DIGITS = "[0-9a-fA-F]{32}"


def parse_uuid(text: str) -> uuid.UUID:
    """The uuid of a text; raises ValueError for any other text, also for one with signs, underscores or spaces, which
    `uuid.UUID` takes as `int` does."""
    digits = re.sub(UUID_MARKS, "", text)
    if re.fullmatch(UUID_DIGITS, digits) is None:
        raise ValueError(f"{text!r} is not a uuid such as f79c3e09-677c-4bbd-a479-3f349cb785e7")
    return uuid.UUID(digits)


def to_float32(number: float) -> float:
    """The nearest value of the type float; raises OverflowError for a finite number that has none."""
    found: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return found


def as_value(type_: PrimitiveType, value: object) -> Value:
    """What a user gives as a value of a type, in the internal representation: whole numbers may stand for others, a
    float is rounded to 32 bits, and a decimal has as many digits after the point as its type.

    Raises:
        ValueError: It is no value of the type.
    """
    found: Any = value
    try:
        if isinstance(type_, DecimalType) and isinstance(found, Decimal):
            found = decimal_of(unscaled(found, type_.scale), type_.scale)
            if len(found.as_tuple().digits) > type_.precision:
                raise ValueError(f"more than {type_.precision} digits")
        elif type_.name in ("float", "double") and isinstance(found, int | float) and not isinstance(found, bool):
            found = to_float32(found) if type_.name == "float" else float(found)
        encode_value(type_, found)
        if isinstance(type_, FixedType) and len(found) != type_.length:
            raise ValueError(f"{len(found)} bytes")
    except TypeError:
        raise ValueError(f"{value!r} is not a value of type {type_}") from None
    except (ValueError, ArithmeticError, struct.error) as error:
        raise ValueError(f"{value!r} is not a value of type {type_}: {error}") from error
    return cast("Value", found)


def decode_value(type_: PrimitiveType, data: bytes) -> Value:
    """The value that `data` serializes. Bounds written before a promotion (int as long, float as double, date as
    timestamp) have the old width and are widened.

    Raises:
        CorruptTable: The bytes have the wrong length or are not UTF-8.
    """
    name = type_.name
    try:
        if name in _FORMATS:
            promoted = _PROMOTED.get(name)
            if promoted is not None and len(data) == promoted[1]:
                old = struct.unpack(promoted[0], data)[0]
                return old * UNITS_PER_DAY[name] if name in ("timestamp", "timestamp_ns") else old
            return struct.unpack(_FORMATS[name], data)[0]
        if name == "boolean":
            if len(data) != 1:
                raise ValueError("a boolean has one byte")
            return data != b"\x00"
        if name == "string":
            return data.decode("utf-8")
        if name == "uuid":
            return uuid.UUID(bytes=data)
        if isinstance(type_, DecimalType):
            if not 1 <= len(data) <= 17:
                raise ValueError(f"a decimal has 1 to 17 bytes, not {len(data)}")
            return decimal_of(int.from_bytes(data, "big", signed=True), type_.scale)
        if isinstance(type_, FixedType) and len(data) != type_.length:
            raise ValueError(f"{type_} has {type_.length} bytes, not {len(data)}")
    except (struct.error, ValueError) as error:
        raise CorruptTable(f"not a serialized {type_}: {error}") from error
    return data
