"""JSON form of single values, which schemas use for defaults (spec appendix D: "JSON single-value serialization").

Primitive values are in the internal representation of `icebench.engine.spec.values`. Nested values are hashable tuples:
a struct is ``((field_id, value), ...)``, a list ``(element, ...)``, a map ``((key, value), ...)``.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from icebench.engine.codec.metadata_json.objects import JsonValue
from icebench.engine.spec.calendar import UNITS_PER_DAY, UNITS_PER_SECOND, clock_of, days_of, iso_clock, iso_date
from icebench.engine.spec.types import DecimalType, FixedType, ListType, MapType, PrimitiveType, StructType, Type
from icebench.engine.spec.values import parse_uuid, to_float32

DefaultValue: TypeAlias = Any
"""A value in the representation described by the docstring of this module, or None."""

_DATE = re.compile(r"([+-]?\d{4,9})-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
_INTEGER_BITS = {"int": 32, "long": 64}
_UTC = ("+00:00", "Z")
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def value_from_json(type_: Type, raw: JsonValue) -> DefaultValue:
    """Convert a parsed JSON value; null becomes None.

    Raises:
        ValueError: The JSON value is not one of the type; the caller knows the path.
    """
    if raw is None:
        return None
    match type_:
        case StructType(fields):
            members = _expect(raw, dict, type_)
            return tuple(
                (f.field_id, value_from_json(f.type, members[str(f.field_id)]))
                for f in fields
                if str(f.field_id) in members
            )
        case ListType(element):
            return tuple(value_from_json(element.type, item) for item in _expect(raw, list, type_))
        case MapType(key, value):
            members = _expect(raw, dict, type_)
            keys, values = (_expect(members.get(part), list, type_) for part in ("keys", "values"))
            if len(keys) != len(values):
                raise ValueError(f"{type_} has {len(keys)} keys and {len(values)} values")
            pairs = zip(keys, values, strict=True)
            return tuple((value_from_json(key.type, k), value_from_json(value.type, v)) for k, v in pairs)
        case PrimitiveType():
            return _primitive_from_json(type_, raw)
    raise ValueError(f"{type_} has no JSON form")


def _expect(raw: JsonValue, expected: type | tuple[type, ...], type_: Type) -> DefaultValue:
    if not isinstance(raw, expected) or (isinstance(raw, bool) and expected is not bool):
        raise ValueError(f"{raw!r} is not a value of {type_}")
    return raw


def _primitive_from_json(type_: PrimitiveType, raw: JsonValue) -> DefaultValue:
    match type_.name:
        case "boolean":
            return _expect(raw, bool, type_)
        case "int" | "long":
            limit = 1 << (_INTEGER_BITS[type_.name] - 1)
            if not -limit <= _expect(raw, int, type_) < limit:
                raise ValueError(f"{raw!r} is not a value of {type_}")
            return raw
        case "float" | "double":
            return _float_from_json(type_, raw)
    return _parse_text(type_, _expect(raw, str, type_))


def _parse_text(type_: PrimitiveType, text: str) -> DefaultValue:
    match type_.name:
        case "string":
            return text
        case "decimal":
            assert isinstance(type_, DecimalType)
            return _decimal_from_json(type_, text)
        case "uuid":
            return parse_uuid(text)
        case "fixed" | "binary":
            data = bytes.fromhex(text)
            if isinstance(type_, FixedType) and len(data) != type_.length:
                raise ValueError(f"{type_} has {type_.length} bytes, not {len(data)}")
            return data
        case "date":
            return _days_of(text)
        case "time":
            return _time_of(text, UNITS_PER_SECOND[type_.name])
        case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            return _timestamp_of(type_, text)
    raise ValueError(f"{type_} has no value other than null here")


def _float_from_json(type_: PrimitiveType, raw: JsonValue) -> float:
    if isinstance(raw, str) and raw in _NON_FINITE:
        return _NON_FINITE[raw]
    try:
        number = float(_expect(raw, (int, float), type_))
        return to_float32(number) if type_.name == "float" else number
    except OverflowError as error:
        raise ValueError(f"{raw} is out of range for {type_}") from error


def _decimal_from_json(type_: DecimalType, text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a decimal") from error
    exponent = value.as_tuple().exponent
    if exponent != -type_.scale or len(value.as_tuple().digits) > type_.precision:
        raise ValueError(f"{text!r} is not a value of {type_}")
    return value


def _days_of(text: str) -> int:
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an ISO date")
    return days_of(int(found[1]), int(found[2]), int(found[3]))


def _time_of(text: str, per_second: int) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an ISO time")
    return clock_of(int(found[1]), int(found[2]), int(found[3] or 0), found[4] or "0", per_second)


def _timestamp_of(type_: PrimitiveType, text: str) -> int:
    zoned = type_.name.startswith("timestamptz")
    offset = next((o for o in _UTC if text.endswith(o)), None)
    if zoned != (offset is not None):
        raise ValueError(f"{text!r} is not a value of {type_}: " + ("needs +00:00" if zoned else "has a zone"))
    date, separator, time = text.removesuffix(offset or "").partition("T")
    if not separator:
        raise ValueError(f"{text!r} is not an ISO timestamp")
    value = _days_of(date) * UNITS_PER_DAY[type_.name] + _time_of(time, UNITS_PER_SECOND[type_.name])
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{text!r} is out of range for {type_}")
    return value


def value_to_json(type_: Type, value: DefaultValue) -> JsonValue:
    """The JSON-ready form of a value in the representation of this module; None is null."""
    if value is None:
        return None
    match type_:
        case StructType(fields):
            types = {f.field_id: f.type for f in fields}
            return {str(field_id): value_to_json(types[field_id], item) for field_id, item in value}
        case ListType(element):
            return [value_to_json(element.type, item) for item in value]
        case MapType(key, item):
            return {
                "keys": [value_to_json(key.type, k) for k, _ in value],
                "values": [value_to_json(item.type, v) for _, v in value],
            }
        case PrimitiveType(name):
            return _primitive_to_json(name, value)
    raise AssertionError(f"{type_} is not a type")


def _primitive_to_json(name: str, value: DefaultValue) -> JsonValue:
    match name:
        case "float" | "double":
            return value if math.isfinite(value) else _non_finite_text(value)
        case "decimal":
            return f"{value:f}"  # `str` gives an exponent for 0E-8, which the spec has for negative scales alone
        case "uuid":
            return str(value)
        case "fixed" | "binary":
            return value.hex()
        case "date":
            return iso_date(value)
        case "time":
            return iso_clock(value, UNITS_PER_SECOND[name])
        case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            days, rest = divmod(value, UNITS_PER_DAY[name])
            zone = "+00:00" if name.startswith("timestamptz") else ""
            return f"{iso_date(days)}T{iso_clock(rest, UNITS_PER_SECOND[name])}{zone}"
    return value


def _non_finite_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
