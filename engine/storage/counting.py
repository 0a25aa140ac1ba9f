"""A store that counts requests and bytes, and delegates to another store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from icebench.engine.errors import Contradiction
from icebench.engine.runtime.counters import (
    METADATA_CONTRADICTIONS,
    STORAGE_BYTES_READ,
    STORAGE_BYTES_WRITTEN,
    STORAGE_REQUESTS_DELETE,
    STORAGE_REQUESTS_HEAD,
    STORAGE_REQUESTS_LIST,
    STORAGE_REQUESTS_RANGE_READ,
    STORAGE_REQUESTS_READ,
    STORAGE_REQUESTS_WRITE,
)
from icebench.engine.storage.forwarding import ForwardingInputFile, ForwardingStore
from icebench.engine.storage.store import FileInfo, InputFile, OutputFile, Store


class Sink(Protocol):
    """Where counts go: `icebench.engine.runtime.counters.Counters`, for one."""

    def add(self, name: str, n: int = 1) -> None: ...


class CountingStore(ForwardingStore):
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
        data = super().read(location, offset, length)
        self._counters.add(STORAGE_BYTES_READ, len(data))
        return data

    def size(self, location: str) -> int:
        self._counters.add(STORAGE_REQUESTS_HEAD)
        return super().size(location)

    def exists(self, location: str) -> bool:
        self._counters.add(STORAGE_REQUESTS_HEAD)
        return super().exists(location)

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        self._counters.add(STORAGE_REQUESTS_WRITE)
        super().write(location, data, overwrite=overwrite)
        self._counters.add(STORAGE_BYTES_WRITTEN, len(data))

    def delete(self, location: str) -> None:
        self._counters.add(STORAGE_REQUESTS_DELETE)
        super().delete(location)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        self._counters.add(STORAGE_REQUESTS_LIST)
        return super().list(prefix)

    def open_input(self, location: str) -> CountingInputFile:
        self._counters.add(STORAGE_REQUESTS_HEAD)
        return CountingInputFile(super().open_input(location), self._counters)

    def open_output(self, location: str, *, overwrite: bool = False) -> CountingOutputFile:
        return CountingOutputFile(super().open_output(location, overwrite=overwrite), self._counters)

    def report(self, contradiction: Contradiction) -> None:
        self._counters.add(METADATA_CONTRADICTIONS)
        super().report(contradiction)

    def _at(self, location: str) -> tuple[Store, str]:
        return self._inner, location


def _same(store: Store) -> Store:
    return store


class CountingInputFile(ForwardingInputFile):
    """Counts each read call as one ranged request."""

    def __init__(self, inner: InputFile, counters: Sink) -> None:
        super().__init__(inner)
        self._counters = counters

    def read(self, nbytes: int = -1, /) -> bytes:
        self._counters.add(STORAGE_REQUESTS_RANGE_READ)
        data = super().read(nbytes)
        self._counters.add(STORAGE_BYTES_READ, len(data))
        return data


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
