"""Decodes a chunk of Avro blocks one at a time: inflate, run the program, append the result to the output columns.

The inflated bytes and the slots of one block fit into the processor's cache, and output columns need no further copy.
For compiled code; `compiled` has the call of libdeflate.
"""

from __future__ import annotations

from collections.abc import Sequence

from icebench.engine.codec.avro.compiled.kernels import (
    FAILED_BLOCK,
    FAILED_ENTRY,
    LIMIT,
    ROOM_AT,
    ROWS_AT,
    TRAILING,
    Integers,
    decode_object,
)

NOT_INFLATED = -9
TOO_MANY = -10
NO_ROWS = -11  # no room for rows in `outputs`
NO_STRINGS = -12
TOO_LARGE = -13

# What stands in a row of `columns`.
KIND = 0
TABLE = 1
BASE = 2  # first slot in `memory`
VALUES_AT = 3  # in `numbers`, or in `offsets` for bytes and lists
VALID_AT = 4
STRINGS_AT = 5
STRINGS_ROOM = 6
USED = 7  # bytes so far
WIDTH = 8

NUMBER = 0
BYTES = 1
LIST = 2

# What stands in a row of `tables`.
DONE = 0
ROOM = 1
ROW_BYTES = 2  # what a row takes, but for its byte strings
TABLE_WIDTH = 3

# What stands in `call`.
FUNCTION = 0  # 0: the blocks are inflated
DECOMPRESSOR = 1
SOURCE = 2
SCRATCH = 3
MADE_AT = 4  # address of MADE
MADE = 5
STATUS = 6
SMALLEST = 7
KEEPABLE = 8  # bytes that may still be kept
INFLATABLE = 9  # bytes that may still be inflated
CALL = 10


def inflate_block(function: int, decompressor: int, source: int, size: int, target: int, room: int, made: int) -> int:
    """Inflates by the C function at an address; compiled code has its own form."""
    raise NotImplementedError


def decode_chunk(
    source: Sequence[int],
    blocks: Integers,
    scratch: Sequence[int],
    call: Integers,
    control: Integers,
    memory: Integers,
    columns: Integers,
    tables: Integers,
    outputs: tuple[Integers, Integers, Integers, Integers],
) -> int:
    """Decodes the blocks, each a start, an end and an object count; 0 or an error code about the block in `control`."""
    numbers, valid, offsets, strings = outputs
    for block in range(len(blocks)):
        control[FAILED_BLOCK] = block
        control[FAILED_ENTRY] = 0
        start, end, count = blocks[block, 0], blocks[block, 1], blocks[block, 2]
        if call[FUNCTION] == 0:
            code = decode_inflated(source, start, end, count, call, control, memory, tables)
            if code == 0:
                code = keep_rows(source, call, control, memory, columns, tables, numbers, valid, offsets, strings)
        else:
            call[STATUS] = inflate_block(
                call[FUNCTION],
                call[DECOMPRESSOR],
                call[SOURCE] + start,
                end - start,
                call[SCRATCH],
                len(scratch),
                call[MADE_AT],
            )
            if call[STATUS] != 0:
                return NOT_INFLATED
            code = decode_inflated(scratch, 0, call[MADE], count, call, control, memory, tables)
            if code == 0:
                code = keep_rows(scratch, call, control, memory, columns, tables, numbers, valid, offsets, strings)
        if code != 0:
            return code
    return 0


def decode_inflated(
    buffer: Sequence[int],
    position: int,
    end: int,
    count: int,
    call: Integers,
    control: Integers,
    memory: Integers,
    tables: Integers,
) -> int:
    """Run the program over the objects of one block, whose slots are zero."""
    call[INFLATABLE] -= end - position
    if call[INFLATABLE] < 0:
        return TOO_LARGE
    if count > (end - position) // call[SMALLEST]:
        return TOO_MANY
    if count > control[control[ROOM_AT]]:
        return NO_ROWS
    for table in range(len(tables)):
        control[ROWS_AT + table] = 0
    control[LIMIT] = end
    for entry in range(count):
        control[FAILED_ENTRY] = entry
        position = decode_object(buffer, position, control, memory)
        if position < 0:
            return position
        control[ROWS_AT] += 1
    if position != end:
        return TRAILING
    for table in range(len(tables)):
        if tables[table, DONE] + control[ROWS_AT + table] > tables[table, ROOM]:
            return NO_ROWS
        call[KEEPABLE] -= control[ROWS_AT + table] * tables[table, ROW_BYTES]
    if call[KEEPABLE] < 0:
        return TOO_LARGE
    return 0


def keep_rows(
    buffer: Sequence[int],
    call: Integers,
    control: Integers,
    memory: Integers,
    columns: Integers,
    tables: Integers,
    numbers: Integers,
    valid: Integers,
    offsets: Integers,
    strings: Integers,
) -> int:
    """Append the values in a block's slots to the output columns, and clear the slots."""
    for column in range(len(columns)):
        table = columns[column, TABLE]
        rows, done = control[ROWS_AT + table], tables[table, DONE]
        slots = 2 * columns[column, BASE]
        at, valid_at = columns[column, VALUES_AT] + done, columns[column, VALID_AT] + done
        kind = columns[column, KIND]
        if kind == NUMBER:
            for row in range(rows):
                numbers[at + row] = memory[slots + 2 * row]
                valid[valid_at + row] = memory[slots + 2 * row + 1]
            memory[slots : slots + 2 * rows] = 0
            continue
        used = columns[column, USED]
        first = columns[column, STRINGS_AT]
        for row in range(rows):
            mark = memory[slots + 2 * row + 1]
            valid[valid_at + row] = mark > 0
            size = mark - (mark > 0)
            if kind == BYTES and size > 0:
                if used + size > columns[column, STRINGS_ROOM]:
                    return NO_STRINGS
                begin = memory[slots + 2 * row]
                copy_bytes(buffer, begin, strings, first + used, size)
            used += size
            offsets[at + row + 1] = used
        call[KEEPABLE] -= used - columns[column, USED]
        columns[column, USED] = used
        memory[slots : slots + 2 * rows] = 0
    for table in range(len(tables)):
        tables[table, DONE] += control[ROWS_AT + table]
    return 0


def copy_bytes(buffer: Sequence[int], begin: int, out: Integers, at: int, size: int) -> None:
    """Copies bytes from one array to another."""
    source = buffer[begin : begin + size]
    target = out[at : at + size]
    for place in range(size):
        target[place] = source[place]
