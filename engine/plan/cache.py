"""A cache of decoded manifests and manifest lists, in memory up to a number of bytes and optionally on disk.

Manifests are immutable, so path and length identify their content. If several plans ask for a manifest at the same
time, one decodes it and the others wait. The least recently used entries are removed first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from icebench.engine.codec.array_views import ManifestColumns
from icebench.engine.errors import Invalid
from icebench.engine.plan.disk_cache import DiskCache
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.manifest import ManifestFile
from icebench.engine.storage.directory_cache import DirectoryCache

DEFAULT_LIMIT_BYTES = 256 << 20
DEFAULT_DISK_LIMIT_BYTES = 4 << 30

MEMORY_CACHE_HITS = "memory_cache_hits"
"""Counter: manifests and lists found in memory, including those that another plan was decoding."""
MEMORY_CACHE_MISSES = "memory_cache_misses"
"""Counter: manifests and lists not found in memory, or found without all wanted metrics."""

Key = tuple[str, int]
"""Location and length in bytes."""
Metrics = frozenset[int] | None
"""Ids of the columns whose metrics are decoded; None for all that occur."""


class Sized(Protocol):
    """An entry of the cache."""

    @property
    def size_bytes(self) -> int:
        """Its memory."""


@dataclass(frozen=True)
class _List:
    """A decoded manifest list."""

    manifests: tuple[ManifestFile, ...]

    @property
    def size_bytes(self) -> int:
        """Estimated memory of the objects."""
        return sum(600 + 250 * len(manifest.partitions or ()) for manifest in self.manifests)


@dataclass(frozen=True)
class _Entry:
    metrics: Metrics
    content: Future[Sized]


_Decode = Callable[[Metrics], Sized]


class ManifestCache:
    """Keeps decoded manifests and manifest lists. Safe to share between threads, scans, tables and catalogs.

    Args:
        limit_bytes: Maximum bytes to keep in memory; 0 keeps nothing.
        directory: A local directory for decoded manifests, which other processes open without reading, inflating and
            decoding them again; see `icebench.engine.plan.disk_cache`. None keeps nothing on disk.
        disk_limit_bytes: Maximum bytes to keep there.

    Attributes:
        counters: Hits and misses, in memory and on disk.

    Raises:
        Invalid: A limit below zero.
        StorageFailed: The directory cannot be created or written.
    """

    def __init__(
        self,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        *,
        directory: str | None = None,
        disk_limit_bytes: int = DEFAULT_DISK_LIMIT_BYTES,
    ) -> None:
        if limit_bytes < 0:
            raise Invalid(f"a cache cannot be limited to {limit_bytes} bytes")
        self.counters = Counters({MEMORY_CACHE_HITS: 0, MEMORY_CACHE_MISSES: 0})
        self._disk = None
        if directory is not None:
            self._disk = DiskCache(DirectoryCache(directory, limit_bytes=disk_limit_bytes), self.counters)
        self._limit_bytes = limit_bytes
        self._lock = Lock()
        self._entries: OrderedDict[tuple[str, int | str], _Entry] = OrderedDict()
        self._size_bytes = 0

    @property
    def has_disk(self) -> bool:
        """Whether decoded manifests are kept on disk, too."""
        return self._disk is not None

    @property
    def size_bytes(self) -> int:
        """Memory of all entries, including those mapped from disk."""
        with self._lock:
            return self._size_bytes

    def get(self, key: Key, metrics: Metrics, decode: Callable[[Metrics], ManifestColumns]) -> ManifestColumns:
        """The manifest's columns with at least these metrics.

        On a miss, one thread calls `decode` with the wanted metrics and those of the entry it replaces. Its exception
        is raised in all waiting threads, and not kept.
        """
        disk = self._disk
        found = self._get(key, metrics, decode if disk is None else lambda wanted: disk.columns(key, wanted, decode))
        assert isinstance(found, ManifestColumns)
        return found

    def lacks(self, key: Key, metrics: Metrics) -> bool:
        """Whether `get` would decode the manifest, rather than find it in memory."""
        with self._lock:
            entry = self._entries.get(key)
            return entry is None or not _covers(entry.metrics, metrics)

    def manifest_list(
        self,
        location: str,
        identity: str,
        read: Callable[[], bytes],
        decode: Callable[[bytes], tuple[ManifestFile, ...]],
    ) -> tuple[ManifestFile, ...]:
        """A snapshot's manifests; as `get`.

        Args:
            location: The manifest list.
            identity: Identifies the snapshot, since the length of its list is not recorded.
            read: Reads the list.
            decode: Decodes it.
        """

        def made(_: Metrics) -> _List:
            return _List(decode(read() if self._disk is None else self._disk.manifest_list(location, identity, read)))

        found = self._get((location, identity), frozenset(), made)
        assert isinstance(found, _List)
        return found.manifests

    def other(self, location: str, identity: str, load: Callable[[], Sized]) -> Sized:
        """Anything else derived from part of an immutable file; as `get`.

        Args:
            location: The file.
            identity: Identifies the version of the file and the part.
            load: Loads it.
        """
        return self._get((location, identity), frozenset(), lambda _: load())

    def _get(self, key: tuple[str, int | str], metrics: Metrics, decode: _Decode) -> Sized:
        with self._lock:
            entry = self._entries.get(key)
            mine = entry is None or not _covers(entry.metrics, metrics)
            if entry is None or mine:
                wanted = metrics if entry is None else _union(metrics, entry.metrics)
                self._forget(key)
                entry = self._entries[key] = _Entry(wanted, Future())
            self._entries.move_to_end(key)
        self.counters.add(MEMORY_CACHE_MISSES if mine else MEMORY_CACHE_HITS)
        return self._fill(key, entry, decode) if mine else entry.content.result()

    def _fill(self, key: tuple[str, int | str], entry: _Entry, decode: _Decode) -> Sized:
        try:
            content = decode(entry.metrics)
        except BaseException as error:
            with self._lock:
                if self._entries.get(key) is entry:
                    del self._entries[key]
            entry.content.set_exception(error)
            raise
        with self._lock:
            entry.content.set_result(content)
            if self._entries.get(key) is entry:  # no newer decoding took its place
                self._size_bytes += content.size_bytes
                self._shrink()
        return content

    def _forget(self, key: tuple[str, int | str]) -> None:
        old = self._entries.pop(key, None)
        if old is not None and _is_kept(old):
            self._size_bytes -= old.content.result().size_bytes

    def _shrink(self) -> None:
        while self._size_bytes > self._limit_bytes:
            oldest = next((key for key, entry in self._entries.items() if _is_kept(entry)), None)
            if oldest is None:
                return
            self._forget(oldest)


def _covers(known: Metrics, wanted: Metrics) -> bool:
    return known is None or (wanted is not None and wanted <= known)


def _union(a: Metrics, b: Metrics) -> Metrics:
    return None if a is None or b is None else a | b


def _is_kept(entry: _Entry) -> bool:
    """Whether its size is included in the total."""
    return entry.content.done() and entry.content.exception() is None
