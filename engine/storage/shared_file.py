"""Input files that threads share."""

from __future__ import annotations

import os
from threading import Lock, local

from icebench.engine.storage.forwarding import ForwardingInputFile
from icebench.engine.storage.store import InputFile


class SharedInputFile(ForwardingInputFile):
    """A file in which each thread has a position of its own.

    pyarrow locks a Python file for a read at a position, but asks for its size by seeking to the end and back without
    the lock: a reader that is opened in one thread would move the position of a read in another, which then returns
    bytes of another place.

    Args:
        inner: The file; nothing else uses it.
    """

    def __init__(self, inner: InputFile) -> None:
        super().__init__(inner)
        self._size = inner.size()
        self._reading = Lock()
        self._own = local()

    def read(self, nbytes: int = -1, /) -> bytes:
        position = self.tell()
        with self._reading:
            self._inner.seek(position)
            data = super().read(nbytes)
        self._own.position = position + len(data)
        return data

    def seek(self, position: int, whence: int = 0, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size}[whence]
        self._own.position = start + position
        return start + position

    def tell(self) -> int:
        found: int = getattr(self._own, "position", 0)
        return found

    def size(self) -> int:
        return self._size
