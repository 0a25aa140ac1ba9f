"""Page headers of a column chunk (Parquet: "Data Pages"; Thrift's compact protocol), read by compiled code.

Importing this module imports Numba. Nothing here trusts the input: each read is checked against the end of the chunk,
and each turn of a loop consumes a byte.
"""

from __future__ import annotations

from engine.codec.parquet_intrinsics import int64s_at, load8
from engine.codec.parquet_layout import (
    BAD_NUMBER,
    BAD_TYPE,
    DATA_PAGE,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    NEGATIVE,
    NO_ROOM,
    PAGE_CRC,
    PAGE_ENCODING,
    PAGE_INFLATED,
    PAGE_IS_COMPRESSED,
    PAGE_LEVEL_ENCODING,
    PAGE_LEVELS_SIZE,
    PAGE_REPETITIONS_SIZE,
    PAGE_SIZE,
    PAGE_START,
    PAGE_TYPE,
    PAGE_VALUES,
    PAGE_WIDTH,
    RLE,
    SCAN_CHUNK,
    SCAN_LENGTH,
    SCAN_ROOM,
    SCAN_SIZE,
    SCAN_TABLE,
    SCAN_VALUES,
    TOO_MANY,
    TRUNCATED,
    UNKNOWN,
)

# Types of Thrift's compact protocol; those from _LIST on but structs are no part of a page header.
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
_MOST_SIZE = 0x7FFF_FFFF

# Fields of the structs within a page header.
_DATA_HEADER = 5
_DICTIONARY_HEADER = 7
_DATA_HEADER_V2 = 8


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


def read_data_header(position: int, end: int, struct: int, page: int) -> int:
    """The fields of a data or dictionary page's own header; the position after it, or an error code."""
    number = 0
    table = int64s_at(page, PAGE_WIDTH)
    is_second = struct == _DATA_HEADER_V2
    while True:
        number, kind, position = read_field(position, end, number)
        if position < 0 or kind == _STOP:
            return position
        slot = -1
        if number == 1:
            slot = PAGE_VALUES
        elif number == (4 if is_second else 2):
            slot = PAGE_ENCODING
        elif struct == _DATA_HEADER and number == 3:
            slot = PAGE_LEVEL_ENCODING
        elif is_second and number == 5:
            slot = PAGE_LEVELS_SIZE
        elif is_second and number == 6:
            slot = PAGE_REPETITIONS_SIZE
        if slot >= 0:
            if kind < _BYTE or kind > _INT64:
                return BAD_TYPE
            table[slot], position = read_zigzag(position, end)
            if position >= 0 and table[slot] < 0:
                return NEGATIVE
        elif is_second and number == 7:
            if kind not in (_TRUE, _FALSE):
                return BAD_TYPE
            table[PAGE_IS_COMPRESSED] = kind == _TRUE
        else:
            position = skip_field(position, end, kind)
        if position < 0:
            return position


def read_header(position: int, end: int, page: int) -> int:
    """One page header; the position after it, or an error code."""
    table = int64s_at(page, PAGE_WIDTH)
    for slot in range(PAGE_WIDTH):
        table[slot] = -1
    table[PAGE_LEVEL_ENCODING] = RLE
    table[PAGE_LEVELS_SIZE] = 0
    table[PAGE_REPETITIONS_SIZE] = 0
    table[PAGE_IS_COMPRESSED] = 1
    number = 0
    seen = 0
    while True:
        number, kind, position = read_field(position, end, number)
        if position < 0:
            return position
        if kind == _STOP:
            break
        if 1 <= number <= 4:
            if kind < _BYTE or kind > _INT64:
                return BAD_TYPE
            value, position = read_zigzag(position, end)
            if number == 1:
                table[PAGE_TYPE] = value
            elif number == 2:
                table[PAGE_INFLATED] = value
            elif number == 3:
                table[PAGE_SIZE] = value
            else:
                table[PAGE_CRC] = value & 0xFFFF_FFFF
        elif number in (_DATA_HEADER, _DICTIONARY_HEADER, _DATA_HEADER_V2):
            if kind != _STRUCT:
                return BAD_TYPE
            seen = number
            position = read_data_header(position, end, number, page)
        else:
            position = skip_field(position, end, kind)
        if position < 0:
            return position
    return check_header(position, end, page, seen)


def check_header(position: int, end: int, page: int, seen: int) -> int:
    """The position after the header, if what it says can be; else an error code."""
    table = int64s_at(page, PAGE_WIDTH)
    if table[PAGE_SIZE] < 0 or table[PAGE_INFLATED] < 0:
        return NEGATIVE
    if table[PAGE_SIZE] > _MOST_SIZE or table[PAGE_INFLATED] > _MOST_SIZE:
        return BAD_NUMBER
    if table[PAGE_SIZE] > end - position:
        return TRUNCATED
    type_ = table[PAGE_TYPE]
    if type_ < 0:
        return BAD_TYPE
    expected = 0
    if type_ == DATA_PAGE:
        expected = _DATA_HEADER
    elif type_ == DICTIONARY_PAGE:
        expected = _DICTIONARY_HEADER
    elif type_ == DATA_PAGE_V2:
        expected = _DATA_HEADER_V2
    else:
        return position
    if seen != expected or table[PAGE_VALUES] < 0 or table[PAGE_ENCODING] < 0:
        return BAD_TYPE
    levels = table[PAGE_LEVELS_SIZE] + table[PAGE_REPETITIONS_SIZE]
    if levels > table[PAGE_SIZE] or levels > table[PAGE_INFLATED]:
        return TRUNCATED
    return position


def scan_pages_at(address: int) -> int:
    """Describe the pages of the column chunk that SCAN_LENGTH numbers at an address tell of.

    Returns:
        How many pages there are up to the last value of the chunk; NO_ROOM, or an error code.
    """
    scan = int64s_at(address, SCAN_LENGTH)
    start = scan[SCAN_CHUNK]
    position, end = start, start + scan[SCAN_SIZE]
    left = scan[SCAN_VALUES]
    count = 0
    while left > 0:
        if count >= scan[SCAN_ROOM]:
            return NO_ROOM
        page = scan[SCAN_TABLE] + 8 * PAGE_WIDTH * count
        position = read_header(position, end, page)
        if position < 0:
            return position
        table = int64s_at(page, PAGE_WIDTH)
        table[PAGE_START] = position - start
        position += table[PAGE_SIZE]
        if table[PAGE_TYPE] in (DATA_PAGE, DATA_PAGE_V2):
            left -= table[PAGE_VALUES]
        if left < 0:
            return TOO_MANY
        count += 1
    return count
