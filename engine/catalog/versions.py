"""Finds the current metadata file of a table directory, without a catalog.

Two namings exist. ``v3.metadata.json`` is a version that a file-system catalog committed; the next one has the next
number, and ``version-hint.text`` says where to start looking. ``00003-<uuid>.metadata.json`` was written by a catalog
that keeps the pointer elsewhere: the highest number is the newest, but two files may have it when a commit failed.
"""

from __future__ import annotations

import re

from icebench.engine.errors import FileNotFound, Invalid, NotFound, StorageFailed
from icebench.engine.storage.store import Store

VERSION_HINT = "version-hint.text"

_NUMBERED = re.compile(r"v(\d{1,18})(\.gz)?\.metadata\.json(\.gz)?", re.ASCII)
_UNIQUE = re.compile(r"(\d{1,18})-[^/]+\.metadata\.json(\.gz)?", re.ASCII)
_BEFORE_ID = re.compile(r"(\d{1,18})-", re.ASCII)
_VERSION = re.compile(r"\d{1,18}", re.ASCII)
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")


def version_of(name: str) -> int:
    """The version that a file named ``vN.metadata.json`` (or its compressed forms) is; 0 for other names."""
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match else 0


def next_version(location: str | None) -> int:
    """The version after that of a file named ``00003-<uuid>.metadata.json``; 0 where there is none, or its name has no
    version."""
    match = _BEFORE_ID.match((location or "").rpartition("/")[2])
    return int(match[1]) + 1 if match else 0


def current_version(directory: str, store: Store) -> tuple[int, str | None]:
    """The newest ``vN`` file of a metadata directory.

    The search goes on from the hint while a next version exists, so a stale hint costs a few look-ups; a missing or
    misleading one costs a listing.

    Returns:
        Version and location; 0 and None where there is none.
    """
    version = _read_hint(directory, store)
    found = existing_version(directory, version, store) if version else None
    if found is None:
        version = max((version_of(name) for name in _names(directory, store)), default=0)
        found = existing_version(directory, version, store) if version else None
    if found is None:
        return 0, None
    while (following := existing_version(directory, version + 1, store)) is not None:
        version, found = version + 1, following
    return version, found


def current_metadata_file(location: str, store: Store) -> str:
    """The metadata file of a table directory (or of its ``metadata/`` directory), or `location` itself if it is one.

    Raises:
        NotFound: No metadata file there.
        Invalid: Several could be current; the message names them.
    """
    if location.endswith((".metadata.json", ".metadata.json.gz")):
        return location
    directory = location.rstrip("/")
    for candidate in (f"{directory}/metadata", directory):
        numbered = current_version(candidate, store)[1]
        unique = _newest_unique(candidate, store)
        if numbered is not None and unique:
            raise _ambiguous([numbered, *unique])
        if len(unique) > 1:
            raise _ambiguous(unique)
        found = numbered or (unique[0] if unique else None)
        if found is not None:
            return found
    raise NotFound(f"no table at {location}: neither it nor its metadata/ holds a file *.metadata.json")


def _newest_unique(directory: str, store: Store) -> list[str]:
    """The files with the highest number; more than one where a commit failed, or a copy was put beside."""
    by_version: dict[int, list[str]] = {}
    for name in _names(directory, store):
        match = _UNIQUE.fullmatch(name)
        if match:
            by_version.setdefault(int(match[1]), []).append(f"{directory}/{name}")
    return by_version[max(by_version)] if by_version else []


def _ambiguous(candidates: list[str]) -> Invalid:
    names = " or ".join(sorted(candidates))
    return Invalid(f"the current metadata file is ambiguous; load one of them by its name: {names}")


def _names(directory: str, store: Store) -> list[str]:
    names = [info.location[len(directory) + 1 :] for info in store.list(directory)]
    return [name for name in names if "/" not in name]


def _read_hint(directory: str, store: Store) -> int:
    try:
        text = store.read(f"{directory}/{VERSION_HINT}").decode("ascii", "replace").strip()
    except (FileNotFound, StorageFailed):
        # It is optional: what it would say is found without it.
        return 0
    return int(text) if _VERSION.fullmatch(text) else 0


def existing_version(directory: str, version: int, store: Store) -> str | None:
    """The location of a version's file, compressed or not; None where there is none."""
    for suffix in _SUFFIXES:
        location = f"{directory}/v{version}{suffix}"
        if store.exists(location):
            return location
    return None
