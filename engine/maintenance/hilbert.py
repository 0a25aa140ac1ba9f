"""Hilbert curve: orders rows along a curve of which each step changes one column by one.

Like Z-order it fills a cube of any number of dimensions before it leaves it, but it never jumps: files of consecutive
rows are compact, and filters on several columns meet fewer of them. Columns count by shares, as in Z-order.

The steps are those of J. Skilling, "Programming the Hilbert curve" (AIP Conference Proceedings 707, 2004), for all rows
at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icebench.engine.maintenance.z_order import UInt64s, bits_of_each, interleave_bits, shares


def hilbert_values(columns: Sequence[pa.Array | pa.ChunkedArray]) -> UInt64s:
    """The position of each row on the curve. Arguments and errors are those of `z_values`."""
    bits = bits_of_each(len(columns), "a Hilbert curve")
    return hilbert_indexes([shares(column, bits) for column in columns], bits)


def hilbert_indexes(columns: Sequence[UInt64s], bits: int) -> UInt64s:
    """The positions of points on the curve through all points of `bits` bits in each coordinate.

    Args:
        columns: The coordinates, one array each; ``len(columns) * bits`` is at most 64.
        bits: How many of each coordinate.
    """
    axes = [column.copy() for column in columns]
    first, zero = axes[0], np.uint64(0)
    for place in range(bits - 1, 0, -1):
        bit, below = np.uint64(1 << place), np.uint64((1 << place) - 1)
        for number, axis in enumerate(axes):
            is_set = (axis & bit) != 0
            # A set bit inverts the lower bits of the first axis; else the two axes change places in them.
            swapped = np.where(is_set, zero, (first ^ axis) & below)
            first ^= np.where(is_set, below, swapped)
            if number:
                axes[number] ^= swapped
    for number in range(1, len(axes)):
        axes[number] ^= axes[number - 1]
    turned = np.zeros_like(first)
    for place in range(bits - 1, 0, -1):
        turned ^= np.where((axes[-1] & np.uint64(1 << place)) != 0, np.uint64((1 << place) - 1), zero)
    return interleave_bits([axis ^ turned for axis in axes], bits)
