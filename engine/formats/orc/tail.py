"""The stripes in the footer of an ORC file, as far as readers need them (ORC specification: "File Tail").

It is a protocol-buffers message; its few fields are found by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from icebench.engine.errors import CorruptTable

_FOOTER_STRIPES, _FOOTER_TYPES, _FOOTER_STATISTICS = 3, 4, 7
_STRIPE_OFFSET, _STRIPE_PARTS, _STRIPE_ROWS = 1, (2, 3, 4), 5
_TYPE_KIND = 1
_VARINT_BITS = 70
_TIMESTAMPS = frozenset({9, 18})
_STATISTICS_TIMESTAMP = 9
_TIMESTAMP_BOUNDS = frozenset({1, 2, 3, 4})


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe: offset and length in bytes, length of its footer, and number of rows."""

    offset: int
    size_bytes: int
    footer_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class OrcTail:
    """The stripes of a file, and the bounds of all its timestamp columns in milliseconds, if it has statistics."""

    stripes: tuple[Stripe, ...]
    timestamp_bounds_ms: tuple[int, ...]


def decode_orc_footer(footer: bytes, *, location: str | None = None) -> OrcTail:
    """The stripes and timestamp bounds in a footer, inflated.

    Raises:
        CorruptTable: It is cut off.
    """
    try:
        stripes, kinds = [], []
        bounds: list[int] = []
        statistics = 0
        for number, value in fields_of(footer):
            if not isinstance(value, bytes):
                continue
            if number == _FOOTER_STRIPES:
                stripes.append(_stripe(value))
            elif number == _FOOTER_TYPES:
                kinds.append(next((v for n, v in fields_of(value) if n == _TYPE_KIND), 0))
            elif number == _FOOTER_STATISTICS:
                if statistics < len(kinds) and kinds[statistics] in _TIMESTAMPS:
                    bounds += _timestamp_bounds(value)
                statistics += 1
    except IndexError as error:
        raise CorruptTable("the tail of an ORC file is cut off", location=location) from error
    return OrcTail(tuple(stripes), tuple(bounds))


def _stripe(data: bytes) -> Stripe:
    found = {number: value for number, value in fields_of(data) if isinstance(value, int)}
    size = sum(found.get(number, 0) for number in _STRIPE_PARTS)
    footer = found.get(_STRIPE_PARTS[-1], 0)
    return Stripe(found.get(_STRIPE_OFFSET, 0), size, footer, found.get(_STRIPE_ROWS, 0))


def _timestamp_bounds(statistics: bytes) -> Iterator[int]:
    for number, value in fields_of(statistics):
        if number == _STATISTICS_TIMESTAMP and isinstance(value, bytes):
            for bound, zigzag in fields_of(value):
                if bound in _TIMESTAMP_BOUNDS and isinstance(zigzag, int):
                    yield (zigzag >> 1) ^ -(zigzag & 1)


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers with their values; IndexError if the message is cut off."""
    position = 0
    while position < len(data):
        key, position = varint(data, position)
        key &= 0xFFFF_FFFF  # as C++ reads it
        match key & 7:
            case 0:
                value, position = varint(data, position)
                yield key >> 3, value
            case 2:
                length, position = varint(data, position)
                if position + length > len(data):
                    raise IndexError(position)
                yield key >> 3, data[position : position + length]
                position += length
            case 1:
                position += 8
            case 5:
                position += 4
            case _:
                raise IndexError(position)


def varint(data: bytes, position: int) -> tuple[int, int]:
    """A number and the position after it; IndexError if it is cut off or has more than 64 bits."""
    value = shift = 0
    while shift < _VARINT_BITS:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise IndexError(position)
