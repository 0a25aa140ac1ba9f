"""Spellings of locations: which of them mean one file, and which lie inside one another.

Different engines write different spellings into one table: ``/a/b``, ``file:/a/b`` and ``file:///a/b``; ``s3``, ``s3a``
and ``s3n``; and Hadoop drops empty, ``.`` and ``..`` segments where others keep them.
"""

from __future__ import annotations

import posixpath
import re

_LOCATION = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?+)?(/.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb", "gcs": "gs"}
_CURRENT = re.compile(r"\A(?:\./+)+")
_DEFAULT_FILE_SYSTEMS = frozenset({"", "hdfs", "viewfs"})
_UNTIDY = re.compile(r"//|/\.|/$")


def parts(location: str) -> tuple[str, str, str]:
    """Scheme, authority and path as it is written; the local file system has neither scheme nor authority.

    A relative path is without the ``./`` it may begin with.
    """
    match = _LOCATION.fullmatch(location)
    if match is None:
        return "", "", _CURRENT.sub("", location, count=1)
    scheme, authority, path = (match[1] or "").lower(), match[2] or "", match[3]
    if scheme == "file":
        return "", "", path
    return _SAME_SCHEME.get(scheme, scheme), authority, path


def same_place(left: str, right: str) -> bool:
    """Whether two locations mean one file: equal paths, and scheme and authority equal or not said by one of them."""
    own, other = parts(left), parts(right)
    return own[2] == other[2] and _may_be_one_storage(own, other)


def _may_be_one_storage(own: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    return all(a == b or not a or not b for a, b in zip(own[:2], other[:2], strict=True))


def is_relative(location: str) -> bool:
    """Whether a location has no scheme and does not begin at a root."""
    return not location.startswith("/") and not _SCHEME.match(location)


def same_storage(left: str, right: str) -> bool:
    """Whether two locations are in one storage: equal scheme and authority."""
    return parts(f"{left}/")[:2] == parts(f"{right}/")[:2]


def rest_below(location: str, directory: str) -> str | None:
    """What follows a directory in the location of a file below it: ``"/data/f"``; ``""`` for the directory itself, None
    for other places.

    ``/a``, ``file:/a`` and ``file:///a`` are one place, as are ``./a`` and ``a``. Hadoop's writers leave out scheme and
    authority of the cluster's own file system: ``/a`` is ``hdfs://namenode/a``, too. Paths are compared as written.
    """
    own, other = parts(location), parts(directory.rstrip("/") + "/")
    path, root = own[2], other[2].rstrip("/")
    if own[:2] != other[:2]:
        is_default = own[0] in _DEFAULT_FILE_SYSTEMS and other[0] in _DEFAULT_FILE_SYSTEMS
        if not is_default or not _may_be_one_storage(own, other):
            return None
    if is_relative(location) != is_relative(directory):
        return None
    return path[len(root) :] if path == root or path.startswith(root + "/") else None


def moved_location(location: str, source: str, target: str) -> str | None:
    """A location below `source`, or that directory itself, with `target` in its place; None for other places."""
    rest = rest_below(location, source)
    return None if rest is None else target.rstrip("/") + rest


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
