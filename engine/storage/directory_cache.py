"""A local directory that keeps bytes between processes, up to a limit. Its content can always be computed again.

Files appear whole, by renaming, so processes may share the directory. Files are never changed, only replaced or
removed: a process that has mapped one keeps its content. The least recently used files are removed first; `load` sets
the time of a file.
"""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pyarrow as pa

from icebench.engine.errors import Invalid
from icebench.engine.storage.failures import translate_errors

_SUFFIX = ".cache"
_TEMPORARY = ".tmp"
_ABANDONED_SECONDS = 3600
"""Older temporary files belong to processes that ended."""
_COUNT_ANEW = 256
"""After this many files, those that other processes have added are counted, too."""
_KEPT = 0.9
"""Of the limit, in a full directory: the next files find room without another listing."""


@dataclass(frozen=True)
class CacheSize:
    """Size of a directory at the last listing, and bytes stored since."""

    size_bytes: int
    stores: int


class DirectoryCache:
    """A bounded directory of named bytes. Safe among threads and processes.

    Args:
        directory: A local path, made if it is not there. Who can write to it can change what is read from it.
        limit_bytes: The most bytes to keep. Files of other processes are counted only now and then.
        new_id: Makes the unique part of temporary names.
        now: The clock, in seconds since 1970.

    Raises:
        Invalid: A limit below zero.
        StorageFailed: The directory cannot be made or written.
    """

    def __init__(
        self,
        directory: str,
        *,
        limit_bytes: int,
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
        now: Callable[[], float] = time.time,
    ) -> None:
        if limit_bytes < 0:
            raise Invalid(f"a cache cannot be limited to {limit_bytes} bytes")
        self._root = Path(directory).absolute()
        self._limit_bytes = limit_bytes
        self._new_id = new_id
        self._now = now
        self._lock = Lock()
        with translate_errors("write", str(self._root)):
            try:
                self._root.mkdir(parents=True, exist_ok=True)
            except FileExistsError as error:
                raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(self._root)) from error
            probe = self._temporary()
            probe.touch()
            probe.unlink()
        self._size = CacheSize(self._shrunk(), 0)

    def load(self, name: str) -> pa.Buffer | None:
        """Map the bytes of that name into memory; None if they are missing or cannot be read."""
        path = self._path(name)
        try:
            with pa.memory_map(str(path), "r") as file:
                found: pa.Buffer = file.read_buffer()
            now = self._now()
            os.utime(path, (now, now))
        except (OSError, pa.ArrowException):
            return None
        return found

    def store(self, name: str, data: bytes | memoryview | pa.Buffer) -> bool:
        """Store bytes, replacing those of that name; returns whether they could be stored."""
        size = len(memoryview(data))
        if size > self._limit_bytes:
            return False
        temporary = self._temporary()
        try:
            temporary.write_bytes(memoryview(data))
            temporary.replace(self._path(name))
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            return False
        with self._lock:
            self._size = CacheSize(self._size.size_bytes + size, self._size.stores + 1)
            if self._size.size_bytes > self._limit_bytes or self._size.stores >= _COUNT_ANEW:
                self._size = CacheSize(self._shrunk(), 0)
        return True

    def discard(self, name: str) -> None:
        """Remove the bytes of that name, if they exist."""
        with suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._root / (name + _SUFFIX)

    def _temporary(self) -> Path:
        return self._root / (self._new_id().hex + _TEMPORARY)

    def _shrunk(self) -> int:
        """Remove abandoned files, and where the rest is beyond the limit, the oldest; returns the bytes that remain."""
        kept: list[tuple[float, int, str]] = []
        with suppress(OSError), os.scandir(self._root) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat()
                    if entry.name.endswith(_SUFFIX):
                        kept.append((status.st_mtime, status.st_size, entry.path))
                    elif entry.name.endswith(_TEMPORARY) and status.st_mtime < self._now() - _ABANDONED_SECONDS:
                        Path(entry.path).unlink()
        kept.sort()
        total = sum(size for _, size, _ in kept)
        if total <= self._limit_bytes:
            return total
        # The newest file stays, however large, if it is within the limit.
        enough = min(max(int(self._limit_bytes * _KEPT), kept[-1][1]), self._limit_bytes)
        for _, size, path in kept:
            if total <= enough:
                break
            with suppress(OSError):
                Path(path).unlink()
                total -= size
        return total
