"""A cache of decoded manifests and manifest lists on disk, as Arrow IPC files that are mapped into memory.

A cached manifest needs no request to storage, no inflating and no decoding: its arrays are the pages of the file, of
which only those that a plan touches are read (`icebench.engine.plan.batch_files`). The file names the manifest; a file
that does not match counts as missing, and is replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from icebench.engine.codec.array_views import ManifestColumns, bytes_array_of
from icebench.engine.codec.manifests.decoded_entries import FIELDS, MAPS
from icebench.engine.plan.batch_files import DamagedError, StoredBatch, encode_batch, open_batch
from icebench.engine.runtime.counters import Counters
from icebench.engine.storage.directory_cache import DirectoryCache

DISK_CACHE_HITS = "disk_cache_hits"
"""Counter: manifests and lists found on disk."""
DISK_CACHE_MISSES = "disk_cache_misses"
"""Counter: manifests and lists not found on disk, or found without all wanted metrics."""
DISK_CACHE_DAMAGED = "disk_cache_damaged"
"""Counter: damaged or mismatched files, which count as missing."""
DISK_CACHE_FAILURES = "disk_cache_failures"
"""Counter: files that could not be written, for example to a full disk."""

Metrics = frozenset[int] | None

_FORMAT = "3 " + " ".join(FIELDS)
"""Part of every name, so that no version of this code reads files of another version with other columns."""


class DiskCache:
    """Manifests and manifest lists in a directory. Safe among threads and processes.

    Entries are named by location and length (lists by location and snapshot), since such files never change. Tables in
    memory are not cached: their locations are only valid in one process.

    Args:
        directory: The directory.
        counters: Count hits, misses and failures.
    """

    def __init__(self, directory: DirectoryCache, counters: Counters) -> None:
        self._directory = directory
        self._counters = counters
        for name in (DISK_CACHE_HITS, DISK_CACHE_MISSES, DISK_CACHE_DAMAGED, DISK_CACHE_FAILURES):
            counters.add(name, 0)

    def columns(
        self, key: tuple[str, int], metrics: Metrics, decode: Callable[[Metrics], ManifestColumns]
    ) -> ManifestColumns:
        """The columns of a manifest with at least these metrics: from disk, else decoded and stored.

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
                batch = self._checked(stored, [name for name in stored.facts if _is_wanted(name, metrics)])
                if batch is not None:
                    return ManifestColumns(batch, highest_field_id=stored.about["highest_field_id"])
            elif metrics is not None:
                wanted = metrics | frozenset(known)
            else:
                wanted = None
        self._counters.add(DISK_CACHE_MISSES)
        columns = decode(wanted)
        # Without what is wrong with it, a manifest would be taken for sound when it is read again.
        if not columns.contradictions:
            kept = {"metrics": None if wanted is None else sorted(wanted), "highest_field_id": columns.highest_field_id}
            self._keep(name, {**about, **kept}, columns.batch)
        return columns

    def manifest_list(self, location: str, identity: str, read: Callable[[], bytes]) -> bytes:
        """The bytes of a manifest list.

        Args:
            location: Where it is.
            identity: Identifies its snapshot.
            read: Reads it from storage.
        """
        if _only_here(location):
            return read()
        about = {"location": location, "identity": identity}
        name = _name("list", location, identity)
        stored = self._opened(name, about)
        if stored is not None:
            batch = self._checked(stored, ["list"])
            if batch is not None:
                found: bytes = batch.column("list")[0].as_py()
                return found
        self._counters.add(DISK_CACHE_MISSES)
        data = read()
        self._keep(name, about, pa.RecordBatch.from_arrays([bytes_array_of([data])], ["list"]))
        return data

    def _opened(self, name: str, about: Mapping[str, object]) -> StoredBatch | None:
        """Open the file of that name, if it is undamaged and about the expected manifest."""
        data = self._directory.load(name)
        if data is None:
            return None
        try:
            stored = open_batch(data)
            if any(stored.about[key] != value for key, value in about.items()):
                raise DamagedError(name)
        except (DamagedError, pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            self._counters.add(DISK_CACHE_DAMAGED)
            return None
        return stored

    def _checked(self, stored: StoredBatch, names: Sequence[str]) -> pa.RecordBatch | None:
        """These columns of a file, if they are whole."""
        try:
            batch = stored.columns(names)
        except (DamagedError, pa.ArrowException, KeyError, TypeError, ValueError):
            self._counters.add(DISK_CACHE_DAMAGED)
            return None
        self._counters.add(DISK_CACHE_HITS)
        return batch

    def _keep(self, name: str, about: Mapping[str, object], batch: pa.RecordBatch) -> None:
        if not self._directory.store(name, encode_batch(about, batch)):
            self._counters.add(DISK_CACHE_FAILURES)


def _is_wanted(name: str, metrics: Metrics) -> bool:
    """Whether a column is none of a metric, or that of a column whose metrics are wanted."""
    field, _, key = name.partition("/")
    return metrics is None or field not in MAPS or int(key) in metrics


def _name(*parts: str) -> str:
    return hashlib.sha256("\0".join((_FORMAT, *parts)).encode()).hexdigest()


def _only_here(location: str) -> bool:
    return location.startswith("memory:")
