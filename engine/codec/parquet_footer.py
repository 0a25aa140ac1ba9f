"""Footers of wide Parquet files, of which only the wanted columns are worth reading.

pyarrow makes objects of all that a footer says: of 5,000 columns and two row groups in 22 ms, which is as long as
decoding ten of them takes. Taking the others out of its bytes first takes 3 ms.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.codec.parquet_choice import KERNELS
from engine.codec.parquet_layout import STACK_DEPTH

_FEWEST_BYTES = 1 << 14
"""pyarrow reads a smaller footer in a quarter of a millisecond."""
_BYTES_A_VALUE = 2
"""Reading so many bytes of a footer takes pyarrow as long as decoding a value."""
_SLACK_BYTES = 64


def slim_footer(footer: bytes, field_ids: Iterable[int]) -> bytes | None:
    """The footer as if the file had only the top-level columns of these field ids, and no key-value metadata.

    Row groups stay as they are; their sort order, which counts columns, is left out.

    Args:
        footer: A FileMetaData of the Parquet format, without what surrounds it.
        field_ids: Those of the file's columns that may be wanted.

    Returns:
        None where the footer is damaged, encrypted or unusual, for whoever reads it whole to say; where it has none of
        these columns; and where it is too small for this to pay.
    """
    if len(footer) < _FEWEST_BYTES or not KERNELS.pays(len(footer) // _BYTES_A_VALUE):
        return None
    source = np.frombuffer(footer, np.uint8)
    wanted = np.array(sorted(field_ids), np.int64)
    is_kept = np.empty(2 * len(source), np.uint8)
    stack = np.empty(2 * STACK_DEPTH, np.int64)
    out = np.empty(len(source) + _SLACK_BYTES, np.uint8)
    places = (array.__array_interface__["data"][0] for array in (source, wanted, is_kept, stack, out))
    size = KERNELS.slim_footer([*places, len(source), len(wanted), 0, 0])
    return None if size < 0 else out[:size].tobytes()
