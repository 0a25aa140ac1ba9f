"""Stores and files that pass calls on to others: what counts, relocates or renews adds to some of the calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from icebench.engine.errors import Contradiction
from icebench.engine.storage.store import FileInfo, InputFile, OutputFile, Store


class ForwardingStore(ABC):
    """Passes each call on to the store that `_at` names."""

    @abstractmethod
    def _at(self, location: str) -> tuple[Store, str]:
        """The store of a location, and the location in it."""

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        store, there = self._at(location)
        return store.read(there, offset, length)

    def size(self, location: str) -> int:
        store, there = self._at(location)
        return store.size(there)

    def exists(self, location: str) -> bool:
        store, there = self._at(location)
        return store.exists(there)

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        store, there = self._at(location)
        store.write(there, data, overwrite=overwrite)

    def delete(self, location: str) -> None:
        store, there = self._at(location)
        store.delete(there)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        store, there = self._at(prefix)
        return store.list(there)

    def open_input(self, location: str) -> InputFile:
        store, there = self._at(location)
        return store.open_input(there)

    def open_output(self, location: str, *, overwrite: bool = False) -> OutputFile:
        store, there = self._at(location)
        return store.open_output(there, overwrite=overwrite)

    def physical(self, location: str) -> str:
        store, there = self._at(location)
        return store.physical(there)

    def report(self, contradiction: Contradiction) -> None:
        self._at(contradiction.location)[0].report(contradiction)


class ForwardingInputFile(InputFile):
    """Passes each call on to a file."""

    def __init__(self, inner: InputFile) -> None:
        self._inner = inner

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def read(self, nbytes: int = -1, /) -> bytes:
        return self._inner.read() if nbytes < 0 else self._inner.read(nbytes)

    def seek(self, position: int, whence: int = 0, /) -> int:
        return self._inner.seek(position, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def size(self) -> int:
        return self._inner.size()

    def close(self) -> None:
        self._inner.close()
