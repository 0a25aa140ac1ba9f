"""A compiled loop over byte strings held as `offsets` and `data`, one string per row. It releases the GIL.

`valid` is a boolean per row, or an empty array for "all valid": Numba compiles one signature for both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icebench.engine.kernels.compiling import kernel

Offsets = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
ALL_VALID: Mask = np.empty(0, dtype=np.bool_)


def _cut_against(
    cut: Bytes,
    cut_start: int,
    cut_end: int,
    data: Bytes,
    start: int,
    end: int,
    open_ended: bool,
) -> int:  # pragma: no cover - compiled
    """-1, 0, 1: the cut stands below, at or above the row's string; an open-ended string is above its extensions."""
    shared = min(cut_end - cut_start, end - start)
    for i in range(shared):
        a, b = cut[cut_start + i], data[start + i]
        if a != b:
            return -1 if a < b else 1
    if cut_end - cut_start < end - start or open_ended:
        return -1
    return 0 if cut_end - cut_start == end - start else 1


@kernel(helpers=(_cut_against,))
def byte_segments(
    offsets: Offsets, data: Bytes, valid: Mask, open_ended: Mask, cut_offsets: Offsets, cut_data: Bytes
) -> NDArray[np.int64]:  # pragma: no cover - compiled
    """For each row, twice the number of cuts below its string, plus one if a cut equals it. Invalid rows get 0."""
    rows = offsets.shape[0] - 1
    cuts = cut_offsets.shape[0] - 1
    found = np.zeros(rows, dtype=np.int64)
    for row in range(rows):
        if valid.shape[0] and not valid[row]:
            continue
        endless = open_ended.shape[0] > 0 and open_ended[row]
        low, high = 0, cuts  # cuts below `low` are below the string, from `high` on they are not
        while low < high:
            middle = (low + high) // 2
            at = _cut_against(
                cut_data, cut_offsets[middle], cut_offsets[middle + 1], data, offsets[row], offsets[row + 1], endless
            )
            if at < 0:
                low = middle + 1
            else:
                high = middle
        found[row] = 2 * low
        if low < cuts and (
            _cut_against(
                cut_data, cut_offsets[low], cut_offsets[low + 1], data, offsets[row], offsets[row + 1], endless
            )
            == 0
        ):
            found[row] += 1
    return found
