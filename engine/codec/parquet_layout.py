"""What stands where in the arrays that the Parquet kernels take, and what their answers mean.

Numbers of pages, encodings and fields are those of the Parquet format ("parquet.thrift", "Encodings").
"""

from __future__ import annotations

from typing import Any, TypeAlias

Integers: TypeAlias = Any
"""An array of integers, as Numba knows it."""

# Types of pages.
DATA_PAGE = 0
DICTIONARY_PAGE = 2
DATA_PAGE_V2 = 3

# Encodings.
PLAIN = 0
PLAIN_DICTIONARY = 2
RLE = 3
BIT_PACKED = 4
DELTA_BINARY_PACKED = 5
RLE_DICTIONARY = 8
BYTE_STREAM_SPLIT = 9

# A page, as `scan_pages` describes it: PAGE_WIDTH numbers.
PAGE_TYPE = 0
PAGE_START = 1  # where its bytes begin in the column chunk, after the header
PAGE_SIZE = 2  # as stored
PAGE_INFLATED = 3  # size after inflating
PAGE_CRC = 4  # 32 bits, or -1 for none
PAGE_VALUES = 5  # with nulls
PAGE_ENCODING = 6
PAGE_LEVEL_ENCODING = 7  # of definition levels; RLE in version 2
PAGE_LEVELS_SIZE = 8  # version 2: bytes of definition levels
PAGE_REPETITIONS_SIZE = 9  # version 2: bytes of repetition levels
PAGE_IS_COMPRESSED = 10
PAGE_WIDTH = 11

# What `scan_pages` takes.
SCAN_CHUNK = 0
SCAN_SIZE = 1
SCAN_VALUES = 2  # of the column chunk
SCAN_TABLE = 3  # address of PAGE_WIDTH numbers a page
SCAN_ROOM = 4  # pages that the table has room for
SCAN_LENGTH = 5

# A column chunk, as `list_chunks` describes it: CHUNK_WIDTH numbers, -1 for what the footer does not tell.
CHUNK_GROUP = 0  # number of the row group
CHUNK_ENCODINGS = 1  # one bit for each that is listed
CHUNK_CODEC = 2  # CompressionCodec
CHUNK_VALUES = 3
CHUNK_SIZE = 4  # as stored
CHUNK_DATA_AT = 5  # offset of the first data page
CHUNK_DICTIONARY_AT = 6
CHUNK_IS_ELSEWHERE = 7  # in another file, or encrypted
CHUNK_TYPE = 8  # Type
CHUNK_STATISTICS_AT = 9  # where in the footer the fields of its statistics begin
CHUNK_WIDTH = 10
MOST_ENCODING = 62  # stands for all from there on, and for none listed

# What `list_chunks` takes.
LIST_FOOTER = 0
LIST_SIZE = 1
LIST_TABLE = 2
LIST_ROOM = 3  # chunks that the table has room for
LIST_STACK = 4  # 2 * STACK_DEPTH numbers
LIST_ORDERS_AT = 5  # the kernel's answer: where in the footer the list of column orders begins, or -1
LIST_LENGTH = 6
STACK_DEPTH = 16

# What `slim_footer` takes. Addresses of memory that the caller holds, and counts.
SLIM_FOOTER = 0
SLIM_WANTED = 1  # ascending field ids
SLIM_IS_KEPT = 2  # twice as many bytes as the footer has
SLIM_STACK = 3  # 2 * STACK_DEPTH numbers
SLIM_OUT = 4  # as many bytes as the footer has, and 64 more
SLIM_SIZE = 5  # bytes of the footer
SLIM_WANTED_COUNT = 6
SLIM_LEAVES = 7  # the kernel's own
SLIM_KEPT_LEAVES = 8  # the kernel's own
SLIM_LENGTH = 9

# How definition levels are stored.
NO_LEVELS = 0
LEVELS_BEFORE_VALUES = 1  # version 1: a length of four bytes, the levels, the values
LEVELS_APART = 2  # version 2

# How a value of the file becomes a value of the array.
SAME = 0
EXTENDED = 1  # a little-endian integer of 4 or 8 bytes to 16
BIG_ENDIAN = 2  # 1 to 16 bytes to 4, 8 or 16, none narrower

# What `decode_page` takes. Addresses of memory that the caller holds; sizes are in bytes, rows and values are counted.
LEVELS = 0  # how they are stored
LEVELS_AT = 1
LEVELS_SIZE = 2
VALUES_AT = 3
VALUES_SIZE = 4
VALUES = 5  # of the page, with nulls
ENCODING = 6
WIDTH = 7  # of a value in the file
FORM = 8
DICTIONARY_AT = 9  # values as in the array, or those of form EXTENDED as in the file
DICTIONARY_VALUES = 10
OUT_AT = 11
OUT_WIDTH = 12  # of a value in the array: 4, 8, 16
OUT_ROW = 13  # where the page's first row goes
OUT_ROWS = 14  # that the array has room for, with one more that is written and does not count
VALIDITY_AT = 15  # bitmap of zeros, a word longer than its rows need; 0 for a required column
KEEP_AT = 16  # bitmap of the rows to keep, 16 bytes longer than its rows need; 0 for all
KEEP_ROW = 17  # the page's first row in it
SCRATCH_AT = 18
SCRATCH_SIZE = 19
NULLS = 20  # the kernel adds the nulls that it put into the array
DICTIONARY_WIDTH = 21  # of a value there
DECODE_LENGTH = 22

BLOCK = 1024
"""Values that are in hand at once, so that they stay in the processor's nearest cache."""
BLOCK_SCRATCH = 24 * BLOCK + 1024
"""Scratch for a block: the state of a stream, indices of 4 bytes of values and of rows, values of 16 bytes, and what a
loop may read and write beyond."""


def scratch_size(values: int, width: int, *, has_levels: bool, encoding: int) -> int:
    """The scratch that a page of so many values needs: a block, a bitmap of the values, and perhaps a copy of them."""
    bitmap = ((values >> 6) + 2) << 3 if has_levels else 0
    copied = encoding in {DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT}
    return BLOCK_SCRATCH + bitmap + ((values + 8) * width if copied else 0)


# What is wrong with a page.
TRUNCATED = -1
BAD_NUMBER = -2
NEGATIVE = -3
BAD_LEVEL = -4
BAD_INDEX = -5
BAD_BIT_WIDTH = -6
BAD_BLOCK = -7
BAD_STREAM = -8
TOO_MANY = -9
BAD_TYPE = -10
NO_ROOM = -11
UNKNOWN = -12

MESSAGES = {
    TRUNCATED: "a page is cut off",
    BAD_NUMBER: "a number in a page header has too many bits",
    NEGATIVE: "a size or count in a page header is negative",
    BAD_LEVEL: "a definition level is neither 0 nor 1",
    BAD_INDEX: "a dictionary index is beyond the dictionary",
    BAD_BIT_WIDTH: "a bit width is too large",
    BAD_BLOCK: "a delta block of impossible size",
    BAD_STREAM: "split bytes that are no whole number of values",
    TOO_MANY: "pages have more values than the column chunk",
    BAD_TYPE: "a page header is not what the Parquet format says",
}
"""NO_ROOM asks for more room, UNKNOWN says that another reader may know more."""
