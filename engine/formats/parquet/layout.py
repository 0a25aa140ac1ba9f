"""What stands where in the arrays that the kernels of Parquet footers take, and what their answers mean."""

from __future__ import annotations

# A column chunk, as `list_chunks` describes it: CHUNK_WIDTH numbers, -1 for what the footer does not tell.
CHUNK_GROUP = 0  # number of the row group
CHUNK_VALUES = 1
CHUNK_DATA_AT = 2  # offset of the first data page
CHUNK_DICTIONARY_AT = 3
CHUNK_IS_ELSEWHERE = 4  # in another file, or encrypted
CHUNK_TYPE = 5  # Type
CHUNK_STATISTICS_AT = 6  # where in the footer the fields of its statistics begin
CHUNK_WIDTH = 7

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

# What is wrong with a footer.
TRUNCATED = -1
BAD_NUMBER = -2
BAD_TYPE = -3
NO_ROOM = -4
UNKNOWN = -5
