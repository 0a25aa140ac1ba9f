"""Compression of Avro blocks (Avro spec: "Required Codecs", "Optional Codecs") without unbounded memory.

Deflate does not store the inflated size, and the other codecs store one that a damaged file may exaggerate: no codec
exceeds the limit it is given (see `icebench.engine.codec.budget`). All codecs release the GIL.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Literal, TypeAlias

import cramjam
import deflate
import numpy as np
import zstandard
from isal import igzip_lib

from icebench.engine.codec.budget import too_large
from icebench.engine.errors import CorruptTable, Unsupported

Buffer: TypeAlias = bytes | bytearray | memoryview

Compression: TypeAlias = Literal["gzip", "zstd", "snappy", "uncompressed"]
"""Values of the table property ``write.avro.compression-codec``."""

AVRO_NAMES: dict[Compression, str] = {
    "gzip": "deflate",
    "zstd": "zstandard",
    "snappy": "snappy",
    "uncompressed": "null",
}

_IGZIP_LEVEL = 1
"""Takes a quarter of the time of libdeflate's level 2; manifests are 5 to 13 % larger and inflate in four fifths of the
time."""
_LIBDEFLATE_LEVEL = 6
_ZSTD_LEVEL = 3
_DEFLATE_MAX_RATIO = 1032
_FIRST_GUESS_FLOOR = 64 * 1024
_STEP_BYTES = 1 << 20
_LZ4_FLAGS, _LZ4_SAYS_SIZE, _LZ4_SIZE_END = 4, 8, 14
_LZ4_MAX_RATIO = 255


class BadBlockError(Exception):
    """The block cannot be inflated; the caller knows its location."""

    def at(self, location: str | None, path: str) -> CorruptTable:
        """The error for the user, with the location."""
        return CorruptTable(str(self), location=location, path=path)


class OversizedBlockError(BadBlockError):
    """The block inflates, or claims to inflate, to more than the limit."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"{size} compressed bytes")
        self._limit = limit

    def at(self, location: str | None, path: str) -> CorruptTable:
        return too_large(str(self), self._limit, location=location, path=path)


def deflate_limit(compressed_size: int, limit: int) -> int:
    """The most bytes that a deflated block of this size can inflate to, at most `limit`."""
    return min(limit, compressed_size * _DEFLATE_MAX_RATIO + 64)


class Inflater:
    """Inflates the blocks of one file in order. Not shared between threads: it learns the usual block size.

    Args:
        codec: The Avro name of the codec.
        limit: The most bytes that a block may inflate to.

    Raises:
        Unsupported: A codec that Iceberg does not use.
    """

    def __init__(self, codec: str, limit: int) -> None:
        inflate = _INFLATE.get(codec)
        if inflate is None:
            raise Unsupported(f"the Avro codec {codec!r}; Iceberg uses {', '.join(sorted(_INFLATE))}")
        self._inflate = inflate
        self._largest = 0
        self._limit = limit

    def __call__(self, block: Buffer) -> Buffer:
        """Inflate a block; raises BadBlockError."""
        made = self._inflate(block, self._largest, self._limit)
        self._largest = max(self._largest, len(made))
        return made


def _inflate_null(block: Buffer, _: int, limit: int) -> Buffer:
    if len(block) > limit:
        raise OversizedBlockError(len(block), limit)
    return block


def _inflate_deflate(block: Buffer, largest: int, limit: int) -> Buffer:
    most = deflate_limit(len(block), limit)
    guess = min(max(largest + largest // 8, len(block) * 2, _FIRST_GUESS_FLOOR), most)
    while True:
        try:
            return deflate.deflate_decompress(block, guess)
        except (deflate.DeflateError, ValueError, MemoryError) as error:
            # libdeflate does not distinguish a small buffer from a broken stream.
            if guess >= most:
                raise _deflate_error(block, limit) from error
        guess = min(guess * 4, most)


def _deflate_error(block: Buffer, limit: int) -> BadBlockError:
    """Find what is wrong with a deflated block, by zlib."""
    made, inflate = 0, zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        rest: Buffer = block
        while rest and made <= limit:
            made += len(inflate.decompress(rest, _STEP_BYTES))
            rest = inflate.unconsumed_tail
    except zlib.error as error:
        return BadBlockError(f"not valid deflate: {error}")
    return OversizedBlockError(len(block), limit) if made > limit else BadBlockError("not valid deflate: it is cut off")


def _inflate_snappy(block: Buffer, _: int, limit: int) -> Buffer:
    if len(block) < 4:
        raise BadBlockError("a snappy block ends with 4 bytes of checksum")
    body = memoryview(block)[:-4]
    try:
        if cramjam.snappy.decompress_raw_len(body) > limit:
            raise OversizedBlockError(len(block), limit)
        made = bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as error:
        raise BadBlockError(f"not valid snappy: {error}") from error
    if zlib.crc32(made) != int.from_bytes(block[-4:], "big"):
        raise BadBlockError("the checksum of the snappy block is wrong")
    return made


def _inflate_zstandard(block: Buffer, _: int, limit: int) -> Buffer:
    return inflate_zstandard(block, limit)


def inflate_zstandard(block: Buffer, limit: int) -> bytes:
    """Inflate one zstandard frame; raises BadBlockError."""
    try:
        size = zstandard.frame_content_size(block)
        if size > limit:
            raise OversizedBlockError(len(block), limit)
        # A context per call: contexts are not safe to share, and making one costs a microsecond.
        with zstandard.ZstdDecompressor().stream_reader(block) as reader:
            made: bytes = reader.read(limit + 1 if size < 0 else size + 1)
    except zstandard.ZstdError as error:
        raise BadBlockError(f"not valid zstandard: {error}") from error
    if len(made) > limit:
        raise OversizedBlockError(len(block), limit)
    if size >= 0 and len(made) != size:
        raise BadBlockError("the zstandard block is not as large as it says")
    return made


def inflate_lz4(frame: Buffer, limit: int) -> bytes:
    """Inflate one LZ4 frame; raises BadBlockError."""
    data = memoryview(frame)
    says_size = len(data) >= _LZ4_SIZE_END and data[_LZ4_FLAGS] & _LZ4_SAYS_SIZE
    size = int.from_bytes(data[_LZ4_SIZE_END - 8 : _LZ4_SIZE_END], "little") if says_size else None
    room = min(limit, len(data) * _LZ4_MAX_RATIO) if size is None else size
    if room > limit:
        raise OversizedBlockError(len(data), limit)
    out = np.empty(room, np.uint8)
    try:
        made = cramjam.lz4.decompress_into(data, out.data)
    except cramjam.DecompressionError as error:
        if room == limit and "whole buffer" in str(error):
            raise OversizedBlockError(len(data), limit) from error
        raise BadBlockError(f"not valid lz4: {error}") from error
    if size is not None and made != size:
        raise BadBlockError(f"the lz4 frame has {made} bytes and says {size}")
    return out[:made].tobytes()


_INFLATE: dict[str, Callable[[Buffer, int, int], Buffer]] = {
    "null": _inflate_null,
    "deflate": _inflate_deflate,
    "snappy": _inflate_snappy,
    "zstandard": _inflate_zstandard,
}


def compress_block(codec: str, block: Buffer, *, is_reproducible: bool = False) -> Buffer:
    """Compress a block by the codec of that Avro name.

    Deflate is by igzip, which has other code for other processors. A reproducible block depends on the releases of the
    libraries alone; deflate takes several times as long then.
    """
    match codec:
        case "null":
            return bytes(block)
        case "deflate" if is_reproducible:
            return deflate.deflate_compress(block, _LIBDEFLATE_LEVEL)
        case "deflate":
            return igzip_lib.compress(block, _IGZIP_LEVEL, igzip_lib.COMP_DEFLATE)
        case "snappy":
            return bytes(cramjam.snappy.compress_raw(block)) + zlib.crc32(block).to_bytes(4, "big")
        case "zstandard":
            return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(block)
    raise Unsupported(f"the Avro codec {codec!r}")
