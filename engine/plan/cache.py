"""Decoded manifests in memory, bounded by bytes.

Manifests are immutable, so a path and a length name their content for ever. Several plans may ask for one at the same
time; it is decoded once and the others wait. What is kept is the least recently used first to go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock

from engine.codec.columns import ManifestColumns
from engine.errors import Invalid

DEFAULT_LIMIT_BYTES = 256 << 20

Key = tuple[str, int]
"""Location and length in bytes."""
Metrics = frozenset[int] | None
"""Ids of the columns whose metrics are decoded; None for all that occur."""


@dataclass(frozen=True)
class _Entry:
    metrics: Metrics
    columns: Future[ManifestColumns]


class ManifestCache:
    """Keeps `ManifestColumns` up to `limit_bytes` in all; 0 keeps nothing. Safe to share between threads and scans."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        if limit_bytes < 0:
            raise Invalid(f"a cache cannot be limited to {limit_bytes} bytes")
        self._limit_bytes = limit_bytes
        self._lock = Lock()
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Memory held by what is kept."""
        with self._lock:
            return self._size_bytes

    def get(self, key: Key, metrics: Metrics, decode: Callable[[Metrics], ManifestColumns]) -> ManifestColumns:
        """The manifest's columns with at least these metrics.

        `decode` is called, by one thread, if they are not there; it gets all metrics that are worth decoding, those of
        an earlier entry included. Its exception goes to everyone who waits, and is not kept.
        """
        with self._lock:
            entry = self._entries.get(key)
            mine = entry is None or not _covers(entry.metrics, metrics)
            if entry is None or mine:
                wanted = metrics if entry is None else _union(metrics, entry.metrics)
                self._forget(key)
                entry = self._entries[key] = _Entry(wanted, Future())
            self._entries.move_to_end(key)
        return self._fill(key, entry, decode) if mine else entry.columns.result()

    def _fill(self, key: Key, entry: _Entry, decode: Callable[[Metrics], ManifestColumns]) -> ManifestColumns:
        try:
            columns = decode(entry.metrics)
        except BaseException as error:
            with self._lock:
                if self._entries.get(key) is entry:
                    del self._entries[key]
            entry.columns.set_exception(error)
            raise
        with self._lock:
            entry.columns.set_result(columns)
            if self._entries.get(key) is entry:  # no newer decoding took its place
                self._size_bytes += columns.size_bytes
                self._shrink()
        return columns

    def _forget(self, key: Key) -> None:
        old = self._entries.pop(key, None)
        if old is not None and _is_kept(old):
            self._size_bytes -= old.columns.result().size_bytes

    def _shrink(self) -> None:
        for key in list(self._entries):
            if self._size_bytes <= self._limit_bytes:
                return
            if _is_kept(self._entries[key]):
                self._forget(key)


def _covers(known: Metrics, wanted: Metrics) -> bool:
    return known is None or (wanted is not None and wanted <= known)


def _union(a: Metrics, b: Metrics) -> Metrics:
    return None if a is None or b is None else a | b


def _is_kept(entry: _Entry) -> bool:
    """Whether its size is counted."""
    return entry.columns.done() and entry.columns.exception() is None
