"""The bytes of a Parquet file's footer."""

from __future__ import annotations

import pyarrow as pa

_TAIL_BYTES = 64 << 10
"""What is fetched of a file to begin with, as pyarrow does."""
_MAGIC = b"PAR1"
_MARK_BYTES = 8
"""After the footer: its length and the magic."""


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
