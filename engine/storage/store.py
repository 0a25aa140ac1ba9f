"""The interface to storage.

A location is a string: an absolute path (``/a/b``), ``file:///a/b`` (or Hadoop's ``file:/a/b``), ``memory://a/b``,
``s3://bucket/key``. Tables keep locations exactly as they were written, so a store returns the spelling it was given.

Every implementation passes ``tests/contract/test_store.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from icebench.engine.errors import Contradiction, StorageFailed


class WriteUncertain(StorageFailed):
    """It is unknown whether a file was written: it may be there, appear later, or vanish in a power cut."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file of a listing; `modified_ms` is milliseconds since 1970 by the storage's own clock."""

    location: str
    size_bytes: int
    modified_ms: int


class InputFile(Protocol):
    """A seekable file, open for reading. pyarrow takes it wherever it takes a file object."""

    @property
    def closed(self) -> bool: ...

    def read(self, nbytes: int = -1, /) -> bytes: ...

    def seek(self, position: int, whence: int = 0, /) -> int: ...

    def tell(self) -> int: ...

    def size(self) -> int: ...

    def close(self) -> None: ...

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True


class OutputFile(Protocol):
    """A file being written, front to back. It becomes visible at `close`; `abort` leaves nothing.

    As a context manager it closes at the end, or aborts when an exception leaves the block.
    """

    @property
    def closed(self) -> bool: ...

    def write(self, data: bytes, /) -> int: ...

    def tell(self) -> int: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def flush(self) -> None:
        """Does nothing: bytes are durable only after `close`."""
        return

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class Store(Protocol):
    """Files by location. Thread-safe.

    Errors: `FileNotFound`, `AlreadyExists`, and `StorageFailed` for everything that the storage refused; never a bare
    OSError. `Invalid` for a location that is not this store's.
    """

    @property
    def creates_atomically(self) -> bool:
        """Whether exactly one of several calls of `write` for a location with ``overwrite=False`` succeeds."""
        ...

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes from `offset`; to the end, or at most `length` (fewer only at the end of the file)."""
        ...

    def size(self, location: str) -> int:
        """Length in bytes."""
        ...

    def exists(self, location: str) -> bool:
        """Whether a file (not a directory) is there."""
        ...

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        """Make the file, with all of `data` or not at all; missing directories are made.

        Raises:
            AlreadyExists: The file exists and `overwrite` is False.
            WriteUncertain: The file may be written, or be so later.
        """
        ...

    def delete(self, location: str) -> None:
        """Remove the file; raises FileNotFound when it is not there."""
        ...

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """List all files below the directory `prefix`, at any depth, ordered by location; none if it does not exist.

        Locations are spelled as `prefix` is. Temporary files that a killed writer left behind are listed too.
        """
        ...

    def open_input(self, location: str) -> InputFile:
        """Open a file for reading; raises FileNotFound at once."""
        ...

    def open_output(self, location: str, *, overwrite: bool = False) -> OutputFile:
        """Open a file for writing. AlreadyExists may be raised here or by `close`; an existing file is never
        replaced."""
        ...

    def physical(self, location: str) -> str:
        """The location under which other readers (Spark) find this file; differs only for relocated tables."""
        ...

    def report(self, contradiction: Contradiction) -> None:
        """Take note that a file contradicts the table's metadata, though its rows are certain: warns, unless the store
        was made to do otherwise; see `icebench.engine.storage.contradictions`."""
        ...
