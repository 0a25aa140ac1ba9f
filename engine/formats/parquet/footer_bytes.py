"""Reads the bytes of a Parquet file's footer."""

from __future__ import annotations

import pyarrow as pa

_TAIL_BYTES = 64 << 10
"""Bytes fetched from the end of a file first, as pyarrow does."""
MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
MARK_BYTES = 8
"""Length and magic after the footer."""


def footer_bytes(file: pa.NativeFile, size_bytes: int) -> bytes | None:
    """Read the footer of a Parquet file, without length and magic, by one request if it is small.

    Returns None if it cannot be found; pyarrow then reports why.
    """
    tail = file.read_at(min(_TAIL_BYTES, size_bytes), max(0, size_bytes - _TAIL_BYTES))
    if len(tail) < MARK_BYTES or not tail.endswith(MAGIC):
        return None
    length = int.from_bytes(tail[-MARK_BYTES : -len(MAGIC)], "little")
    start = size_bytes - MARK_BYTES - length
    if start < 0:
        return None
    if length + MARK_BYTES > len(tail):
        tail = file.read_at(size_bytes - len(tail) - start, start) + tail
    return tail[-MARK_BYTES - length : -MARK_BYTES]


def has_encrypted_footer(file: pa.NativeFile, size_bytes: int) -> bool:
    """Whether the magic at the end says so (Parquet: "Encrypted Footer Mode")."""
    return bool(file.read_at(len(_ENCRYPTED), max(0, size_bytes - len(_ENCRYPTED))) == _ENCRYPTED)


def footer_file(footer: bytes) -> pa.BufferReader:
    """A Parquet file that consists of a footer only, for pyarrow to read it from."""
    return pa.BufferReader(MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC)
