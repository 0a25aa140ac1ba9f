"""Writes rows of columns as Avro objects; the counterpart of `kernels`, plain Python that Numba can compile too.

`sources` has two items for each array that a program reads: the array, and the width of its numbers in bytes. In plain
Python an array is a sequence; compiled code takes its address, and that of the output (see `write_compiled`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

# Instructions, and the sources that each reads, from its fourth number on.
WRITE_LITERAL = 0  # bytes as they are; in place of a second source, how many
WRITE_NUMBER = 1  # numbers
WRITE_BYTES = 2  # offsets, data
WRITE_FIXED = 3  # offsets, data
WRITE_LIST = 4  # offsets, elements
WRITE_NUMBER_MAP = 5  # offsets, first keys, keys, values
WRITE_BYTES_MAP = 6  # offsets, first keys, keys, offsets of values, data

CODE_WIDTH = 8
"""Length of an instruction: operation, 1 if optional, the source of the validity mask or -1, and the five sources
listed above."""
_REST = 0x01FF_FFFF_FFFF_FFFF

Integers: TypeAlias = Any
"""A numpy array of integers when compiled, any sequence of int in plain Python."""
Memory: TypeAlias = Any
"""An address when compiled, a sequence in plain Python."""


def write_rows(code: Integers, sources: Integers, out: Memory, ends: Integers) -> int:
    """Write all rows to `out` and the end of each row to `ends`; returns the number of bytes written."""
    position = 0
    for row in range(len(ends)):
        for pc in range(0, len(code), CODE_WIDTH):
            what = code[pc]
            if what == WRITE_LITERAL:
                position = put_bytes(out, position, sources[2 * code[pc + 3]], 0, code[pc + 4])
            elif what in (WRITE_NUMBER_MAP, WRITE_BYTES_MAP):
                position = write_map(out, position, code, pc, sources, row)
            else:
                if code[pc + 1] == 1:
                    marks = code[pc + 2]
                    missing = marks >= 0 and not byte_of(sources[2 * marks], row)
                    position = put_byte(out, position, 0 if missing else 2)
                    if missing:
                        continue
                position = write_value(out, position, code, pc, sources, row)
        ends[row] = position
    return position


def write_value(out: Memory, position: int, code: Integers, pc: int, sources: Integers, row: int) -> int:
    """Write a number, bytes or a list of numbers; returns the position after it."""
    what = code[pc]
    source = 2 * code[pc + 3]
    if what == WRITE_NUMBER:
        return write_long(out, position, number(sources[source], sources[source + 1], row))
    begin = number(sources[source], sources[source + 1], row)
    end = number(sources[source], sources[source + 1], row + 1)
    source = 2 * code[pc + 4]
    if what == WRITE_LIST:
        if end > begin:
            position = write_long(out, position, end - begin)
            for place in range(begin, end):
                position = write_long(out, position, number(sources[source], sources[source + 1], place))
        return put_byte(out, position, 0)
    if what == WRITE_BYTES:
        position = write_long(out, position, end - begin)
    return put_bytes(out, position, sources[source], begin, end)


def write_map(out: Memory, position: int, code: Integers, pc: int, sources: Integers, row: int) -> int:
    """Write a map as one block that states its size in bytes, so that readers can skip it at once.

    An empty map is null. Returns the position after it.
    """
    source = 2 * code[pc + 3]
    begin = number(sources[source], sources[source + 1], row)
    count = number(sources[source], sources[source + 1], row + 1) - begin
    if count == 0:
        return put_byte(out, position, 0)
    source = 2 * code[pc + 4]
    first_key = number(sources[source], sources[source + 1], row)
    position = put_byte(out, position, 2)
    position = write_long(out, position, -count)
    # The size precedes the map, so its room is guessed.
    room = long_size(4 * count)
    start = position + room
    source = 2 * code[pc + 5]
    keys, key_width = sources[source], sources[source + 1]
    source = 2 * code[pc + 6]
    values, value_width = sources[source], sources[source + 1]
    if code[pc] == WRITE_NUMBER_MAP:
        end = put_numbers(out, start, keys, key_width, first_key, values, value_width, begin, count)
    else:
        data = sources[2 * code[pc + 7]]
        end = put_strings(out, start, keys, key_width, first_key, values, value_width, data, begin, count)
    size = end - start
    needed = long_size(size)
    move(out, start, size, needed - room)
    write_long(out, position, size)
    return put_byte(out, position + needed + size, 0)


def put_numbers(
    out: Memory,
    position: int,
    keys: Memory,
    key_width: int,
    key: int,
    values: Memory,
    value_width: int,
    value: int,
    count: int,
) -> int:
    """Write `count` keys and numbers, starting at the given ones."""
    for k in range(count):
        position = write_long(out, position, number(keys, key_width, key + k))
        position = write_long(out, position, number(values, value_width, value + k))
    return position


def put_strings(
    out: Memory,
    position: int,
    keys: Memory,
    key_width: int,
    key: int,
    offsets: Memory,
    offset_width: int,
    data: Memory,
    value: int,
    count: int,
) -> int:
    """Write `count` keys and byte strings, starting at the given ones."""
    begin = number(offsets, offset_width, value)
    for k in range(count):
        position = write_long(out, position, number(keys, key_width, key + k))
        end = number(offsets, offset_width, value + k + 1)
        position = write_long(out, position, end - begin)
        position = put_bytes(out, position, data, begin, end)
        begin = end
    return position


def long_size(value: int) -> int:
    """How many bytes an Avro int or long takes."""
    rest = (value << 1) ^ (value >> 63)
    size = 1
    while rest > 127 or rest < 0:
        rest = (rest >> 7) & _REST
        size += 1
    return size


def write_long(out: Memory, position: int, value: int) -> int:
    """Write an Avro int or long; returns the position after it."""
    rest = (value << 1) ^ (value >> 63)
    while rest > 127 or rest < 0:
        put_byte(out, position, (rest & 127) | 128)
        position += 1
        # The mask makes the shift unsigned where integers have 64 bits.
        rest = (rest >> 7) & _REST
    return put_byte(out, position, rest)


def move(out: Memory, start: int, size: int, distance: int) -> int:
    """Moves bytes of the output."""
    if distance > 0:
        for place in range(start + size - 1, start - 1, -1):
            put_byte(out, place + distance, byte_of(out, place))
    elif distance < 0:
        for place in range(start, start + size):
            put_byte(out, place + distance, byte_of(out, place))
    return 0


def number(source: Memory, width: int, index: int) -> int:
    """The number at an index of an array of the given width."""
    del width
    found: int = source[index]
    return found


def byte_of(source: Memory, index: int) -> int:
    """A byte."""
    found: int = source[index]
    return found


def put_byte(out: Memory, position: int, value: int) -> int:
    """Write a byte; returns the position after it."""
    out[position] = value
    return position + 1


def put_bytes(out: Memory, position: int, source: Memory, begin: int, end: int) -> int:
    """Write bytes `begin` to `end` of a source; returns the position after them."""
    size = end - begin
    out[position : position + size] = source[begin:end]
    return position + size
