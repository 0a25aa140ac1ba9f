"""Writes numbers and heads of Thrift's compact protocol, and changes numbers within serialized structs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from icebench.engine.formats.parquet.thrift import STOP, STRUCT, read_field, read_number, skip

Pieces: TypeAlias = list[bytes | tuple[int, int]]
"""A serialized struct; in place of each number that can be changed its field and its value."""


def varint(number: int) -> bytes:
    """An unsigned number."""
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def signed(number: int) -> bytes:
    """A signed number of up to 64 bits."""
    return varint((number << 1) ^ (number >> 63))


def field_head(difference: int, kind: int) -> bytes:
    """The head of a field of this type, whose number is so much above that of the field before, at most 15."""
    return bytes([difference << 4 | kind])


def list_head(count: int, kind: int) -> bytes:
    """The head of a list of so many elements of this type."""
    return bytes([count << 4 | kind]) if count < 15 else bytes([15 << 4 | kind]) + varint(count)


def take(
    data: bytes, at: int, numbers: Collection[int], inner: Mapping[int, Collection[int]] | None = None
) -> tuple[Pieces, int]:
    """Take numbers out of a struct.

    Args:
        data: What it is in.
        at: Where it begins.
        numbers: The fields to take out.
        inner: The fields that are structs, and what to take out of them: other numbers than from the struct itself.

    Returns:
        The pieces, and the position after the struct.
    """
    pieces: Pieces = []
    number, copied = 0, at
    while True:
        number, kind, at = read_field(data, at, number)
        if kind == STOP:
            pieces.append(data[copied:at])
            return pieces, at
        if number in numbers:
            pieces.append(data[copied:at])
            value, copied = read_number(data, at)
            pieces.append((number, value))
            at = copied
        elif kind == STRUCT and inner is not None and number in inner:
            pieces.append(data[copied:at])
            own, copied = take(data, at, inner[number])
            pieces += own
            at = copied
        else:
            at = skip(data, at, kind)


def numbers_in(pieces: Pieces) -> dict[int, int]:
    """The numbers by field."""
    return dict(piece for piece in pieces if isinstance(piece, tuple))


def put(pieces: Pieces, changed: Mapping[int, int]) -> bytes:
    """The struct, in which these fields have other numbers."""
    return b"".join(p if isinstance(p, bytes) else signed(changed.get(*p)) for p in pieces)
