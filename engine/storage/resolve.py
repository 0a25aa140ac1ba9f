"""Chooses the store of a location."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

from pyarrow import fs

from engine.errors import Invalid, Unsupported
from engine.spec.locations import normalise
from engine.storage.arrow import ArrowStore
from engine.storage.failures import translate_errors
from engine.storage.local import LocalStore, local_path
from engine.storage.memory import MemoryStore
from engine.storage.store import Store

_MEMORY = MemoryStore()
"""One per process, so that table handles share ``memory://`` locations."""

_S3_OPTIONS = {
    "s3.endpoint": "endpoint_override",
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
    "client.region": "region",
    "s3.region": "region",
}
_S3_SCHEMES = ("s3", "s3a", "s3n")
_GCS_SCHEMES = ("gs", "gcs")
_NEVER_MS = "7258118400000"
"""The year 2200; later times do not fit Arrow's type."""
_ARROW_SCHEMES = frozenset({*_S3_SCHEMES, *_GCS_SCHEMES, "hdfs", "viewfs"})
STORAGE_SCHEMES = frozenset({"", "file", "memory", *_ARROW_SCHEMES})
"""Schemes of locations; empty for plain paths."""


def store_for(location: str, properties: Mapping[str, str] | None = None) -> Store:
    """The store of a location, by its scheme.

    Args:
        location: Any location of the table or catalog.
        properties: Catalog or table properties; of object stores PyIceberg's and Iceberg Java's ``s3.*`` names.

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
    if scheme not in _ARROW_SCHEMES:
        raise Unsupported(f"storage scheme {scheme!r} of {location}")
    return _arrow_store(scheme, location, properties or {})


def scheme_of(location: str) -> str:
    """The scheme, in lower case; empty for a plain path."""
    head, colon, _ = location.partition(":")
    return head.lower() if colon and "/" not in head else ""


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


def _arrow_store(scheme: str, location: str, properties: Mapping[str, str]) -> ArrowStore:
    if scheme in _S3_SCHEMES:
        options: dict[str, object] = {to: properties[name] for name, to in _S3_OPTIONS.items() if name in properties}
        if properties.get("s3.path-style-access") == "false":
            options["force_virtual_addressing"] = True
        with translate_errors("open", location):
            return ArrowStore(fs.S3FileSystem(**options), [f"{s}://" for s in _S3_SCHEMES])
    if scheme in _GCS_SCHEMES:
        with translate_errors("open", location):
            return ArrowStore(fs.GcsFileSystem(**_gcs_options(properties)), [f"{s}://" for s in _GCS_SCHEMES])
    root = f"{scheme}://{_authority(location)}"
    with translate_errors("open", location):
        return ArrowStore(fs.FileSystem.from_uri(root + "/")[0], [root])


def _gcs_options(properties: Mapping[str, str]) -> dict[str, object]:
    """Use the token if one is given, else the credentials that Google's libraries find."""
    token, ends_at_ms = properties.get("gcs.oauth2.token"), properties.get("gcs.oauth2.token-expires-at", "")
    options: dict[str, object] = {}
    if "gcs.project-id" in properties:
        options["project_id"] = properties["gcs.project-id"]
    if token:
        # A time is required; if unknown, one in the far future.
        ends_at_ms = ends_at_ms if ends_at_ms.isdecimal() else _NEVER_MS
        options["access_token"] = token
        options["credential_token_expiration"] = datetime.fromtimestamp(int(ends_at_ms) // 1000, UTC)
    return options


def _authority(location: str) -> str:
    try:
        return urlsplit(location).netloc
    except ValueError as error:
        raise Invalid(f"{location!r} is no location: {error}") from error


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
        key = (scheme_of(location), _authority(location))
        with self._lock:
            found = self._opened.get(key)
            if found is None:
                found = self._opened[key] = store_for(location, self._properties)
            return found
