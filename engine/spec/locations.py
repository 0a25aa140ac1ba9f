"""Whether two spellings of a location mean one file: manifests and delete files may be written by different engines."""

from __future__ import annotations

import re

_LOCATION = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(/.*)", re.DOTALL)
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}


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
