"""Lists the column chunks of a Parquet footer (parquet.thrift: FileMetaData) in compiled code.

Importing this module imports Numba. pyarrow's objects of column chunks end the process for some damaged footers. The
input is untrusted: each read is checked against the end, and each loop consumes a byte per iteration or is bounded by
the size of the output.
"""

from __future__ import annotations

from icebench.engine.formats.parquet.layout import (
    BAD_TYPE,
    CHUNK_DATA_AT,
    CHUNK_DICTIONARY_AT,
    CHUNK_GROUP,
    CHUNK_IS_ELSEWHERE,
    CHUNK_STATISTICS_AT,
    CHUNK_TYPE,
    CHUNK_VALUES,
    CHUNK_WIDTH,
    LIST_FOOTER,
    LIST_LENGTH,
    LIST_ORDERS,
    LIST_ROOM,
    LIST_SIZE,
    LIST_STACK,
    LIST_TABLE,
    NO_ROOM,
    STACK_DEPTH,
    TRUNCATED,
    UNKNOWN,
)
from icebench.engine.formats.parquet.thrift_kernels import read_field, read_varint, skip_field
from icebench.engine.kernels.intrinsics import int64s_at, load8

# Types of Thrift's compact protocol.
_STOP = 0
_BYTE = 3
_INT64 = 6
_BINARY = 8
_LIST = 9
_SET = 10
_STRUCT = 12

# Fields.
_ROW_GROUPS = 4
_COLUMNS = 1
_FILE_PATH = 1
_META_DATA = 3
_CRYPTO = 8
_ENCRYPTED = 9
_STATISTICS = 12
_COLUMN_ORDERS = 7


def read_list(position: int, end: int) -> tuple[int, int, int]:
    """Read the head of a list: number of elements, their type, and the position of the first or an error code."""
    if position >= end:
        return 0, 0, TRUNCATED
    head = load8(position)
    position += 1
    count = head >> 4
    if count == 15:
        count, position = read_varint(position, end)
        if position >= 0 and count < 0:
            return 0, 0, TRUNCATED
    return count, head & 15, position


def skip_any(position: int, end: int, kind: int, stack: int) -> int:
    """Skip a value of this type, with any lists in it; returns the position after it, or an error code.

    `stack` is the address of 2 * STACK_DEPTH numbers: for each level the remaining elements of a list and their type,
    or -1 for a struct.
    """
    open_ = int64s_at(stack, 2 * STACK_DEPTH)
    top = 0
    while True:
        if kind in (_LIST, _SET, _STRUCT):
            if top == 2 * STACK_DEPTH:
                return UNKNOWN
            open_[top], open_[top + 1] = -1, 0
            if kind != _STRUCT:
                open_[top], open_[top + 1], position = read_list(position, end)
            top += 2
        else:
            position = skip_field(position, end, kind)
        if position < 0:
            return position
        kind = _STOP
        while top > 0 and kind == _STOP:
            if open_[top - 2] < 0:
                _, kind, position = read_field(position, end, 0)
                if position < 0:
                    return position
            elif open_[top - 2] > 0:
                open_[top - 2] -= 1
                kind = open_[top - 1]
                if 1 <= kind <= _BYTE:
                    # A truth value is a byte in a list.
                    kind = _BYTE
                if position >= end or kind == _STOP:
                    return TRUNCATED
            if kind == _STOP:
                top -= 2
        if top == 0:
            return position


def read_meta(position: int, end: int, chunk: int, footer: int, stack: int) -> int:
    """Read the wanted fields of a ColumnMetaData; returns the position after it, or an error code."""
    table = int64s_at(chunk, CHUNK_WIDTH)
    number = 0
    while True:
        number, kind, position = read_field(position, end, number)
        if position < 0 or kind == _STOP:
            return position
        slot = -1
        if number == 1:
            slot = CHUNK_TYPE
        elif number == 5:
            slot = CHUNK_VALUES
        elif number == 9:
            slot = CHUNK_DATA_AT
        elif number == 11:
            slot = CHUNK_DICTIONARY_AT
        if slot >= 0:
            if kind < _BYTE or kind > _INT64:
                return BAD_TYPE
            value, position = read_varint(position, end)
            table[slot] = (value >> 1) & 0x7FFF_FFFF_FFFF_FFFF
            if value & 1:
                table[slot] = -1
        else:
            if number == _STATISTICS and kind == _STRUCT:
                table[CHUNK_STATISTICS_AT] = position - footer
            position = skip_any(position, end, kind, stack)
        if position < 0:
            return position


def read_chunk(position: int, end: int, chunk: int, footer: int, stack: int) -> int:
    """Read a ColumnChunk; returns the position after it, or an error code."""
    table = int64s_at(chunk, CHUNK_WIDTH)
    for slot in range(CHUNK_WIDTH):
        table[slot] = -1
    table[CHUNK_IS_ELSEWHERE] = 0
    number = 0
    while True:
        number, kind, position = read_field(position, end, number)
        if position < 0 or kind == _STOP:
            return position
        if number == _META_DATA and kind == _STRUCT:
            position = read_meta(position, end, chunk, footer, stack)
        else:
            if number in (_FILE_PATH, _CRYPTO, _ENCRYPTED):
                table[CHUNK_IS_ELSEWHERE] = 1
            position = skip_any(position, end, kind, stack)
        if position < 0:
            return position


def read_group(position: int, end: int, group: int, count: int, numbers: int) -> tuple[int, int]:
    """Read a RowGroup after `count` chunks; returns the new count, and the position after it or an error code."""
    list_ = int64s_at(numbers, LIST_LENGTH)
    number = 0
    while True:
        number, kind, position = read_field(position, end, number)
        if position < 0 or kind == _STOP:
            return count, position
        if number == _COLUMNS and kind == _LIST:
            left, kind, position = read_list(position, end)
            if position >= 0 and left > 0 and kind != _STRUCT:
                return count, BAD_TYPE
            while position >= 0 and left > 0:
                if count >= list_[LIST_ROOM]:
                    return count, NO_ROOM
                chunk = list_[LIST_TABLE] + 8 * CHUNK_WIDTH * count
                position = read_chunk(position, end, chunk, list_[LIST_FOOTER], list_[LIST_STACK])
                int64s_at(chunk, CHUNK_WIDTH)[CHUNK_GROUP] = group
                count += 1
                left -= 1
        else:
            position = skip_any(position, end, kind, list_[LIST_STACK])
        if position < 0:
            return count, position


def list_chunks_at(address: int) -> int:
    """Describe the column chunks of a footer, in order; `address` is that of LIST_LENGTH numbers.

    Returns:
        The number of chunks; NO_ROOM, or an error code.
    """
    list_ = int64s_at(address, LIST_LENGTH)
    position = list_[LIST_FOOTER]
    end = position + list_[LIST_SIZE]
    orders = int64s_at(list_[LIST_ORDERS], 1)
    orders[0] = -1
    number = 0
    count = 0
    while True:
        number, kind, position = read_field(position, end, number)
        if position < 0:
            return position
        if kind == _STOP:
            return count
        if number == _ROW_GROUPS and kind == _LIST:
            groups, kind, position = read_list(position, end)
            if position >= 0 and groups > 0 and kind != _STRUCT:
                return BAD_TYPE
            group = 0
            while position >= 0 and group < groups:
                count, position = read_group(position, end, group, count, address)
                group += 1
        else:
            if number == _COLUMN_ORDERS and kind == _LIST:
                orders[0] = position - list_[LIST_FOOTER]
            position = skip_any(position, end, kind, list_[LIST_STACK])
        if position < 0:
            return position
