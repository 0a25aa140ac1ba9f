"""Chooses the store of a location."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.runtime.local import LocalRunner, available_threads
from icebench.engine.spec.locations import normalise
from icebench.engine.storage.local import LocalStore, local_path
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.object_stores import OBJECT_SCHEMES, authority, object_store
from icebench.engine.storage.store import Store

_MEMORY = MemoryStore()
"""One per process, so that table handles share ``memory://`` locations."""

_REMOTE_THREADS = 8
"""Threads for remote files: as many as pyarrow has for requests."""

STORAGE_SCHEMES = frozenset({"", "file", "memory", *OBJECT_SCHEMES})
"""Schemes of locations; empty for plain paths."""


def store_for(location: str, properties: Mapping[str, str] | None = None, *, is_catalog: bool = False) -> Store:
    """The store of a location, by its scheme.

    Args:
        location: Any location of the table or catalog.
        properties: Catalog or table properties; of object stores PyIceberg's and Iceberg Java's ``s3.*`` names.
        is_catalog: Whether a directory catalog will commit there: see `object_store`.

    Raises:
        Unsupported: No store for that scheme.
        Invalid: A relative path.
    """
    scheme = scheme_of(location)
    if scheme in ("", "file"):
        if not scheme and not location.startswith("/"):
            raise Invalid(f"{location!r} is neither an absolute path nor a location with a scheme such as file:///")
        return LocalStore()
    if scheme == "memory":
        return _MEMORY
    if scheme not in OBJECT_SCHEMES:
        raise Unsupported(f"storage scheme {scheme!r} of {location}")
    return object_store(scheme, location, properties or {}, is_catalog=is_catalog)


def scheme_of(location: str) -> str:
    """The scheme, in lower case; empty for a plain path."""
    head, colon, _ = location.partition(":")
    return head.lower() if colon and "/" not in head else ""


def is_remote(store: Store, location: str) -> bool:
    """Whether a request for this file takes milliseconds, so that many should be in progress at a time."""
    return scheme_of(store.physical(location)) in OBJECT_SCHEMES


def default_runner(store: Store, location: str) -> LocalRunner:
    """A runner for files of a table: a thread for each processor, more where threads mostly wait for answers.

    Args:
        store: The table's storage.
        location: The table's, or that of one of its files.
    """
    return LocalRunner(max(available_threads(), _REMOTE_THREADS)) if is_remote(store, location) else LocalRunner()


def absolute_location(location: str) -> str:
    """A location with a scheme as it is; a path made absolute, with ``~`` expanded. No slash at the end."""
    if scheme_of(location):
        return location.rstrip("/")
    try:
        return str(Path(location).expanduser().absolute())
    except RuntimeError as error:
        raise Invalid(f"{location!r} is no path: {error}") from error


def normalise_location(location: str) -> str:
    """As `absolute_location`, without empty, ``.`` and ``..`` segments: the form that new tables and warehouses record.

    A symbolic link before ``..`` is resolved, as dropping both would lead elsewhere.
    """
    absolute = absolute_location(location)
    found = normalise(absolute)
    if scheme_of(absolute) not in ("", "file") or ".." not in absolute.split("/") or "\0" in absolute:
        return found
    meant = os.path.realpath(local_path(absolute))
    if os.path.realpath(local_path(found)) == meant:
        return found
    return meant


class Stores:
    """Stores by location, one for each scheme and authority (clients of buckets are expensive to create).

    Args:
        properties: Catalog properties; see `store_for`.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties = dict(properties or {})
        self._lock = Lock()
        self._opened: dict[tuple[str, str], Store] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """Other processes open stores of their own, of the same options."""
        if any(store is _MEMORY for store in self._opened.values()):
            return _MEMORY.__reduce__()
        return Stores, (self._properties,)

    def __call__(self, location: str) -> Store:
        """The store of that location; errors as `store_for`."""
        key = (scheme_of(location), authority(location))
        with self._lock:
            found = self._opened.get(key)
            if found is None:
                found = self._opened[key] = store_for(location, self._properties)
            return found
