"""Files in a dictionary: for tests, and for tables that do not outlive the process."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from threading import Lock

from icebench.engine.errors import AlreadyExists, Contradiction, FileNotFound, Invalid, StorageFailed, Unsupported
from icebench.engine.storage.contradictions import warn
from icebench.engine.storage.store import FileInfo, OutputFile, Store

_SCHEME = "memory://"


class MemoryStore:
    """Locations ``memory://...``. `now_ms` dates the files."""

    def __init__(self, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._now_ms = now_ms
        self._lock = Lock()
        self._files: dict[str, tuple[bytes, int]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        raise Unsupported("a store in memory is of this process alone; other processes can not use it")

    @property
    def creates_atomically(self) -> bool:
        return True

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        data = self._data(location)
        return data[offset : None if length is None else offset + length]

    def size(self, location: str) -> int:
        return len(self._data(location))

    def exists(self, location: str) -> bool:
        key = _check(location)
        with self._lock:
            return key in self._files

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        key = _check(location)
        with self._lock:
            if not overwrite and key in self._files:
                raise AlreadyExists(f"{location} exists already")
            self._files[key] = (bytes(data), self._now_ms())

    def delete(self, location: str) -> None:
        key = _check(location)
        with self._lock:
            if self._files.pop(key, None) is None:
                raise FileNotFound(location)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        directory = _check(prefix).rstrip("/") + "/"
        with self._lock:
            found = sorted((k, v) for k, v in self._files.items() if k.startswith(directory) or directory == _SCHEME)
        for location, (data, modified_ms) in found:
            yield FileInfo(location, len(data), modified_ms)

    def open_input(self, location: str) -> MemoryInputFile:
        return MemoryInputFile(self._data(location))

    def open_output(self, location: str, *, overwrite: bool = False) -> MemoryOutputFile:
        if not overwrite and self.exists(location):
            raise AlreadyExists(f"{location} exists already")
        return MemoryOutputFile(self, location, overwrite=overwrite)

    def physical(self, location: str) -> str:
        return location

    def report(self, contradiction: Contradiction) -> None:
        warn(contradiction)

    def _data(self, location: str) -> bytes:
        key = _check(location)
        with self._lock:
            found = self._files.get(key)
        if found is None:
            raise FileNotFound(location)
        return found[0]


def _check(location: str) -> str:
    if not location.startswith(_SCHEME):
        raise Invalid(f"{location!r} is not a location of the memory store ({_SCHEME}...)")
    return location


class MemoryInputFile(io.BytesIO):
    """A file's bytes, for reading."""

    def size(self) -> int:
        """Length in bytes."""
        return self.getbuffer().nbytes


class MemoryOutputFile(OutputFile):
    """Bytes that become a file of a store at `close`."""

    def __init__(self, store: Store, location: str, *, overwrite: bool) -> None:
        self._store = store
        self._location = location
        self._overwrite = overwrite
        self._buffer = io.BytesIO()

    @property
    def closed(self) -> bool:
        return self._buffer.closed

    def write(self, data: bytes, /) -> int:
        if self.closed:
            raise StorageFailed(f"cannot write {self._location}: it is closed")
        return self._buffer.write(data)

    def tell(self) -> int:
        return self._buffer.tell()

    def close(self) -> None:
        """Make the file visible; raises AlreadyExists. A second call does nothing."""
        if not self.closed:
            with self._buffer as buffer:
                self._store.write(self._location, buffer.getvalue(), overwrite=self._overwrite)

    def abort(self) -> None:
        """Discard everything written; does nothing after `close`."""
        self._buffer.close()
