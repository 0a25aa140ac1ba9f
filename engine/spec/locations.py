"""Spellings of locations: which of them mean one file, and which lie inside one another.

Different engines write different spellings into one table: ``/a/b``, ``file:/a/b`` and ``file:///a/b``; ``s3``, ``s3a``
and ``s3n``; and Hadoop drops empty, ``.`` and ``..`` segments where others keep them.
"""

from __future__ import annotations

import posixpath
import re

_LOCATION = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?+)?(/.*)", re.DOTALL)
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb", "gcs": "gs"}
_UNTIDY = re.compile(r"//|/\.|/$")


def parts(location: str) -> tuple[str, str, str]:
    """Scheme, authority and path as it is written; the local file system has neither scheme nor authority."""
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


def normalise_path(path: str) -> str:
    """A path without empty, ``.`` and ``..`` segments and without a slash at the end; ``""`` for the root."""
    if not _UNTIDY.search(path):
        return path
    return posixpath.normpath("/" + path.lstrip("/")).rstrip("/") if path.startswith("/") else path


def normalise(location: str) -> str:
    """The location with its path normalised; scheme and authority stay as they are written."""
    match = _LOCATION.fullmatch(location)
    if match is None:
        return location
    return location[: match.start(3)] + normalise_path(match[3])


def path_of(location: str) -> str:
    """What all spellings of a location have in common: the normalised path. Equal for files of two buckets, too."""
    return normalise_path(parts(location)[2])


def lies_inside(location: str, directory: str) -> bool:
    """Whether a file or directory is below a directory of the same scheme and authority, or is that directory."""
    own, other = parts(location), parts(directory.rstrip("/") + "/")
    path, root = normalise_path(own[2]), normalise_path(other[2])
    return own[:2] == other[:2] and (path == root or path.startswith(f"{root}/"))
