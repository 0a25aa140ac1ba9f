"""Metadata files of catalogs that keep a pointer to the current one: ``00001-<uuid>.metadata.json``."""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from icebench.engine.catalog.versions import next_version
from icebench.engine.codec.metadata_json.table import decode_metadata, encode_metadata
from icebench.engine.commit.staging_context import metadata_file_location
from icebench.engine.errors import EngineError
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import METADATA_COMPRESSION
from icebench.engine.storage.canonical_paths import CanonicalPaths
from icebench.engine.storage.store import Store

_UNIQUE = re.compile(r"\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[-.]", re.ASCII | re.IGNORECASE)
"""Begins the names ``00003-<uuid>.metadata.json`` of catalogs that point to metadata files."""
_KEPT = 16
_KEPT_WITH_BYTES = 4


class RecentMetadata:
    """Files that were decoded before, known by their bytes: a name is given again where a table was dropped and made
    anew. Decoding a table of a thousand snapshots takes as long as a commit to it; a commit loads it three times."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._recent: OrderedDict[str, tuple[bytes, TableMetadata]] = OrderedDict()

    def decode(self, location: str, data: bytes) -> TableMetadata:
        """Decode the metadata in a file with these bytes; raises CorruptTable, Unsupported."""
        with self._lock:
            found = self._recent.get(location)
        if found is not None and found[0] == data:
            return found[1]
        metadata = decode_metadata(data, location=location)
        self.remember(location, data, metadata)
        return metadata

    def remember(self, location: str, data: bytes, metadata: TableMetadata) -> None:
        """Record the content of a file."""
        with self._lock:
            self._recent[location] = data, metadata
            self._recent.move_to_end(location)
            while len(self._recent) > _KEPT_WITH_BYTES:
                self._recent.popitem(last=False)


class MetadataFiles:
    """Reads and writes metadata files. Those with a UUID in their name are cached: no other file will ever have it.

    Args:
        store_at: The store of a location.
        new_id: Makes the unique part of names.
    """

    def __init__(self, store_at: Callable[[str], Store], new_id: Callable[[], uuid.UUID] = uuid.uuid4) -> None:
        self._store_at = store_at
        self._new_id = new_id
        self._lock = Lock()
        self._recent: OrderedDict[str, TableMetadata] = OrderedDict()

    def load(self, location: str) -> TableMetadata:
        """The metadata in a file; raises FileNotFound, CorruptTable."""
        with self._lock:
            found = self._recent.get(location)
        if found is None:
            found = decode_metadata(self._store_at(location).read(location), location=location)
            # Any file may be registered, and that of a directory table that is made anew has the same name.
            if _UNIQUE.match(location.rpartition("/")[2]):
                self._remember(location, found)
        return found

    def write_next(self, metadata: TableMetadata, current: str | None) -> str:
        """Write the version after the one at `current` and return its location. A failed write leaves no file."""
        compress = METADATA_COMPRESSION.of(metadata.properties) == "gzip"
        name = f"{next_version(current):05d}-{self._new_id()}{'.gz' if compress else ''}.metadata.json"
        location = metadata_file_location(metadata, name)
        try:
            self._store_at(location).write(location, encode_metadata(metadata, compress=compress))
        except EngineError:
            self.delete(location)
            raise
        self._remember(location, metadata)
        return location

    def delete(self, location: str) -> None:
        """Delete a file that never was a table's current one. If that fails, it is left to orphan removal."""
        with self._lock:
            self._recent.pop(location, None)
        with suppress(EngineError):
            self._store_at(location).delete(location)

    def delete_outdated(self, base: TableMetadata, committed: TableMetadata) -> None:
        """Delete files that left the metadata log (``write.metadata.delete-after-commit.enabled``).

        Files outside the table's own locations stay: whoever wrote the log may have named any file.
        """
        canonical = CanonicalPaths(committed.location)
        kept = {entry.metadata_file for entry in committed.metadata_log}
        for entry in base.metadata_log:
            file = entry.metadata_file
            if file not in kept and canonical.is_inside(file, committed.own_locations):
                self.delete(file)

    def _remember(self, location: str, metadata: TableMetadata) -> None:
        with self._lock:
            self._recent[location] = metadata
            self._recent.move_to_end(location)
            while len(self._recent) > _KEPT:
                self._recent.popitem(last=False)
