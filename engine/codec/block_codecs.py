"""Compression of Avro blocks (Avro spec: "Required Codecs", "Optional Codecs") without unbounded memory.

Deflate does not store how much it inflates to, and the other codecs store a number that a broken file may exaggerate:
nothing here allocates more than `inflated_limit` of the compressed size. All codecs release the GIL.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Literal, TypeAlias

import cramjam
import deflate
import zstandard
from isal import igzip_lib

from engine.errors import Unsupported

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
"""A quarter of the time of libdeflate's level 2; manifests are 5 to 13 % larger, and inflate a fifth faster."""
_ZSTD_LEVEL = 3
_DEFLATE_MAX_RATIO = 1032
_LIMIT_FLOOR = 64 * 1024 * 1024
_FIRST_GUESS_FLOOR = 64 * 1024


class BadBlockError(Exception):
    """The block does not inflate; the caller knows which it is."""


def inflated_limit(compressed_size: int) -> int:
    """The most bytes that a block of this compressed size may inflate to: what deflate can reach, or 64 MiB if more."""
    return max(_LIMIT_FLOOR, compressed_size * _DEFLATE_MAX_RATIO)


def deflate_limit(compressed_size: int) -> int:
    """The most bytes that a deflated block of this size can inflate to."""
    return min(inflated_limit(compressed_size), compressed_size * _DEFLATE_MAX_RATIO + 64)


class Inflater:
    """Inflates the blocks of one file in order. Not shared between threads: it learns the usual block size.

    Args:
        codec: The Avro name of the codec.

    Raises:
        Unsupported: A codec that Iceberg does not use.
    """

    def __init__(self, codec: str) -> None:
        inflate = _INFLATE.get(codec)
        if inflate is None:
            raise Unsupported(f"the Avro codec {codec!r}; Iceberg uses {', '.join(sorted(_INFLATE))}")
        self._inflate = inflate
        self._largest = 0

    def __call__(self, block: Buffer) -> Buffer:
        """The inflated block; raises BadBlockError."""
        made = self._inflate(block, self._largest)
        self._largest = max(self._largest, len(made))
        return made


def _inflate_null(block: Buffer, _: int) -> Buffer:
    return block


def _inflate_deflate(block: Buffer, largest: int) -> Buffer:
    limit = deflate_limit(len(block))
    guess = min(max(largest + largest // 8, len(block) * 2, _FIRST_GUESS_FLOOR), limit)
    while True:
        try:
            return deflate.deflate_decompress(block, guess)
        except (deflate.DeflateError, ValueError, MemoryError) as error:
            # libdeflate does not tell a small buffer from a broken stream.
            if guess >= limit:
                raise BadBlockError("not valid deflate") from error
        guess = min(guess * 4, limit)


def _inflate_snappy(block: Buffer, _: int) -> Buffer:
    if len(block) < 4:
        raise BadBlockError("a snappy block ends with 4 bytes of checksum")
    body = memoryview(block)[:-4]
    try:
        if cramjam.snappy.decompress_raw_len(body) > inflated_limit(len(body)):
            raise BadBlockError("the snappy block claims to be too large")
        made = bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as error:
        raise BadBlockError(f"not valid snappy: {error}") from error
    if zlib.crc32(made) != int.from_bytes(block[-4:], "big"):
        raise BadBlockError("the checksum of the snappy block is wrong")
    return made


def _inflate_zstandard(block: Buffer, _: int) -> Buffer:
    return inflate_zstandard(block)


def inflate_zstandard(block: Buffer) -> bytes:
    """One zstandard frame, inflated; raises BadBlockError."""
    limit = inflated_limit(len(block))
    try:
        size = zstandard.frame_content_size(block)
        if size > limit:
            raise BadBlockError("the zstandard block claims to be too large")
        # A context per call: contexts are not safe to share, and making one costs a microsecond.
        with zstandard.ZstdDecompressor().stream_reader(block) as reader:
            made: bytes = reader.read(limit + 1 if size < 0 else size + 1)
    except zstandard.ZstdError as error:
        raise BadBlockError(f"not valid zstandard: {error}") from error
    if len(made) > limit or (size >= 0 and len(made) != size):
        raise BadBlockError("the zstandard block is not as large as it says")
    return made


_INFLATE: dict[str, Callable[[Buffer, int], Buffer]] = {
    "null": _inflate_null,
    "deflate": _inflate_deflate,
    "snappy": _inflate_snappy,
    "zstandard": _inflate_zstandard,
}


def compress_block(codec: str, block: Buffer) -> Buffer:
    """The compressed block, by the Avro name of the codec."""
    match codec:
        case "null":
            return bytes(block)
        case "deflate":
            return igzip_lib.compress(block, _IGZIP_LEVEL, igzip_lib.COMP_DEFLATE)
        case "snappy":
            return bytes(cramjam.snappy.compress_raw(block)) + zlib.crc32(block).to_bytes(4, "big")
        case "zstandard":
            return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(block)
    raise Unsupported(f"the Avro codec {codec!r}")
