"""An encoder of variants for tests, written from the specification on its own: slow and plain."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from decimal import Decimal
from typing import Any

EPOCH = dt.date(1970, 1, 1)
MICROSECOND = dt.timedelta(microseconds=1)


def encode(value: Any, extra_names: tuple[str, ...] = ()) -> dict[str, bytes]:
    """A variant of a Python value; ints take the narrowest type. The metadata have more names if asked."""
    names = sorted({*names_of(value), *extra_names})
    return {"metadata": encode_metadata(names), "value": encode_value(value, names)}


def names_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(names_of, value.values()))
    return set().union(*map(names_of, value)) if isinstance(value, list) else set()


def encode_metadata(names: list[str]) -> bytes:
    raw = [n.encode() for n in names]
    ends = [sum(map(len, raw[:i])) for i in range(len(raw) + 1)]
    width = 2 if ends[-1] < 60_000 and len(raw) < 60_000 else 4
    numbers = b"".join(n.to_bytes(width, "little") for n in (len(raw), *ends))
    return bytes([1 | width - 1 << 6]) + numbers + b"".join(raw)


def encode_value(value: Any, names: list[str]) -> bytes:
    match value:
        case dict():
            fields = sorted(value.items(), key=lambda item: item[0].encode())
            return container(2, [encode_value(v, names) for _, v in fields], [names.index(n) for n, _ in fields])
        case list():
            return container(3, [encode_value(v, names) for v in value], None)
    return encode_scalar(value)


def container(basic: int, values: list[bytes], ids: list[int] | None) -> bytes:
    """With wide numbers where there are few values, so that readers see other widths than writers choose."""
    width, large = (3, len(values) > 2) if len(values) % 2 else (4, False)
    large = large or len(values) > 255
    head = (large << 4 | width - 1 << 2 | width - 1) if ids is not None else (large << 2 | width - 1)
    ends = [sum(map(len, values[:i])) for i in range(len(values) + 1)]
    numbers = b"".join(n.to_bytes(width, "little") for n in (*(ids or ()), *ends))
    return bytes([head << 2 | basic]) + len(values).to_bytes(4 if large else 1, "little") + numbers + b"".join(values)


def primitive(kind: int, payload: bytes = b"") -> bytes:
    return bytes([kind << 2]) + payload


def encode_scalar(value: Any) -> bytes:
    match value:
        case None:
            return primitive(0)
        case bool():
            return primitive(1 if value else 2)
        case int():
            kind, form = next(
                (k, f)
                for k, f, bits in ((3, "b", 7), (4, "h", 15), (5, "i", 31), (6, "q", 63))
                if -(1 << bits) <= value < 1 << bits
            )
            return primitive(kind, struct.pack("<" + form, value))
        case float():
            return primitive(7, struct.pack("<d", value))
        case Decimal():
            sign, digits, exponent = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            kind, width = (8, 4) if len(digits) <= 9 else (9, 8) if len(digits) <= 18 else (10, 16)
            return primitive(kind, bytes([-int(exponent)]) + unscaled.to_bytes(width, "little", signed=True))
        case dt.datetime():
            since = value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)
            return primitive(12 if value.tzinfo else 13, struct.pack("<q", since // MICROSECOND))
        case dt.date():
            return primitive(11, struct.pack("<i", (value - EPOCH).days))
        case dt.time():
            since = dt.datetime.combine(EPOCH, value) - dt.datetime.combine(EPOCH, dt.time())
            return primitive(17, struct.pack("<q", since // MICROSECOND))
        case uuid.UUID():
            return primitive(20, value.bytes)
        case bytes():
            return primitive(15, struct.pack("<I", len(value)) + value)
        case str():
            raw = value.encode()
            return (
                bytes([len(raw) << 2 | 1]) + raw if len(raw) < 64 else primitive(16, struct.pack("<I", len(raw)) + raw)
            )
    raise TypeError(f"{value!r} is no variant")
