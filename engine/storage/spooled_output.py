"""Stores that take whole files only, and a file that is uploaded when all of it is there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO

from icebench.engine.errors import AlreadyExists, Contradiction
from icebench.engine.storage.contradictions import warn
from icebench.engine.storage.failures import translate_errors
from icebench.engine.storage.store import OutputFile

_FILE_BYTES = 64 << 20
"""In memory, of one file."""
_PROCESS_BYTES = 256 << 20
"""In memory, of all open files of the process: a partitioned write has up to 200."""


class UploadingStore(ABC):
    """A store that takes whole files and has no conditional put.

    ``overwrite=False`` checks for the file and then writes, which is enough for files named by random ids but not for a
    commit. `creates_atomically` is therefore False.
    """

    @property
    def creates_atomically(self) -> bool:
        return False

    @abstractmethod
    def exists(self, location: str) -> bool:
        """As `icebench.engine.storage.store.Store.exists`; raises Invalid for a location that is not this store's."""

    @abstractmethod
    def upload(self, location: str, data: IO[bytes]) -> None:
        """Make or replace a file, with all of `data` or not at all."""

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        with self.open_output(location, overwrite=overwrite) as output:
            output.write(data)

    def open_output(self, location: str, *, overwrite: bool = False) -> SpooledOutputFile:
        if not overwrite and self.exists(location):
            raise AlreadyExists(f"{location} exists already")
        return SpooledOutputFile(location, self)

    def physical(self, location: str) -> str:
        return location

    def report(self, contradiction: Contradiction) -> None:
        warn(contradiction)


class _Memory:
    """Counts what open files have in memory. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._used_bytes = 0

    def reserve(self, size_bytes: int) -> bool:
        """Whether that many more bytes were left."""
        with self._lock:
            if self._used_bytes + size_bytes > _PROCESS_BYTES:
                return False
            self._used_bytes += size_bytes
            return True

    def release(self, size_bytes: int) -> None:
        with self._lock:
            self._used_bytes -= size_bytes


_MEMORY = _Memory()


class SpooledOutputFile(OutputFile):
    """Buffers bytes and uploads them at `close`: in memory, or in a temporary file once this file has more than 64 MB
    or all open files more than 256 MB in memory.

    An upload that has begun cannot be abandoned by pyarrow, whose streams complete it when they are deleted.
    `store_now` returns the store to upload with, which may have newer credentials.
    """

    def __init__(self, location: str, store: UploadingStore) -> None:
        self._location = location
        self.store_now: Callable[[], UploadingStore] = lambda: store
        self._size = 0
        self._reserved_bytes = 0
        self._is_in_memory = True
        self._spool = SpooledTemporaryFile()  # noqa: SIM115 - closed by close() or abort()

    @property
    def closed(self) -> bool:
        return self._spool.closed

    def write(self, data: bytes, /) -> int:
        size = memoryview(data).nbytes
        with translate_errors("write", self._location):
            if self._is_in_memory:
                self._reserve(size)
            written = self._spool.write(data)
        self._size += written
        return written

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        if self._spool.closed:
            return
        try:
            with translate_errors("write", self._location), self._spool as spool:
                spool.seek(0)
                self.store_now().upload(self._location, spool)
        finally:
            self._release()

    def abort(self) -> None:
        self._spool.close()
        self._release()

    def _reserve(self, size: int) -> None:
        """Reserve memory for more bytes, or move the file to the disk."""
        if self._size + size <= _FILE_BYTES and _MEMORY.reserve(size):
            self._reserved_bytes += size
            return
        self._is_in_memory = False
        self._spool.rollover()
        self._release()

    def _release(self) -> None:
        released, self._reserved_bytes = self._reserved_bytes, 0
        _MEMORY.release(released)
