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
_TAIL_BYTES = 64 << 10
"""What is fetched of a file to begin with, as pyarrow does."""
_MAGIC = b"PAR1"
_MARK_BYTES = 8
"""After the footer: its length and the magic."""


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


def footer_bytes(file: pa.NativeFile, size_bytes: int) -> bytes | None:
    """The footer of a Parquet file, without what surrounds it, by one request if it is not large.

    None where there is none that could be read; then pyarrow may say why.
    """
    tail = file.read_at(min(_TAIL_BYTES, size_bytes), max(0, size_bytes - _TAIL_BYTES))
    if len(tail) < _MARK_BYTES or not tail.endswith(_MAGIC):
        return None
    length = int.from_bytes(tail[-_MARK_BYTES : -len(_MAGIC)], "little")
    start = size_bytes - _MARK_BYTES - length
    if start < 0:
        return None
    if length + _MARK_BYTES > len(tail):
        tail = file.read_at(size_bytes - len(tail) - start, start) + tail
    return tail[-_MARK_BYTES - length : -_MARK_BYTES]


def footer_file(footer: bytes) -> pa.BufferReader:
    """A Parquet file of nothing but a footer, for pyarrow to read that from."""
    return pa.BufferReader(_MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC)


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
