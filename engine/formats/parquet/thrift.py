"""Decodes footers of Parquet files (parquet.thrift: FileMetaData) in plain Python, as far as column chunks go.

For processes that have not loaded the faster `icebench.engine.formats.parquet.chunk_kernels`. The input is untrusted:
raises IndexError where it ends too early, and ValueError for anything else that is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from icebench.engine.formats.parquet.layout import (
    CHUNK_DATA_AT,
    CHUNK_DICTIONARY_AT,
    CHUNK_GROUP,
    CHUNK_IS_ELSEWHERE,
    CHUNK_STATISTICS_AT,
    CHUNK_TYPE,
    CHUNK_VALUES,
    CHUNK_WIDTH,
    STACK_DEPTH,
)

# Types of the compact protocol.
STOP = 0
_TRUE = 1
_BYTE = 3
INT16 = 4
_INT32 = 5
INT64 = 6
_DOUBLE = 7
BINARY = 8
LIST = 9
_SET = 10
STRUCT = 12

_SCHEMA = 2
_CHILDREN = 5
_ROW_GROUPS = 4
_COLUMN_ORDERS = 7
_GROUP_COLUMNS = 1
_CHUNK_ELSEWHERE = frozenset({1, 8, 9})
_CHUNK_META = 3
_META_STATISTICS = 12
_META_NUMBERS = {
    1: CHUNK_TYPE,
    5: CHUNK_VALUES,
    9: CHUNK_DATA_AT,
    11: CHUNK_DICTIONARY_AT,
}
_MOST_INT64 = 0x7FFF_FFFF_FFFF_FFFF


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and the position after it."""
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + 1
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """A signed number of up to 64 bits, and the position after it."""
    value, at = read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def read_size(data: bytes, at: int) -> tuple[int, int]:
    """A number of bytes or elements, and the position after it."""
    value, at = read_varint(data, at)
    if value > _MOST_INT64:
        raise ValueError("a size of more than 63 bits")
    return value, at


def read_field(data: bytes, at: int, before: int) -> tuple[int, int, int]:
    """A field's number and type, and the position after its head."""
    head = data[at]
    if head == STOP:
        return 0, STOP, at + 1
    if head >> 4:
        return before + (head >> 4), head & 15, at + 1
    number, at = read_number(data, at + 1)
    if not -0x8000_0000 <= number <= 0x7FFF_FFFF:
        raise ValueError("a field's number of more than 32 bits")
    return number, head & 15, at


def read_list(data: bytes, at: int) -> tuple[int, int, int]:
    """Read the head of a list: number of elements, their type, and the position of the first."""
    head = data[at]
    if head >> 4 != 15:
        return head >> 4, head & 15, at + 1
    count, at = read_size(data, at + 1)
    return count, head & 15, at


def skip(data: bytes, at: int, kind: int, depth: int = 0) -> int:
    """The position after a value of this type."""
    if kind == BINARY:
        size, at = read_size(data, at)
        at += size
    elif INT16 <= kind <= INT64:
        _, at = read_varint(data, at)
    elif kind == _BYTE:
        at += 1
    elif kind == _DOUBLE:
        at += 8
    elif kind in (LIST, _SET, STRUCT):
        if depth == STACK_DEPTH:
            raise ValueError("structs and lists within each other too often")
        return _skip_all(data, at, kind, depth + 1)
    elif kind not in (_TRUE, _TRUE + 1):
        raise ValueError(f"a value of type {kind}")
    if at > len(data):
        raise IndexError("ends within a value")
    return at


def _skip_all(data: bytes, at: int, kind: int, depth: int) -> int:
    if kind != STRUCT:
        count, kind, at = read_list(data, at)
        # A truth value is a byte in a list.
        kind = _BYTE if _TRUE <= kind <= _BYTE else kind
        for _ in range(count):
            if kind == STOP or at >= len(data):
                raise IndexError("ends within a list")
            at = skip(data, at, kind, depth)
        return at
    while True:
        _, kind, at = read_field(data, at, 0)
        if kind == STOP:
            return at
        at = skip(data, at, kind, depth)


def read_struct(data: bytes, at: int = 0, depth: int = 0, *, number: int = 0) -> tuple[dict[int, Any], int]:
    """The integers, structs, and lists of either in a struct, by field number, and the position after it.

    What is left of a struct is read after its field `number`.
    """
    if depth == STACK_DEPTH:
        raise ValueError("structs within each other too often")
    found: dict[int, Any] = {}
    while True:
        number, kind, at = read_field(data, at, number)
        if kind == STOP:
            return found, at
        if kind == STRUCT or INT16 <= kind <= INT64:
            found[number], at = _read_value(data, at, kind, depth)
        elif kind == LIST and ((element := read_list(data, at)[1]) == STRUCT or INT16 <= element <= INT64):
            count, _, at = read_list(data, at)
            found[number] = values = []
            for _ in range(count):
                value, at = _read_value(data, at, element, depth)
                values.append(value)
        else:
            at = skip(data, at, kind)


def _read_value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    return read_struct(data, at, depth + 1) if kind == STRUCT else read_number(data, at)


def shape_of(footer: bytes) -> tuple[int, int, int]:
    """The number of schema elements of a footer, of leaves among them, and of row groups.

    Raises:
        IndexError: It ends too early.
        ValueError: It is damaged or unusual.
    """
    number, at, elements, leaves, row_groups = 0, 0, 0, 0, 0
    while True:
        number, kind, at = read_field(footer, at, number)
        if kind == STOP:
            return elements, leaves, row_groups
        if number == _SCHEMA and kind == LIST:
            elements, _, at = read_list(footer, at)
            for _ in range(elements):
                at, is_leaf = _skip_element(footer, at)
                leaves += is_leaf
            continue
        if number == _ROW_GROUPS and kind == LIST:
            row_groups, _, at = read_list(footer, at)
            # The rest is not needed.
            return elements, leaves, row_groups
        at = skip(footer, at, kind)


def _skip_element(footer: bytes, at: int) -> tuple[int, bool]:
    number, is_leaf = 0, True
    while True:
        number, kind, at = read_field(footer, at, number)
        if kind == STOP:
            return at, is_leaf
        if number == _CHILDREN and _BYTE <= kind <= INT64:
            children, _ = read_number(footer, at)
            is_leaf = children == 0
        at = skip(footer, at, kind)


def list_chunks(footer: bytes, row_groups: int, leaves: int) -> tuple[npt.NDArray[np.int64], int]:
    """The column chunks of a footer in order, CHUNK_WIDTH numbers each, and the offset of its column orders or -1.

    Raises:
        IndexError: It ends too early.
        ValueError: It is damaged or unusual, or has not `leaves` column chunks in each of `row_groups`.
    """
    number, at, orders = 0, 0, -1
    chunks: list[list[int]] = []
    while True:
        number, kind, at = read_field(footer, at, number)
        if kind == STOP:
            break
        if number == _ROW_GROUPS and kind == LIST:
            count, kind, at = read_list(footer, at)
            if count != row_groups or (count and kind != STRUCT):
                raise ValueError(f"{count} row groups, not {row_groups}")
            for group in range(count):
                before = len(chunks)
                at = _list_group(footer, at, group, leaves, chunks)
                if len(chunks) - before != leaves:
                    raise ValueError(f"{len(chunks) - before} column chunks, not {leaves}")
        else:
            if number == _COLUMN_ORDERS and kind == LIST:
                orders = at
            at = skip(footer, at, kind)
    if len(chunks) != row_groups * leaves:
        raise ValueError(f"{len(chunks)} column chunks, not {row_groups * leaves}")
    return np.array(chunks, np.int64).reshape(-1, CHUNK_WIDTH), orders


def _list_group(footer: bytes, at: int, group: int, most: int, chunks: list[list[int]]) -> int:
    number = 0
    while True:
        number, kind, at = read_field(footer, at, number)
        if kind == STOP:
            return at
        if number == _GROUP_COLUMNS and kind == LIST:
            count, kind, at = read_list(footer, at)
            if count > most or (count and kind != STRUCT):
                raise ValueError(f"{count} column chunks, not {most}")
            for _ in range(count):
                at = _list_chunk(footer, at, group, chunks)
        else:
            at = skip(footer, at, kind)


def _list_chunk(footer: bytes, at: int, group: int, chunks: list[list[int]]) -> int:
    chunk = [-1] * CHUNK_WIDTH
    chunk[CHUNK_GROUP], chunk[CHUNK_IS_ELSEWHERE] = group, 0
    chunks.append(chunk)
    number = 0
    while True:
        number, kind, at = read_field(footer, at, number)
        if kind == STOP:
            return at
        if number == _CHUNK_META and kind == STRUCT:
            at = _list_meta(footer, at, chunk)
        else:
            if number in _CHUNK_ELSEWHERE:
                chunk[CHUNK_IS_ELSEWHERE] = 1
            at = skip(footer, at, kind)


def _list_meta(footer: bytes, at: int, chunk: list[int]) -> int:
    number = 0
    while True:
        number, kind, at = read_field(footer, at, number)
        if kind == STOP:
            return at
        if number in _META_NUMBERS:
            if not _BYTE <= kind <= INT64:
                raise ValueError(f"a number of type {kind}")
            value, at = read_number(footer, at)
            chunk[_META_NUMBERS[number]] = max(value, -1)
        else:
            if number == _META_STATISTICS and kind == STRUCT:
                chunk[CHUNK_STATISTICS_AT] = at
            at = skip(footer, at, kind)
