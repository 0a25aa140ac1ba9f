"""Compressed blocks."""

from __future__ import annotations

import random
import zlib

import cramjam
import pytest
import zstandard

from engine.codec import block_codecs
from engine.codec.block_codecs import AVRO_NAMES, BadBlockError, Inflater, compress_block, inflated_limit
from engine.errors import Unsupported

CODECS = sorted(AVRO_NAMES.values())
BLOCKS = [b"", b"a", b"abc" * 50_000, random.Random(1).randbytes(70_000), b"\x00" * 3_000_000]


@pytest.mark.parametrize("codec", CODECS)
def test_blocks_of_any_size_both_ways(codec: str):
    inflate = Inflater(codec)
    for block in [*BLOCKS, *BLOCKS[::-1]]:
        assert bytes(inflate(memoryview(compress_block(codec, block)))) == block


@pytest.mark.parametrize("codec", [c for c in CODECS if c != "null"])
@pytest.mark.parametrize("cut", [0, 1, 3, 10, -1])
def test_blocks_that_are_cut_off(codec: str, cut: int):
    packed = bytes(compress_block(codec, BLOCKS[3]))
    with pytest.raises(BadBlockError):
        Inflater(codec)(packed[:cut])


def test_the_checksum_of_snappy_counts():
    packed = bytes(compress_block("snappy", b"abcdef"))
    with pytest.raises(BadBlockError, match="checksum"):
        Inflater("snappy")(packed[:-1] + bytes([packed[-1] ^ 1]))


def test_a_block_of_zlib_at_its_best_is_inflated():
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(30_000_000)) + packer.flush()
    assert len(packed) * 1000 < 30_000_000
    assert len(Inflater("deflate")(packed)) == 30_000_000


def test_sizes_that_a_broken_block_claims_are_not_allocated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(block_codecs, "_LIMIT_FLOOR", 1000)
    claims = {"snappy": bytes(cramjam.snappy.compress_raw(bytes(10_000_000)))[:100] + b"1234"}
    claims["zstandard"] = zstandard.ZstdCompressor().compress(bytes(10_000_000))
    streaming = zstandard.ZstdCompressor().compressobj()
    unsized = streaming.compress(bytes(10_000_000)) + streaming.flush()
    assert inflated_limit(len(unsized)) < 10_000_000
    for codec, packed in [*claims.items(), ("zstandard", unsized)]:
        with pytest.raises(BadBlockError):
            Inflater(codec)(packed)


@pytest.mark.parametrize("codec", ["bzip2", "xz", "", "gzip"])
def test_other_codecs_are_unsupported(codec: str):
    with pytest.raises(Unsupported, match="codec"):
        Inflater(codec)
    with pytest.raises(Unsupported, match="codec"):
        compress_block(codec, b"")
