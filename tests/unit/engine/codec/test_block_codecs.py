"""Compressed blocks."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.block_codecs import (
    AVRO_NAMES,
    BadBlockError,
    Buffer,
    Inflater,
    OversizedBlockError,
    compress_block,
    inflate_lz4,
)
from icebench.errors import TooLarge, Unsupported

LIMIT = 64 << 20
CODECS = sorted(AVRO_NAMES.values())
BLOCKS = [b"", b"a", b"abc" * 50_000, random.Random(1).randbytes(70_000), b"\x00" * 3_000_000]


@pytest.mark.parametrize("codec", CODECS)
def test_blocks_of_any_size_both_ways(codec: str):
    inflate = Inflater(codec, LIMIT)
    for block in [*BLOCKS, *BLOCKS[::-1]]:
        assert bytes(inflate(memoryview(compress_block(codec, block)))) == block


@pytest.mark.parametrize("codec", [c for c in CODECS if c != "null"])
@pytest.mark.parametrize("cut", [0, 1, 3, 10, -1])
def test_blocks_that_are_cut_off(codec: str, cut: int):
    packed = bytes(compress_block(codec, BLOCKS[3]))
    with pytest.raises(BadBlockError):
        Inflater(codec, LIMIT)(packed[:cut])


def test_the_checksum_of_snappy_counts():
    packed = bytes(compress_block("snappy", b"abcdef"))
    with pytest.raises(BadBlockError, match="checksum"):
        Inflater("snappy", LIMIT)(packed[:-1] + bytes([packed[-1] ^ 1]))


def test_a_block_of_zlib_at_its_best_is_inflated():
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(30_000_000)) + packer.flush()
    assert len(packed) * 1000 < 30_000_000
    assert len(Inflater("deflate", LIMIT)(packed)) == 30_000_000


def xxhash32(data: bytes) -> int:
    """The hash of LZ4's headers, of fewer than 16 bytes."""
    first, second, third, fourth, fifth = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    mask = (1 << 32) - 1
    made = fifth + len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        made = made + int.from_bytes(data[at : at + 4], "little") * third & mask
        made = (made << 17 | made >> 15) * fourth & mask
    for byte in data[whole:]:
        made = made + byte * fifth & mask
        made = (made << 11 | made >> 21) * first & mask
    for shift, prime in ((15, second), (13, third), (16, 1)):
        made = (made ^ made >> shift) * prime & mask
    return made


def lz4_frame(size: int, *, says: int | None = None) -> bytes:
    """A frame of zeros, which says its size or not."""
    plain = bytes(cramjam.lz4.compress(bytes(size)))
    if says is None:
        return plain
    flags = bytes([plain[4] | 8]) + plain[5:6] + says.to_bytes(8, "little")
    return plain[:4] + flags + bytes([xxhash32(flags) >> 8 & 255]) + plain[7:]


def bombs() -> dict[str, Callable[[int], Buffer]]:
    packers: dict[str, Callable[[int], Buffer]] = {}
    for codec in CODECS:
        packers[codec] = partial(lambda codec, size: compress_block(codec, bytes(size)), codec)
    packers["zstandard that does not say its size"] = unsized
    return packers


def unsized(size: int) -> bytes:
    streaming = zstandard.ZstdCompressor().compressobj()
    return streaming.compress(bytes(size)) + streaming.flush()


@pytest.mark.parametrize("kind", bombs())
def test_a_block_inflates_to_the_limit_and_no_further(kind: str):
    inflate = Inflater(kind.split(maxsplit=1)[0], 1_000_000)
    assert len(inflate(bombs()[kind](1_000_000))) == 1_000_000
    for size in (1_000_001, 50_000_000):
        with pytest.raises(OversizedBlockError) as raised:
            inflate(bombs()[kind](size))
        error = raised.value.at("s3://b/m.avro", "block 3")
        assert isinstance(error, TooLarge)
        assert str(error).startswith("s3://b/m.avro at block 3: ")
        assert "takes more than 1000000 bytes decoded; raise ICEBENCH_DECODE_BYTES" in str(error)


def test_sizes_that_a_broken_block_claims_are_not_believed():
    snappy = bytes(cramjam.snappy.compress_raw(bytes(10_000_000)))[:100] + b"1234"
    zstd = zstandard.ZstdCompressor().compress(bytes(10_000_000))
    for codec, packed in (("snappy", snappy), ("zstandard", zstd[:20])):
        with pytest.raises(OversizedBlockError):
            Inflater(codec, 1_000_000)(packed)


@pytest.mark.parametrize("says", [None, 1_000_000])
def test_lz4_frames(says: int | None):
    frame = lz4_frame(1_000_000, says=says)
    assert inflate_lz4(frame, 1_000_000) == bytes(1_000_000)
    with pytest.raises(OversizedBlockError):
        inflate_lz4(frame, 999_999)
    for cut in (0, 5, 12, len(frame) // 2):
        with pytest.raises(BadBlockError):
            inflate_lz4(frame[:cut], 1_000_000)
    for wrong in (1, 999_999, 1_000_001, 1 << 62):
        with pytest.raises(BadBlockError):
            inflate_lz4(lz4_frame(1_000_000, says=wrong), 2_000_000)


@given(data=st.binary(max_size=200), codec=st.sampled_from(CODECS))
def test_noise(data: bytes, codec: str):
    start = {"zstandard": b"\x28\xb5\x2f\xfd"}.get(codec, b"")
    for noise in (data, start + data):
        with suppress(BadBlockError):
            Inflater(codec, 1 << 20)(noise)
        with suppress(BadBlockError):
            inflate_lz4(b"\x04\x22\x4d\x18" + noise, 1 << 20)


@pytest.mark.parametrize("codec", ["bzip2", "xz", "", "gzip"])
def test_other_codecs_are_unsupported(codec: str):
    with pytest.raises(Unsupported, match="codec"):
        Inflater(codec, LIMIT)
    with pytest.raises(Unsupported, match="codec"):
        compress_block(codec, b"")
