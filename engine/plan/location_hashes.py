"""Hashes of locations by path; see `icebench.engine.spec.locations` for the spellings of one file."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from icebench.engine.kernels.compiling import kernel

_COLON, _SLASH = ord(":"), ord("/")
_LOCATION = re.compile(rb"(?:[^:/]*:(?://[^/]*)?+)?(/.*)", re.DOTALL)
_BASIS, _PRIME, _MASK = 14695981039346656037, 1099511628211, (1 << 64) - 1


def _hash_in_python(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """As `hash_locations`: NumPy's single numbers, with which that is interpreted, are far slower than Python's own."""
    text = data.tobytes()
    found = np.empty(len(offsets) - 1, np.uint64)
    for row, (start, end) in enumerate(pairwise(offsets.tolist())):
        location = text[start:end]
        match = _LOCATION.fullmatch(location)
        value = _BASIS
        for byte in location if match is None else match[1]:
            value = (value ^ byte) * _PRIME & _MASK
        found[row] = value
    return found


def _work(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> int:
    """A quarter of the bytes: each costs that much less than where the kernel itself is interpreted."""
    return (offsets.nbytes + data.nbytes) // 4


@kernel(work=_work, plain=_hash_in_python)
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
