"""Compression of Parquet pages (Parquet: "Compression"), into as many bytes as the page header says and no more.

All codecs let go of the GIL.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, TypeAlias

import cramjam
import deflate
import numpy as np
import zstandard

Bytes: TypeAlias = Any
"""Anything with the buffer protocol."""
Inflate: TypeAlias = Callable[[Bytes, int], Bytes]
"""(compressed bytes, size) -> as many inflated bytes; raises BadPageError."""

_GZIP_WINDOW = 31


class BadPageError(Exception):
    """The page is not what its header says; the caller knows which it is."""


def inflater(codec: str) -> Inflate | None:
    """The function for the codec of a column chunk; not to be shared by threads. None where there is none here."""
    match codec:
        case "UNCOMPRESSED":
            return _stored
        case "SNAPPY":
            return _snappy
        case "GZIP":
            return _gzip
        case "LZ4_RAW":
            return _lz4
        case "ZSTD":
            return _zstd()
    return None


def _stored(page: Bytes, size: int) -> Bytes:
    if len(page) != size:
        raise BadPageError(f"an uncompressed page has {len(page)} bytes, and its header says {size}")
    return page


def _snappy(page: Bytes, size: int) -> Bytes:
    made = np.empty(size, np.uint8)
    try:
        found = cramjam.snappy.decompress_raw_len(page)
        if found == size:
            found = cramjam.snappy.decompress_raw_into(page, made.data)
    except cramjam.DecompressionError as error:
        raise BadPageError(f"not valid snappy: {error}") from error
    return _checked(made, found, size)


def _lz4(page: Bytes, size: int) -> Bytes:
    made = np.empty(size, np.uint8)
    try:
        found = cramjam.lz4.decompress_block_into(page, made.data, output_len=size)
    except cramjam.DecompressionError as error:
        raise BadPageError(f"not valid lz4: {error}") from error
    return _checked(made, found, size)


def _gzip(page: Bytes, size: int) -> Bytes:
    try:
        made = deflate.gzip_decompress(page, size)
    except (deflate.DeflateError, ValueError) as error:
        raise BadPageError(f"not valid gzip: {error}") from error
    return made if len(made) == size else _gzip_members(page, size)


def _gzip_members(page: Bytes, size: int) -> Bytes:
    """Several gzip files, one after the other."""
    made, rest = bytearray(), bytes(page)
    while rest and len(made) < size:
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            made += member.decompress(rest, size - len(made) + 1)
        except zlib.error as error:
            raise BadPageError(f"not valid gzip: {error}") from error
        if not member.eof:
            break
        rest = member.unused_data
    return _checked(made, len(made), size)


def _zstd() -> Inflate:
    decompressor = zstandard.ZstdDecompressor()

    def inflate(page: Bytes, size: int) -> Bytes:
        try:
            # Below zero: the frame does not tell.
            found = zstandard.frame_content_size(page)
            if found in (size, -1):
                made = decompressor.decompress(page, max_output_size=size, allow_extra_data=False)
                return _checked(made, len(made), size)
        except zstandard.ZstdError as error:
            raise BadPageError(f"not valid zstandard: {error}") from error
        raise BadPageError(f"a page inflates to {found} bytes, and its header says {size}")

    return inflate


def _checked(made: Bytes, found: int, size: int) -> Bytes:
    if found != size:
        raise BadPageError(f"a page inflates to {found} bytes, and its header says {size}")
    return made
