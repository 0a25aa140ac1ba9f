"""A store that counts requests and bytes, and delegates to another store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from engine.runtime.counters import (
    STORAGE_BYTES_READ,
    STORAGE_BYTES_WRITTEN,
    STORAGE_REQUESTS_DELETE,
    STORAGE_REQUESTS_HEAD,
    STORAGE_REQUESTS_LIST,
    STORAGE_REQUESTS_RANGE_READ,
    STORAGE_REQUESTS_READ,
    STORAGE_REQUESTS_WRITE,
)
from engine.storage.store import FileInfo, InputFile, OutputFile, Store


class Sink(Protocol):
    """Where counts go: `engine.runtime.counters.Counters`, for one."""

    def add(self, name: str, n: int = 1) -> None: ...


class CountingStore:
    """Counts requests by kind, and bytes. A request is counted when it is made, also when it fails.

    Kinds: ``read`` (a whole file), ``range_read`` (a part; each read call of an open file), ``write`` (a whole file,
    once, when it becomes visible), ``list``, ``delete``, ``head`` (size or existence, and opening for reading).
    """

    def __init__(self, inner: Store, counters: Sink) -> None:
        self._inner = inner
        self._counters = counters

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the wrapped store: counts of another process could not come back."""
        return _same, (self._inner,)

    @property
    def creates_atomically(self) -> bool:
        return self._inner.creates_atomically

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        self._counters.add(STORAGE_REQUESTS_READ if offset == 0 and length is None else STORAGE_REQUESTS_RANGE_READ)
        data = self._inner.read(location, offset, length)
        self._counters.add(STORAGE_BYTES_READ, len(data))
        return data

    def size(self, location: str) -> int:
        self._counters.add(STORAGE_REQUESTS_HEAD)
        return self._inner.size(location)

    def exists(self, location: str) -> bool:
        self._counters.add(STORAGE_REQUESTS_HEAD)
        return self._inner.exists(location)

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        self._counters.add(STORAGE_REQUESTS_WRITE)
        self._inner.write(location, data, overwrite=overwrite)
        self._counters.add(STORAGE_BYTES_WRITTEN, len(data))

    def delete(self, location: str) -> None:
        self._counters.add(STORAGE_REQUESTS_DELETE)
        self._inner.delete(location)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        self._counters.add(STORAGE_REQUESTS_LIST)
        return self._inner.list(prefix)

    def open_input(self, location: str) -> CountingInputFile:
        self._counters.add(STORAGE_REQUESTS_HEAD)
        return CountingInputFile(self._inner.open_input(location), self._counters)

    def open_output(self, location: str, *, overwrite: bool = False) -> CountingOutputFile:
        return CountingOutputFile(self._inner.open_output(location, overwrite=overwrite), self._counters)

    def physical(self, location: str) -> str:
        return self._inner.physical(location)


def _same(store: Store) -> Store:
    return store


class CountingInputFile:
    """Counts each read call as one ranged request."""

    def __init__(self, inner: InputFile, counters: Sink) -> None:
        self._inner = inner
        self._counters = counters

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def read(self, nbytes: int = -1, /) -> bytes:
        self._counters.add(STORAGE_REQUESTS_RANGE_READ)
        data = self._inner.read() if nbytes < 0 else self._inner.read(nbytes)
        self._counters.add(STORAGE_BYTES_READ, len(data))
        return data

    def seek(self, position: int, whence: int = 0, /) -> int:
        return self._inner.seek(position, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def size(self) -> int:
        return self._inner.size()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._inner.close()


class CountingOutputFile(OutputFile):
    """Counts one write, and its bytes, when the file becomes visible."""

    def __init__(self, inner: OutputFile, counters: Sink) -> None:
        self._inner = inner
        self._counters = counters

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def write(self, data: bytes, /) -> int:
        return self._inner.write(data)

    def tell(self) -> int:
        return self._inner.tell()

    def close(self) -> None:
        if self._inner.closed:
            return
        size = self._inner.tell()
        self._counters.add(STORAGE_REQUESTS_WRITE)
        self._inner.close()
        self._counters.add(STORAGE_BYTES_WRITTEN, size)

    def abort(self) -> None:
        self._inner.abort()
