"""Hashes of locations by path; see `icebench.engine.spec.locations` for the spellings of one file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icebench.engine.kernels.compiling import kernel

_COLON, _SLASH = ord(":"), ord("/")


@kernel()
def hash_locations(
    offsets: NDArray[np.int64], data: NDArray[np.uint8]
) -> NDArray[np.uint64]:  # pragma: no cover - compiled
    """A hash of each location without scheme and authority, equal wherever `parts` has equal paths."""
    found = np.empty(offsets.shape[0] - 1, dtype=np.uint64)
    for row in range(found.shape[0]):
        start, end = offsets[row], offsets[row + 1]
        at = start
        while at < end and data[at] != _COLON and data[at] != _SLASH:
            at += 1
        at = at + 1 if at < end and data[at] == _COLON else start
        if at > start and at + 1 < end and data[at] == _SLASH and data[at + 1] == _SLASH:
            at += 2
            while at < end and data[at] != _SLASH:
                at += 1
        if at >= end or data[at] != _SLASH:
            at = start
        value = np.uint64(14695981039346656037)  # FNV-1a
        for i in range(at, end):
            value = (value ^ np.uint64(data[i])) * np.uint64(1099511628211)
        found[row] = value
    return found
