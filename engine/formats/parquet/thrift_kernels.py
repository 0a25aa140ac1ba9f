"""Decodes Thrift's compact protocol, the encoding of Parquet's footers, in compiled code.

Importing this module imports Numba. The input is untrusted: each read is checked against the end, and each loop
consumes a byte per iteration.
"""

from __future__ import annotations

from icebench.engine.formats.parquet.layout import BAD_NUMBER, TRUNCATED, UNKNOWN
from icebench.engine.kernels.intrinsics import load8

# Types of the compact protocol; lists and structs with lists in them are for `chunk_kernels.skip_any`.
_STOP = 0
_TRUE = 1
_FALSE = 2
_BYTE = 3
_INT16 = 4
_INT64 = 6
_DOUBLE = 7
_BINARY = 8
_STRUCT = 12

_MOST_DEPTH = 8


def read_varint(position: int, end: int) -> tuple[int, int]:
    """A number of up to 64 bits, and the position after it or an error code."""
    value = 0
    shift = 0
    while True:
        if position >= end:
            return 0, TRUNCATED
        byte = load8(position)
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            return 0, BAD_NUMBER


def read_zigzag(position: int, end: int) -> tuple[int, int]:
    """A signed number of up to 32 bits, and the position after it or an error code."""
    value, position = read_varint(position, end)
    if position >= 0 and (value < 0 or value > 0xFFFF_FFFF):
        return 0, BAD_NUMBER
    return (value >> 1) ^ -(value & 1), position


def read_field(position: int, end: int, before: int) -> tuple[int, int, int]:
    """A field's number and type, and the position after its head or an error code."""
    if position >= end:
        return 0, 0, TRUNCATED
    head = load8(position)
    position += 1
    if head == _STOP:
        return 0, _STOP, position
    if head >> 4:
        return before + (head >> 4), head & 15, position
    number, position = read_zigzag(position, end)
    return number, head & 15, position


def skip_field(position: int, end: int, kind: int) -> int:
    """The position after a value of this type, or an error code."""
    depth = 0
    while True:
        if kind == _STOP:
            depth -= 1
        elif kind == _STRUCT:
            depth += 1
            if depth > _MOST_DEPTH:
                return UNKNOWN
        elif kind == _BYTE:
            position += 1
        elif kind == _DOUBLE:
            position += 8
        elif kind == _BINARY:
            size, position = read_varint(position, end)
            if position < 0:
                return position
            if size < 0 or size > end - position:
                return TRUNCATED
            position += size
        elif _INT16 <= kind <= _INT64:
            _, position = read_varint(position, end)
            if position < 0:
                return position
        elif kind not in (_TRUE, _FALSE):
            return UNKNOWN
        if depth <= 0:
            return position if position <= end else TRUNCATED
        _, kind, position = read_field(position, end, 0)
        if position < 0:
            return position
