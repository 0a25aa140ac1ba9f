"""Decoded manifests and manifest lists on disk, as Arrow IPC files that are mapped into memory.

Opening a manifest that is there costs neither a request to storage, nor inflating, nor decoding: its arrays are the
file's pages, and only those that a plan touches are read (`engine.plan.array_files`). The file names the manifest;
whatever does not agree makes it as good as absent, and it is written anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields

import numpy as np
import pyarrow as pa

from engine.codec.columns import ManifestColumns
from engine.plan.array_files import (
    Array,
    DamagedError,
    StoredArrays,
    arrays_of,
    columns_of,
    encode_arrays,
    open_arrays,
)
from engine.runtime.counters import Counters
from engine.storage.directory_cache import DirectoryCache

DISK_CACHE_HITS = "disk_cache_hits"
"""Counter: manifests and lists that were opened from disk."""
DISK_CACHE_MISSES = "disk_cache_misses"
"""Counter: those that were not there, or not with all the metrics that were wanted."""
DISK_CACHE_DAMAGED = "disk_cache_damaged"
"""Counter: files that were not what they should be, and were taken for absent."""
DISK_CACHE_FAILURES = "disk_cache_failures"
"""Counter: files that could not be written, as on a full disk."""

Metrics = frozenset[int] | None

_FORMAT = "1 " + " ".join(f.name for f in fields(ManifestColumns))
"""Part of every name, so that no version of this code reads what another with other columns wrote."""


class DiskCache:
    """Manifests and manifest lists in a directory. Safe among threads and processes.

    What is kept is named by location and length (a list by location and snapshot), since such files never change.
    Tables in memory are not kept: their locations mean something in one process only.

    Args:
        directory: Where.
        counters: Count hits, misses and what went wrong.
    """

    def __init__(self, directory: DirectoryCache, counters: Counters) -> None:
        self._directory = directory
        self._counters = counters
        for name in (DISK_CACHE_HITS, DISK_CACHE_MISSES, DISK_CACHE_DAMAGED, DISK_CACHE_FAILURES):
            counters.add(name, 0)

    def columns(
        self, key: tuple[str, int], metrics: Metrics, decode: Callable[[Metrics], ManifestColumns]
    ) -> ManifestColumns:
        """The columns of a manifest with at least these metrics: from disk, or else decoded and kept.

        What is decoded because some metrics are missing has those that were there as well.
        """
        location, length = key
        if _only_here(location):
            return decode(metrics)
        about = {"location": location, "length": length}
        name = _name("manifest", location, str(length))
        wanted = metrics
        stored = self._opened(name, about)
        if stored is not None:
            known = stored.about["metrics"]
            if known is None or (metrics is not None and metrics <= set(known)):
                try:
                    found = columns_of(stored.about["count"], stored.index, stored.array, metrics)
                    self._counters.add(DISK_CACHE_HITS)
                    return found
                except (DamagedError, KeyError, TypeError, ValueError):
                    self._counters.add(DISK_CACHE_DAMAGED)
            elif metrics is not None:
                wanted = metrics | frozenset(known)
            else:
                wanted = None
        self._counters.add(DISK_CACHE_MISSES)
        columns = decode(wanted)
        told = None if wanted is None else sorted(wanted)
        self._keep(name, {**about, "metrics": told, "count": columns.count}, dict(arrays_of(columns)))
        return columns

    def manifest_list(self, location: str, identity: str, read: Callable[[], bytes]) -> bytes:
        """The bytes of a manifest list.

        Args:
            location: Where it is.
            identity: What tells its snapshot from others.
            read: Reads it from storage.
        """
        if _only_here(location):
            return read()
        about = {"location": location, "identity": identity}
        name = _name("list", location, identity)
        stored = self._opened(name, about)
        if stored is not None:
            try:
                found = stored.array("list").tobytes()
                self._counters.add(DISK_CACHE_HITS)
                return found
            except (DamagedError, KeyError, TypeError, ValueError):
                self._counters.add(DISK_CACHE_DAMAGED)
        self._counters.add(DISK_CACHE_MISSES)
        data = read()
        self._keep(name, about, {"list": np.frombuffer(data, np.uint8)})
        return data

    def _opened(self, name: str, about: Mapping[str, object]) -> StoredArrays | None:
        """The file of that name, if it is whole and is about what it should be."""
        data = self._directory.load(name)
        if data is None:
            return None
        try:
            stored = open_arrays(data)
            if any(stored.about[key] != value for key, value in about.items()):
                raise DamagedError(name)
        except (DamagedError, pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            self._counters.add(DISK_CACHE_DAMAGED)
            return None
        return stored

    def _keep(self, name: str, about: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
        if not self._directory.store(name, encode_arrays(about, arrays)):
            self._counters.add(DISK_CACHE_FAILURES)


def _name(*parts: str) -> str:
    return hashlib.sha256("\0".join((_FORMAT, *parts)).encode()).hexdigest()


def _only_here(location: str) -> bool:
    return location.startswith("memory:")
