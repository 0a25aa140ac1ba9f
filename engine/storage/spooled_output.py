"""A file that is uploaded when all of it is there."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol

from engine.storage.failures import translate_errors
from engine.storage.store import OutputFile

_SPOOL_BYTES = 64 << 20


class Uploads(Protocol):
    """A store that takes whole files."""

    def upload(self, location: str, data: IO[bytes]) -> None:
        """Make or replace a file, with all of `data` or not at all."""
        ...


class SpooledOutputFile(OutputFile):
    """Buffers bytes (in memory, beyond 64 MB in a temporary file) and uploads them at `close`.

    An upload that has begun cannot be abandoned by pyarrow, whose streams complete it when they are deleted.
    `store_now` returns the store to upload with, which may have newer credentials.
    """

    def __init__(self, location: str, store: Uploads) -> None:
        self._location = location
        self.store_now: Callable[[], Uploads] = lambda: store
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
