"""Writes rows of columns as Avro objects; the counterpart of `avro_kernels`, plain Python that Numba can compile too.

`memory` is one array of integers. A row's value in a column is two of them: the number, or where its bytes begin in
`blob`, or where its elements begin in `memory`; and 0 for null, else one more than the size. Number elements are the
numbers, byte-string elements are offsets into `blob`, one more than there are elements.
"""

from __future__ import annotations

from typing import Any, TypeAlias

WRITE_NUMBER = 0  # a: column
WRITE_BYTES = 1  # a: column
WRITE_FIXED = 2  # a: column
WRITE_LIST = 3  # a: column
WRITE_NUMBER_MAP = 4  # a: column of values, c: column of keys
WRITE_BYTES_MAP = 5  # a: column of values, c: column of keys
WRITE_ZERO = 6  # a number that is 0

_CODE_WIDTH = 4
_REST = 0x01FF_FFFF_FFFF_FFFF

Integers: TypeAlias = Any
"""A numpy array of integers when compiled, any sequence of int in plain Python."""


def write_rows(
    code: Integers, columns: Integers, memory: Integers, blob: Integers, out: Integers, ends: Integers
) -> int:
    """Writes all rows to `out` and where each one ends to `ends`; the bytes written.

    `code` has four numbers an instruction: what, column, 1 when optional, and an argument. `columns` says where in
    `memory` each column begins.
    """
    position = 0
    for row in range(len(ends)):
        for pc in range(0, len(code), _CODE_WIDTH):
            slot = columns[code[pc + 1]] + 2 * row
            if code[pc + 2] == 1:
                out[position] = 0 if memory[slot + 1] == 0 else 2
                position += 1
                if memory[slot + 1] == 0:
                    continue
            what = code[pc]
            if what == WRITE_NUMBER:
                position = write_long(out, position, memory[slot])
            elif what == WRITE_ZERO:
                position = write_long(out, position, 0)
            elif what in (WRITE_BYTES, WRITE_FIXED):
                begin, size = memory[slot], memory[slot + 1] - 1
                if what == WRITE_BYTES:
                    position = write_long(out, position, size)
                position = write_blob(out, position, blob, begin, begin + size)
            elif what == WRITE_LIST:
                position = write_list(out, position, memory, slot)
            else:
                keys = memory[columns[code[pc + 3]] + 2 * row]
                position = write_map(out, position, memory, blob, slot, keys, what)
        ends[row] = position
    return position


def write_long(out: Integers, position: int, value: int) -> int:
    """An Avro int or long."""
    rest = (value << 1) ^ (value >> 63)
    while rest > 127 or rest < 0:
        out[position] = (rest & 127) | 128
        position += 1
        # The mask makes the shift unsigned where integers have 64 bits.
        rest = (rest >> 7) & _REST
    out[position] = rest
    return position + 1


def long_size(value: int) -> int:
    """How many bytes an Avro int or long takes."""
    rest = (value << 1) ^ (value >> 63)
    size = 1
    while rest > 127 or rest < 0:
        rest = (rest >> 7) & _REST
        size += 1
    return size


def write_blob(out: Integers, position: int, blob: Integers, begin: int, end: int) -> int:
    """Bytes of `blob`."""
    for place in range(begin, end):
        out[position + place - begin] = blob[place]
    return position + end - begin


def write_list(out: Integers, position: int, memory: Integers, slot: int) -> int:
    """A list of numbers."""
    begin, count = memory[slot], memory[slot + 1] - 1
    if count > 0:
        position = write_long(out, position, count)
        for place in range(begin, begin + count):
            position = write_long(out, position, memory[place])
    return write_long(out, position, 0)


def write_map(out: Integers, position: int, memory: Integers, blob: Integers, slot: int, keys: int, what: int) -> int:
    """A map as one block that says its size in bytes, so that readers who do not want it step over it at once."""
    begin, count = memory[slot], memory[slot + 1] - 1
    if count > 0:
        size = 0
        for k in range(count):
            size += long_size(memory[keys + k])
            if what == WRITE_NUMBER_MAP:
                size += long_size(memory[begin + k])
            else:
                length = memory[begin + k + 1] - memory[begin + k]
                size += long_size(length) + length
        position = write_long(out, position, -count)
        position = write_long(out, position, size)
        for k in range(count):
            position = write_long(out, position, memory[keys + k])
            if what == WRITE_NUMBER_MAP:
                position = write_long(out, position, memory[begin + k])
            else:
                start, stop = memory[begin + k], memory[begin + k + 1]
                position = write_long(out, position, stop - start)
                position = write_blob(out, position, blob, start, stop)
    return write_long(out, position, 0)
