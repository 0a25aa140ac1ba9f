"""Stores that take whole files only, and a file that is uploaded when all of it is there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from tempfile import SpooledTemporaryFile
from typing import IO

from icebench.engine.errors import AlreadyExists, Contradiction
from icebench.engine.storage.contradictions import warn
from icebench.engine.storage.failures import translate_errors
from icebench.engine.storage.store import OutputFile

_SPOOL_BYTES = 64 << 20


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


class SpooledOutputFile(OutputFile):
    """Buffers bytes (in memory, beyond 64 MB in a temporary file) and uploads them at `close`.

    An upload that has begun cannot be abandoned by pyarrow, whose streams complete it when they are deleted.
    `store_now` returns the store to upload with, which may have newer credentials.
    """

    def __init__(self, location: str, store: UploadingStore) -> None:
        self._location = location
        self.store_now: Callable[[], UploadingStore] = lambda: store
        self._size = 0
        self._spool = SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 - closed by close() or abort()

    @property
    def closed(self) -> bool:
        return self._spool.closed

    def write(self, data: bytes, /) -> int:
        with translate_errors("write", self._location):
            written = self._spool.write(data)
        self._size += written
        return written

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        if self._spool.closed:
            return
        with translate_errors("write", self._location), self._spool as spool:
            spool.seek(0)
            self.store_now().upload(self._location, spool)

    def abort(self) -> None:
        self._spool.close()
