"""Reduces footers of wide Parquet files to the wanted columns.

pyarrow creates objects for all columns of a footer: 22 ms for 5,000 columns and two row groups, as long as decoding ten
of them. Removing the others from the bytes first takes 3 ms.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from icebench.engine.codec.budget import budget_of, too_large
from icebench.engine.formats.parquet.footer_chunks import FooterChunks
from icebench.engine.formats.parquet.layout import STACK_DEPTH
from icebench.engine.formats.parquet.machine_kernels import SLIM_FOOTER
from icebench.engine.formats.parquet.thrift import shape_of

_ELEMENT_BYTES, _CHUNK_BYTES = 2000, 700
"""Memory of a schema element in pyarrow and here, and of a column chunk in pyarrow."""
_STRUCT_BYTES = 1000
"""Memory of either, before it is known which it is."""
_MOST_TIMES = 256
"""A footer may take this many times its size."""
_FEWEST_BYTES = 1 << 14
"""pyarrow reads a smaller footer in a quarter of a millisecond."""
_SLACK_BYTES = 64


def check_footer(footer: bytes, file_size: int, *, location: str | None = None) -> None:
    """Check a footer before pyarrow creates objects of it: up to seven hundred bytes for every three.

    Raises:
        TooLarge: See `icebench.engine.codec.budget`.
    """
    limit = budget_of(file_size)
    if len(footer) * _MOST_TIMES > limit and _objects_bytes(footer, limit) > limit:
        raise too_large(f"a footer of {len(footer)} bytes", limit, location=location, path="footer")


def _objects_bytes(footer: bytes, limit: int) -> int:
    """An upper bound of the memory of a footer's objects, if it is within the limit."""
    zeros = np.frombuffer(footer, np.uint8) == 0
    # A struct ends with a zero. Other zeros, in bounds and counts, often come in runs, as do those of empty structs:
    # fifteen of these take as much as a column chunk.
    ends = zeros.copy()
    ends[3:] &= ~(zeros[2:-1] & zeros[1:-2] & zeros[:-3])
    quick = _STRUCT_BYTES * int(np.count_nonzero(ends) + np.count_nonzero(zeros) // 15)
    if quick <= limit:
        return quick
    try:
        elements, leaves, row_groups = shape_of(footer)
    except (IndexError, ValueError):
        return limit + 1
    made = _ELEMENT_BYTES * elements + _CHUNK_BYTES * row_groups * (leaves + 1)
    if made > limit or not FooterChunks(footer, row_groups, leaves).is_known:
        return limit + 1
    return made


def slim_footer(footer: bytes, field_ids: Iterable[int]) -> bytes | None:
    """Reduce a footer to the top-level columns of these field ids, without key-value metadata.

    Row groups stay; their sort order, which refers to column numbers, is dropped.

    Args:
        footer: A FileMetaData of the Parquet format, without length and magic.
        field_ids: The columns that may be read.

    Returns:
        None if the footer is damaged, encrypted or unusual (which reading it whole will report), has none of these
        columns, or is too small to gain from it.
    """
    if len(footer) < _FEWEST_BYTES or not SLIM_FOOTER.should_use(len(footer)):
        return None
    source = np.frombuffer(footer, np.uint8)
    wanted = np.array(sorted(field_ids), np.int64)
    is_kept = np.empty(2 * len(source), np.uint8)
    stack = np.empty(2 * STACK_DEPTH, np.int64)
    out = np.empty(len(source) + _SLACK_BYTES, np.uint8)
    size = SLIM_FOOTER(source, wanted, is_kept, stack, out, np.empty(2, np.int64))
    return None if size < 0 else out[:size].tobytes()
