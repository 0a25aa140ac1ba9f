"""Checks the footers of an ORC file before the library reads it (ORC specification: "File Tail").

The library creates objects for all that a footer lists, a hundred bytes for every two, and follows its tree of types to
any depth, even in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cramjam
import numpy as np

from icebench.engine.codec.block_codecs import BadBlockError, Inflater, OversizedBlockError, inflate_zstandard
from icebench.engine.codec.budget import budget_of, too_large
from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.formats.orc.tail import fields_of, varint
from icebench.engine.spec.types import MAX_DEPTH

_PS_FOOTER_LENGTH, _PS_COMPRESSION, _PS_STATISTICS_LENGTH = 1, 2, 5
_FOOTER_TYPES, _TYPE_SUBTYPES = 4, 2
_CHUNK_HEADER = 3
_OBJECTS = 192
"""Memory of the library's objects for each byte of footer, at most."""


def _snappy(block: memoryview, limit: int) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(block) > limit:
            raise OversizedBlockError(len(block), limit)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise BadBlockError(f"not valid snappy: {error}") from error


def _lz4(block: memoryview, limit: int) -> bytes:
    out = np.empty(min(limit, 255 * len(block)), np.uint8)
    try:
        size = cramjam.lz4.decompress_block_into(block, out.data, output_len=len(out))
    except cramjam.DecompressionError as error:
        raise BadBlockError(f"not valid lz4, or more than {limit} bytes: {error}") from error
    return out[:size].tobytes()


_INFLATE: dict[int, Callable[[memoryview, int], bytes]] = {
    1: lambda block, limit: bytes(Inflater("deflate", limit)(block)),
    2: _snappy,
    4: _lz4,
    5: inflate_zstandard,
}


@dataclass(frozen=True, slots=True)
class OrcFooters:
    """The footer of a file, and how footers of its stripes are stored.

    Args:
        footer: Of the file, inflated; None where it is longer than what was read.
        end_bytes: The length of the footer and all that follows it.
        tail_bytes: The same with the statistics of stripes before it: all that follows the stripes.
        compression: The number of its kind.
        limit: The most bytes that a footer may have, inflated.
        location: For messages.
    """

    footer: bytes | None
    end_bytes: int
    tail_bytes: int
    compression: int
    limit: int
    location: str | None

    def check_stripe(self, stored: bytes, stripe: int) -> None:
        """Check the footer of a stripe before the library reads it; raises as `footers_of`."""
        _whole(memoryview(stored), self.compression, self.limit, self.location, f"stripe {stripe}")


def footers_of(tail: bytes, file_size: int, *, location: str | None = None) -> OrcFooters:
    """The footer in the end of a file, and how footers of stripes are stored.

    Raises:
        CorruptTable: Not the end of an ORC file, or a tree of types that is none.
        TooLarge: See `icebench.engine.codec.budget`.
        Unsupported: Compressed by LZO, or types nested too deeply.
    """
    try:
        size = tail[-1]
        if size >= len(tail):
            raise IndexError(size)
        postscript = {number: value for number, value in fields_of(tail[-1 - size : -1]) if isinstance(value, int)}
    except IndexError as error:
        raise CorruptTable("not a readable ORC file: no postscript", location=location) from error
    length, kind = postscript.get(_PS_FOOTER_LENGTH, 0), postscript.get(_PS_COMPRESSION, 0)
    end = length + 1 + size
    whole = end + postscript.get(_PS_STATISTICS_LENGTH, 0)
    if end > file_size:
        raise CorruptTable("not a readable ORC file: the footer is longer than the file", location=location)
    limit = budget_of(file_size) // _OBJECTS
    if end > len(tail):
        return OrcFooters(None, end, whole, kind, limit, location)
    footer = _whole(memoryview(tail)[len(tail) - end : len(tail) - end + length], kind, limit, location, "footer")
    _check_types(footer, location)
    return OrcFooters(footer, end, whole, kind, limit, location)


def _whole(stored: memoryview, kind: int, limit: int, location: str | None, path: str) -> bytes:
    try:
        footer = b"".join(_inflated(stored, kind, limit, location))
    except BadBlockError as error:
        raise error.at(location, path) from error
    if len(footer) > limit:
        raise too_large(f"a footer of {len(stored)} bytes", limit, location=location, path=path)
    return footer


def _inflated(stored: memoryview, kind: int, limit: int, location: str | None) -> Iterator[bytes]:
    """Inflate the chunks of a footer, up to little more than a limit."""
    if kind == 0:
        yield bytes(stored)
        return
    inflate = _INFLATE.get(kind)
    if inflate is None:
        raise Unsupported(f"{location}: an ORC file compressed by kind {kind}; zlib, snappy, lz4 and zstd are read")
    left, position = limit, 0
    while position < len(stored) and left >= 0:
        header = int.from_bytes(stored[position : position + _CHUNK_HEADER], "little")
        start = position + _CHUNK_HEADER
        position = start + (header >> 1)
        if position > len(stored):
            raise BadBlockError("a compressed chunk is cut off")
        chunk = bytes(stored[start:position]) if header & 1 else inflate(stored[start:position], limit)
        left -= len(chunk)
        yield chunk


def _check_types(footer: bytes, location: str | None) -> None:
    """Raise unless the types of a footer are a tree of limited depth. Types precede their children."""
    try:
        children = [list(_subtypes(value)) for n, value in fields_of(footer) if n == _FOOTER_TYPES]
    except IndexError as error:
        raise CorruptTable("not a readable ORC file: the footer is cut off", location=location) from error
    level = [0] * len(children)
    for index, own in enumerate(children):
        for child in own:
            if not index < child < len(children) or level[child]:
                raise CorruptTable(f"not a readable ORC file: type {child} is inside type {index}", location=location)
            level[child] = level[index] + 1
            if level[child] > MAX_DEPTH:
                raise Unsupported(f"{location}: an ORC file of types nested over {MAX_DEPTH} deep")


def _subtypes(message: int | bytes) -> Iterator[int]:
    if not isinstance(message, bytes):
        return
    for number, value in fields_of(message):
        if number == _TYPE_SUBTYPES and isinstance(value, int):
            yield value
        elif number == _TYPE_SUBTYPES and isinstance(value, bytes):
            position = 0
            while position < len(value):
                child, position = varint(value, position)
                yield child
