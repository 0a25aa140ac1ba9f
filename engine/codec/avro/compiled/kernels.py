"""Runs a `program` over inflated Avro blocks.

Every function here is plain Python that Numba can compile: `compiled` does so for large inputs, and small ones run
as they are, which saves importing Numba. Both ways read the same bytes into the same arrays. The input is untrusted:
each read is checked against the end of its block, each loop consumes a byte per iteration or is bounded by the schema.

A position below zero is an error code; `MESSAGES` says what it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

TRUNCATED = -1
BAD_NUMBER = -2
NEGATIVE_LENGTH = -3
BAD_BRANCH = -4
BAD_COUNT = -5
BAD_BLOCK_SIZE = -6
TRAILING = -7
NO_ROOM = -8

MESSAGES = {
    TRUNCATED: "the entry is cut off",
    BAD_NUMBER: "a number has more than 64 bits",
    NEGATIVE_LENGTH: "a length is negative",
    BAD_BRANCH: "a union has no such branch",
    BAD_COUNT: "a list or map claims more items than there are bytes",
    BAD_BLOCK_SIZE: "a list or map block is not as long as it says",
    TRAILING: "bytes are left after the last entry",
}

# The numbers of avro_program.Op: Numba takes module constants, not enumerations.
_END = 0
_SKIP_VARINTS = 1
_SKIP_BYTES = 2
_SKIP_FIXED = 3
_INT = 4
_BYTES = 5
_FIXED = 6
_UNION = 7
_JUMP = 8
_LIST_BEGIN = 9
_LIST_END = 10
_BLOCK = 11
_SKIP_BLOCK = 12
_NEXT = 13
_SKIP_EMPTY = 14
_SKIP_PAIRS = 15

_WINDOW = 32
_INT63 = 0x7FFF_FFFF_FFFF_FFFF

# Layout of `control`. It is a single array because Numba counts references to the arrays of a tuple at every use, which
# costs more than the decoding.
LIMIT = 0  # end of the block at hand
FAILED_BLOCK = 1  # block at hand
FAILED_ENTRY = 2  # entry at hand
BASE_AT = 3  # first slot of each column
ROOM_AT = 4  # how many rows each table has room for
STACK_AT = 5  # items left and end of open list blocks
KEYS_AT = 6  # wanted keys hashed by `key & mask` with linear probing, each with its column's offset; -1 is free
KEYS_MASK = 7
KEYS_WANTED = 8
SLOTS_AT = 9  # first column of each slot map
CODE_AT = 10  # the program, four numbers an instruction; a column stands there as its first slot
ROWS_AT = 11  # the rows of each table so far begin here, without a detour

Integers: TypeAlias = Any
"""A numpy array of int64 when compiled, any mutable sequence of int in plain Python.

`memory` holds two numbers a slot, and column k's row r has slot ``base[k] + r``. The first is the value: the number
itself, or where the bytes begin in the buffer, or the list in its element table. The second is 0 for no value, else one
more than the size of the bytes or the list.
"""


def decode_blocks(buffer: Sequence[int], ends: Integers, counts: Integers, control: Integers, memory: Integers) -> int:
    """Decode the blocks in `buffer`, which follow one another; returns 0, or an error code about the entry in
    `control`."""
    position = 0
    for block in range(len(ends)):
        control[LIMIT] = ends[block]
        control[FAILED_BLOCK] = block
        for entry in range(counts[block]):
            control[FAILED_ENTRY] = entry
            position = decode_object(buffer, position, control, memory)
            if position < 0:
                return position
            control[ROWS_AT] += 1
        if position != ends[block]:
            return TRAILING
    return 0


def decode_object(buffer: Sequence[int], position: int, control: Integers, memory: Integers) -> int:
    """Decode one object; returns the position after it, or an error code."""
    end = control[LIMIT]
    pc = control[CODE_AT]
    code_at = pc
    top = control[STACK_AT]
    while position >= 0:
        op = control[pc]
        a = control[pc + 1]
        if op == _INT:
            slot = find_slot(control, pc)
            memory[slot], position = read_long(buffer, position, end)
            memory[slot + 1] = 1
        elif op == _BYTES:
            size, position = read_length(buffer, position, end)
            position = put_bytes(position, end, size, memory, find_slot(control, pc))
        elif op == _FIXED:
            position = put_bytes(position, end, control[pc + 3], memory, find_slot(control, pc))
        elif op == _UNION:
            value, position = read_long(buffer, position, end)
            if value < 0 or value >= a:
                return BAD_BRANCH if position >= 0 else position
            # What follows is a JUMP for each branch.
            pc = code_at + 4 * control[pc + 4 * value + 5] - 4
        elif op == _JUMP:
            pc = code_at + 4 * a - 4
        elif op == _SKIP_VARINTS:
            position = skip_varints(buffer, position, end, a)
        elif op == _SKIP_BYTES:
            position = skip_value(buffer, position, end, 1)
        elif op == _SKIP_FIXED:
            position = skip_fixed(position, end, a)
        elif op == _SKIP_PAIRS:
            position = skip_pairs(buffer, position, end, a)
        elif op == _LIST_BEGIN:
            memory[find_slot(control, pc)] = control[ROWS_AT + control[pc + 3]]
        elif op == _LIST_END:
            slot = find_slot(control, pc)
            memory[slot + 1] = 1 + control[ROWS_AT + control[pc + 3]] - memory[slot]
        elif op in (_BLOCK, _SKIP_BLOCK):
            count, block_end, position = read_block(buffer, position, end, op - _BLOCK)
            if count == 0:
                pc = code_at + 4 * a - 4
            elif op == _BLOCK and not has_room(control, control[pc + 3], count):
                return NO_ROOM
            else:
                control[top] = count
                control[top + 1] = block_end
                top += 2
        elif op == _NEXT:
            table = control[pc + 3]
            if table >= 0:
                control[ROWS_AT + table] += 1
            control[top - 2] -= 1
            if control[top - 2] > 0:
                pc = code_at + 4 * a - 4
            else:
                top -= 2
                position = check_block_end(position, control[top + 1])
                pc = code_at + 4 * control[pc + 2] - 4
        elif op == _SKIP_EMPTY:
            position = skip_empty(buffer, position, end)
        elif op == _END:
            return position
        else:
            position = put_slots(buffer, position, control, pc, memory)
        pc += 4
    return position


def find_slot(control: Integers, pc: int) -> int:
    """The slot of the next value of the instruction's column."""
    return int(2 * (control[pc + 1] + control[ROWS_AT + control[pc + 2]]))


def has_room(control: Integers, table: int, count: int) -> bool:
    """Whether a table has capacity for that many more rows."""
    return bool(control[ROWS_AT + table] + count <= control[control[ROOM_AT] + table])


def read_long(buffer: Sequence[int], position: int, end: int) -> tuple[int, int]:
    """An Avro int or long, and the position after it."""
    if position >= end:
        return 0, TRUNCATED
    byte = int(buffer[position])
    position += 1
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), position
    return read_long_rest(buffer, position, end, byte & 127)


def read_long_rest(buffer: Sequence[int], position: int, end: int, value: int) -> tuple[int, int]:
    """The same from the second byte on."""
    shift = 7
    while shift < 70:
        if position >= end:
            return 0, TRUNCATED
        byte = int(buffer[position])
        position += 1
        if shift == 63 and byte > 1:
            return 0, BAD_NUMBER
        value |= (byte & 127) << shift
        if byte < 128:
            # The mask makes the shift unsigned, whether the integers have 64 bits or any number.
            return ((value >> 1) & _INT63) ^ -(value & 1), position
        shift += 7
    return 0, BAD_NUMBER


def read_length(buffer: Sequence[int], position: int, end: int) -> tuple[int, int]:
    """A length that is not negative, and the position after it."""
    value, position = read_long(buffer, position, end)
    if value < 0:
        return 0, NEGATIVE_LENGTH
    return value, position


def skip_fixed(position: int, end: int, size: int) -> int:
    """Skip bytes; `position` may already be an error code."""
    if position < 0:
        return position
    if size > end - position:
        return TRUNCATED
    return position + size


def skip_value(buffer: Sequence[int], position: int, end: int, is_bytes: int) -> int:
    """Skip a number or a byte string."""
    if is_bytes == 0:
        return skip_varints(buffer, position, end, 1)
    size, position = read_length(buffer, position, end)
    return skip_fixed(position, end, size)


def put_bytes(position: int, end: int, size: int, memory: Integers, slot: int) -> int:
    """Store the range of a byte string and skip it; `position` may already be an error code."""
    memory[slot] = position
    memory[slot + 1] = size + 1
    return skip_fixed(position, end, size)


def skip_varints(buffer: Sequence[int], position: int, end: int, count: int) -> int:
    """Skip numbers."""
    while count > 0:
        if position >= end:
            return TRUNCATED
        if buffer[position] < 128:
            count -= 1
        position += 1
    return position


def read_block(buffer: Sequence[int], position: int, end: int, skip: int) -> tuple[int, int, int]:
    """Read the item count of the next block (0 for the end), where it should end (-1 if unknown), and the position
    after.

    With `skip`, blocks that state their size in bytes are skipped.
    """
    while True:
        count, position = read_long(buffer, position, end)
        if position < 0 or count == 0:
            return 0, -1, position
        if count > 0:
            if count > end - position:
                return 0, -1, BAD_COUNT
            return count, -1, position
        size, position = read_length(buffer, position, end)
        if position < 0:
            return 0, -1, position
        # -(-2**63) is itself in 64 bits, so both signs are refused.
        count = -count
        if size > end - position or count < 0 or count > size:
            return 0, -1, BAD_COUNT
        if skip == 0:
            return count, position + size, position
        position += size


def check_block_end(position: int, expected: int) -> int:
    """The position, or an error code if the block ends elsewhere than it stated."""
    if expected >= 0 and position >= 0 and position != expected:
        return BAD_BLOCK_SIZE
    return position


def skip_empty(buffer: Sequence[int], position: int, end: int) -> int:
    """Skip blocks whose items take no bytes, however many there are."""
    count = 1
    while count != 0 and position >= 0:
        count, position = read_long(buffer, position, end)
        if count < 0 and position >= 0:
            size, position = read_length(buffer, position, end)
            if position >= 0 and size != 0:
                return BAD_BLOCK_SIZE
    return position


def skip_pairs(buffer: Sequence[int], position: int, end: int, is_bytes: int) -> int:
    """Skip a map of numbers to numbers or bytes."""
    while True:
        count, _, position = read_block(buffer, position, end, 1)
        if count == 0:
            return position
        position = skip_rest(buffer, position, end, is_bytes, count)
        if position < 0:
            return position


def skip_rest(buffer: Sequence[int], position: int, end: int, is_bytes: int, count: int) -> int:
    """Skip pairs of a number and a number or a byte string."""
    if is_bytes == 0:
        return skip_varints(buffer, position, end, 2 * count)
    while count > 0 and position >= 0:
        position = skip_varints(buffer, position, end, 1)
        if position >= 0:
            position = skip_value(buffer, position, end, 1)
        count -= 1
    return position


def find_key(key: int, control: Integers, table: int, mask: int) -> int:
    """The column offset of a wanted key, -1 when it is not wanted."""
    place = table + 2 * (key & mask)
    found = control[place]
    while found != key:
        if found < 0:
            return -1
        place = place + 2 if place < table + 2 * mask else table
        found = control[place]
    return int(control[place + 1])


def put_slots(buffer: Sequence[int], position: int, control: Integers, pc: int, memory: Integers) -> int:
    """Store the values of a map's wanted keys; once all are found, skip the rest."""
    end = control[LIMIT]
    is_bytes = control[pc + 1]
    missing = control[KEYS_WANTED]
    columns = control[BASE_AT] + control[control[SLOTS_AT] + control[pc + 2]]
    table = control[KEYS_AT]
    mask = control[KEYS_MASK]
    while True:
        count, block_end, position = read_block(buffer, position, end, int(missing == 0))
        if count == 0:
            return position
        while count > 0 and missing > 0:
            key, position = read_long(buffer, position, end)
            if position < 0:
                return position
            found = find_key(key, control, table, mask) if key >= 0 else -1
            count -= 1
            if found < 0:
                position = skip_value(buffer, position, end, is_bytes)
            else:
                slot = 2 * (control[columns + found] + control[ROWS_AT])
                missing -= int(memory[slot + 1] == 0)
                position = put_value(buffer, position, end, is_bytes, memory, slot)
            if position < 0:
                return position
        if count > 0 and block_end >= 0:
            position = block_end if position <= block_end else BAD_BLOCK_SIZE
        else:
            position = check_block_end(skip_rest(buffer, position, end, is_bytes, count), block_end)
        if position < 0:
            return position


def put_value(buffer: Sequence[int], position: int, end: int, is_bytes: int, memory: Integers, slot: int) -> int:
    """Store a number or a byte string."""
    value, position = read_long(buffer, position, end)
    if is_bytes:
        if value < 0:
            return NEGATIVE_LENGTH
        return put_bytes(position, end, value, memory, slot)
    memory[slot] = value
    memory[slot + 1] = 1
    return position


def gather(buffer: Sequence[int], starts: Integers, offsets: Integers, out: Integers) -> None:
    """Concatenate byte strings: value i begins at ``starts[i]`` and is copied to ``out[offsets[i]:offsets[i + 1]]``."""
    for row in range(len(starts)):
        size = offsets[row + 1] - offsets[row]
        source = buffer[starts[row] : starts[row] + size]
        target = out[offsets[row] : offsets[row + 1]]
        for place in range(size):
            target[place] = source[place]


# Faster forms of three functions above, for compiled code only: indexes without a sign, which Numba need not check for
# counting from the end, and loops without branches. Together they halve the time of decoding.


def read_long_compiled(buffer: Integers, position: int, end: int) -> tuple[int, int]:
    """As `read_long`."""
    if position >= end:
        return 0, TRUNCATED
    byte = int(buffer[np.uint64(position)])
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return read_long_rest(buffer, position + 1, end, byte & 127)


def skip_varints_compiled(buffer: Integers, position: int, end: int, count: int) -> int:
    """As `skip_varints`: a number ends with a byte below 128, and such bytes are counted by the window."""
    while count > _WINDOW and end - position >= _WINDOW:
        unfinished = 0
        for place in range(_WINDOW):
            unfinished += buffer[np.uint64(position + place)] >> 7
        count -= _WINDOW - unfinished
        position += _WINDOW
    while count > 0:
        if position >= end:
            return TRUNCATED
        count -= 1 - (buffer[np.uint64(position)] >> 7)
        position += 1
    return position


def skip_rest_compiled(buffer: Integers, position: int, end: int, is_bytes: int, count: int) -> int:
    """As `skip_rest`, faster for keys of one or two bytes with values below 64 bytes, as most are."""
    if is_bytes == 0:
        return skip_varints_compiled(buffer, position, end, 2 * count)
    while count > 0 and position >= 0:
        if end - position >= 3:
            first = int(buffer[np.uint64(position)])
            second = int(buffer[np.uint64(position + 1)])
            third = int(buffer[np.uint64(position + 2)])
            # An even byte below 128 is all of a length that is not negative.
            if first < 128 and second & 129 == 0 and second >> 1 <= end - position - 2:
                position += 2 + (second >> 1)
                count -= 1
                continue
            if second < 128 <= first and third & 129 == 0 and third >> 1 <= end - position - 3:
                position += 3 + (third >> 1)
                count -= 1
                continue
        position = skip_varints(buffer, position, end, 1)
        if position >= 0:
            position = skip_value(buffer, position, end, 1)
        count -= 1
    return position
