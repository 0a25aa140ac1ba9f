"""The bytes of column chunks, fetched by few requests, and shown to pyarrow as if they were the file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pyarrow as pa

Span: TypeAlias = tuple[int, int]
"""(offset in the file, size in bytes)."""

_HOLE_BYTES = 8 << 10
_REQUEST_BYTES = 32 << 20
"""As pyarrow's own pre-buffering: spans that lie this near are fetched by one request, if it is no larger than that."""
_REQUESTS_AT_ONCE = 8


def joined(spans: Sequence[Span]) -> list[Span]:
    """The requests that fetch all spans."""
    found: list[Span] = []
    for start, size in sorted(spans):
        if found:
            first, length = found[-1]
            end = max(first + length, start + size)
            if start <= first + length + _HOLE_BYTES and end - first <= _REQUEST_BYTES:
                found[-1] = first, end - first
                continue
        found.append((start, size))
    return found


class FetchedBytes:
    """Parts of a file in memory.

    Args:
        parts: The bytes by their offset.
    """

    def __init__(self, parts: Mapping[int, bytes]) -> None:
        self._parts = sorted((start, memoryview(data)) for start, data in parts.items())

    def span(self, offset: int, size: int) -> memoryview:
        """A span that was fetched; raises OSError where it was not, or where the file ends before it does."""
        if size == 0:
            return memoryview(b"")
        for start, data in self._parts:
            if start <= offset and offset + size <= start + len(data):
                return data[offset - start : offset - start + size]
        raise OSError(f"{size} bytes at {offset} are not in the file")


def fetch(file: pa.NativeFile, spans: Sequence[Span]) -> FetchedBytes:
    """Read spans of a file whose `read_at` may be called by several threads."""
    requests = joined([span for span in spans if span[1]])
    # pyarrow's files in an object store are of no class of their own; there round trips take long, one by one.
    if len(requests) < 2 or type(file) is not pa.NativeFile:
        return FetchedBytes({start: file.read_at(size, start) for start, size in requests})
    with ThreadPoolExecutor(min(len(requests), _REQUESTS_AT_ONCE), thread_name_prefix="icebench-fetch") as pool:
        parts = pool.map(lambda span: file.read_at(span[1], span[0]), requests)
        return FetchedBytes({start: data for (start, _), data in zip(requests, parts, strict=True)})


class Window(io.RawIOBase):
    """A file of which only what was fetched can be read; for one of pyarrow's readers, and one thread.

    Args:
        size_bytes: Of the whole file.

    Attributes:
        fetched: What can be read.
    """

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self.fetched = FetchedBytes({})
        self._size = size_bytes
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._position

    def seek(self, position: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + position
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        return bytes(self.read_buffer(size))

    def read_buffer(self, size: int = -1, /) -> memoryview:
        """The same without a copy; pyarrow asks for it."""
        wanted = self._size - self._position if size < 0 else min(size, self._size - self._position)
        found = self.fetched.span(self._position, wanted)
        self._position += wanted
        return found
