"""Layout of the arrays that the kernels of Parquet footers take, and their error codes."""

from __future__ import annotations

# A column chunk, as `list_chunks` describes it: CHUNK_WIDTH numbers, -1 if unknown.
CHUNK_GROUP = 0  # number of the row group
CHUNK_VALUES = 1
CHUNK_DATA_AT = 2  # offset of the first data page
CHUNK_DICTIONARY_AT = 3
CHUNK_IS_ELSEWHERE = 4  # in another file, or encrypted
CHUNK_TYPE = 5  # Type
CHUNK_STATISTICS_AT = 6  # where in the footer the fields of its statistics begin
CHUNK_WIDTH = 7

# What `list_chunks` takes: of each array the address and the length.
LIST_FOOTER = 0
LIST_SIZE = 1
LIST_TABLE = 2
LIST_ROOM = 3  # chunks that the table has room for
LIST_STACK = 4  # 2 * STACK_DEPTH numbers
LIST_ORDERS = 6  # a number, which the kernel sets: where in the footer the list of column orders begins, or -1
LIST_LENGTH = 8
STACK_DEPTH = 16

# What `slim_footer` takes, likewise.
SLIM_FOOTER = 0
SLIM_SIZE = 1
SLIM_WANTED = 2  # ascending field ids
SLIM_WANTED_COUNT = 3
SLIM_IS_KEPT = 4  # twice as many bytes as the footer has
SLIM_STACK = 6  # 2 * STACK_DEPTH numbers
SLIM_OUT = 8  # as many bytes as the footer has, and 64 more
SLIM_LEAVES = 10  # two numbers, which the kernel sets: leaves, and those that are kept
SLIM_LENGTH = 12

# What is wrong with a footer.
TRUNCATED = -1
BAD_NUMBER = -2
BAD_TYPE = -3
NO_ROOM = -4
UNKNOWN = -5
