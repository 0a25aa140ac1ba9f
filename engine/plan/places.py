"""Whether two spellings of a location mean one file: manifests and delete files may be written by different engines."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from engine.compiling import kernel

_LOCATION = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(/.*)", re.DOTALL)
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
_COLON, _SLASH = ord(":"), ord("/")


def parts(location: str) -> tuple[str, str, str]:
    """Scheme, authority and path; the local file system has neither scheme nor authority."""
    match = _LOCATION.fullmatch(location)
    if match is None:
        return "", "", location
    scheme, authority, path = (match[1] or "").lower(), match[2] or "", match[3]
    if scheme == "file":
        return "", "", path
    return _SAME_SCHEME.get(scheme, scheme), authority, path


def same_place(left: str, right: str) -> bool:
    """Whether two locations mean one file: equal paths, and scheme and authority equal or not said by one of them."""
    own, other = parts(left), parts(right)
    return own[2] == other[2] and all(a == b or not a or not b for a, b in zip(own[:2], other[:2], strict=True))


@kernel()
def path_hashes(
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
        if at + 1 < end and data[at] == _SLASH and data[at + 1] == _SLASH:
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
