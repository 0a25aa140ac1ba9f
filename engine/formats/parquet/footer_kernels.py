"""Reduces a Parquet footer to the wanted columns (parquet.thrift: FileMetaData), in compiled code.

Column chunks, schema elements and fields of row groups are copied unchanged; the lengths of lists and the number of
columns of the schema's root are rewritten. Importing this module imports Numba. The input is untrusted: each read is
checked against the end, and each loop consumes a byte per iteration. The output is never longer than the input.
"""

from __future__ import annotations

from icebench.engine.formats.parquet.chunk_kernels import read_list, skip_any
from icebench.engine.formats.parquet.layout import (
    SLIM_FOOTER,
    SLIM_IS_KEPT,
    SLIM_LEAVES,
    SLIM_LENGTH,
    SLIM_OUT,
    SLIM_SIZE,
    SLIM_STACK,
    SLIM_WANTED,
    SLIM_WANTED_COUNT,
    UNKNOWN,
)
from icebench.engine.formats.parquet.thrift_kernels import read_field, read_varint
from icebench.engine.kernels.intrinsics import bytes_at, copy_bytes, int64s_at, store8

# Types of Thrift's compact protocol.
_STOP = 0
_INT16 = 4
_INT64 = 6
_LIST = 9
_STRUCT = 12

# Fields of FileMetaData, RowGroup and SchemaElement.
_SCHEMA = 2
_ROW_GROUPS = 4
_KEY_VALUES = 5
_COLUMN_ORDERS = 7
_ENCRYPTION = 8
_GROUP_COLUMNS = 1
_GROUP_SORTING = 4
_CHILDREN = 5
_FIELD_ID = 9

_NO_ID = -1


def slim_footer_at(address: int) -> int:
    """Reduce a footer to the wanted top-level columns; `address` is that of SLIM_LENGTH numbers.

    Returns:
        The number of bytes written; negative if the footer is damaged, encrypted, in an order that no writer uses, or
        has no wanted column.
    """
    numbers = int64s_at(address, SLIM_LENGTH)
    int64s_at(numbers[SLIM_LEAVES], 2)[0] = 0
    position = numbers[SLIM_FOOTER]
    end = position + numbers[SLIM_SIZE]
    made = numbers[SLIM_OUT]
    number, copied = 0, position
    while True:
        number, kind, position = read_field(position, end, number)
        if position < 0:
            return position
        if kind == _STOP:
            return copy_span(copied, position, made) - numbers[SLIM_OUT]
        if number in (_SCHEMA, _ROW_GROUPS, _KEY_VALUES, _COLUMN_ORDERS):
            if kind != _LIST:
                return UNKNOWN
            made = copy_span(copied, position, made)
            if number == _SCHEMA:
                position, made = slim_schema(position, end, address, made)
            elif number == _ROW_GROUPS:
                position, made = slim_row_groups(position, end, address, made)
            elif number == _COLUMN_ORDERS:
                position, made = slim_leaves(position, end, address, made)
            else:
                position, made = drop_list(position, end, numbers[SLIM_STACK], made)
            copied = position
        elif number == _ENCRYPTION:
            return UNKNOWN
        else:
            position = skip_any(position, end, kind, numbers[SLIM_STACK])
        if position < 0:
            return position


def slim_schema(position: int, end: int, address: int, made: int) -> tuple[int, int]:
    """Copy the list of schema elements; returns the position after it (or an error code) and after the output."""
    numbers = int64s_at(address, SLIM_LENGTH)
    stack, size = numbers[SLIM_STACK], numbers[SLIM_SIZE]
    count, kind, position = read_list(position, end)
    if position < 0:
        return position, made
    if kind != _STRUCT or count < 1 or count > size:
        return UNKNOWN, made
    # Marks of leaves, and after them those of elements.
    is_kept = bytes_at(numbers[SLIM_IS_KEPT], 2 * size)
    root = position
    columns, _, position = read_element(position, end, stack)
    if position < 0:
        return position, made
    first = position
    left, leaves, kept_columns, kept_elements, kept_leaves, keeps = 0, 0, 0, 1, 0, 0
    for element in range(1, count):
        children, field_id, position = read_element(position, end, stack)
        if position < 0:
            return position, made
        if left == 0:
            columns -= 1
            left = 1
            keeps = is_wanted(field_id, numbers[SLIM_WANTED], numbers[SLIM_WANTED_COUNT])
            kept_columns += keeps
        left += children - 1
        if children == 0:
            is_kept[leaves] = keeps
            leaves += 1
            kept_leaves += keeps
        is_kept[size + element] = keeps
        kept_elements += keeps
    if columns != 0 or left != 0 or kept_columns == 0:
        return UNKNOWN, made
    counts = int64s_at(numbers[SLIM_LEAVES], 2)
    counts[0], counts[1] = leaves, kept_leaves
    made = copy_root(root, end, stack, kept_columns, put_list(made, kept_elements))
    position = first
    for element in range(1, count):
        start = position
        position = skip_any(position, end, _STRUCT, stack)
        if position < 0:
            return position, made
        if is_kept[size + element]:
            made = copy_span(start, position, made)
    return position, made


def read_element(position: int, end: int, stack: int) -> tuple[int, int, int]:
    """Read a schema element: number of children, field id, and the position after it or an error code.

    Whatever `copy_root` would not read in the same way is refused: a number of children that is none, or comes again.
    """
    number, children, field_id = 0, -1, _NO_ID
    while True:
        number, kind, position = read_field(position, end, number)
        if position < 0 or kind == _STOP:
            return max(children, 0), field_id, position
        is_number = _INT16 <= kind <= _INT64
        if number == _CHILDREN and (not is_number or children >= 0):
            return 0, 0, UNKNOWN
        if number in (_CHILDREN, _FIELD_ID) and is_number:
            value, position = read_varint(position, end)
            if position < 0:
                return 0, field_id, position
            value = (value >> 1) ^ -(value & 1)
            if number == _FIELD_ID:
                field_id = value
            elif value < 0 or value > end - position:
                # Each takes a byte or more.
                return 0, 0, UNKNOWN
            else:
                children = value
        else:
            position = skip_any(position, end, kind, stack)
            if position < 0:
                return 0, field_id, position


def copy_root(position: int, end: int, stack: int, columns: int, made: int) -> int:
    """Copy the schema's root with another number of children; returns the position after the output."""
    number, copied = 0, position
    while True:
        number, kind, position = read_field(position, end, number)
        if kind == _STOP or position < 0:
            return copy_span(copied, position, made)
        if number == _CHILDREN:
            made = put_number(copy_span(copied, position, made), 2 * columns)
            _, position = read_varint(position, end)
            if position < 0:
                return made
            copied = position
        else:
            position = skip_any(position, end, kind, stack)


def slim_row_groups(position: int, end: int, address: int, made: int) -> tuple[int, int]:
    """Copy the list of row groups; returns the position after it (or an error code) and after the output."""
    stack = int64s_at(address, SLIM_LENGTH)[SLIM_STACK]
    count, kind, position = read_list(position, end)
    if position < 0:
        return position, made
    if kind != _STRUCT and count > 0:
        return UNKNOWN, made
    made = put_list(made, count)
    while count > 0:
        count -= 1
        number, copied = 0, position
        while True:
            number, kind, position = read_field(position, end, number)
            if position < 0:
                return position, made
            if kind == _STOP:
                break
            if number in (_GROUP_COLUMNS, _GROUP_SORTING):
                if kind != _LIST:
                    return UNKNOWN, made
                made = copy_span(copied, position, made)
                if number == _GROUP_COLUMNS:
                    position, made = slim_leaves(position, end, address, made)
                else:
                    # It counts leaves.
                    position, made = drop_list(position, end, stack, made)
                copied = position
            else:
                position = skip_any(position, end, kind, stack)
            if position < 0:
                return position, made
        made = copy_span(copied, position, made)
    return position, made


def slim_leaves(position: int, end: int, address: int, made: int) -> tuple[int, int]:
    """Copy a list with a struct per leaf; returns the position after it (or an error code) and after the output."""
    numbers = int64s_at(address, SLIM_LENGTH)
    counts = int64s_at(numbers[SLIM_LEAVES], 2)
    count, kind, position = read_list(position, end)
    if position < 0:
        return position, made
    if kind != _STRUCT or count != counts[0]:
        return UNKNOWN, made
    is_kept = bytes_at(numbers[SLIM_IS_KEPT], count)
    made = put_list(made, counts[1])
    for leaf in range(count):
        start = position
        position = skip_any(position, end, _STRUCT, numbers[SLIM_STACK])
        if position < 0:
            return position, made
        if is_kept[leaf]:
            made = copy_span(start, position, made)
    return position, made


def drop_list(position: int, end: int, stack: int, made: int) -> tuple[int, int]:
    """Write an empty list in place of another; returns the position after that (or an error code) and after the
    output."""
    return skip_any(position, end, _LIST, stack), put_list(made, 0)


def is_wanted(field_id: int, wanted: int, count: int) -> int:
    """Whether (1 or 0) a number is among the ascending numbers at an address."""
    numbers = int64s_at(wanted, count)
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < field_id:
            low = middle + 1
        else:
            high = middle
    return 1 if low < count and numbers[low] == field_id else 0


def put_list(made: int, count: int) -> int:
    """Write the head of a list of structs; returns the position after it."""
    if count < 15:
        store8(made, count << 4 | _STRUCT)
        return made + 1
    store8(made, 15 << 4 | _STRUCT)
    return put_number(made + 1, count)


def put_number(made: int, value: int) -> int:
    """Write an unsigned number; returns the position after it."""
    while value > 127:
        store8(made, (value & 127) | 128)
        made += 1
        value >>= 7
    store8(made, value)
    return made + 1


def copy_span(start: int, after: int, made: int) -> int:
    """Copy the bytes between two positions; returns the position after the output."""
    copy_bytes(made, start, after - start)
    return made + after - start
