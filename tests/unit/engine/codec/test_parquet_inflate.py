import gzip

import cramjam
import pytest
import zstandard

from engine.codec.parquet_inflate import BadPageError, inflater

DATA = bytes(range(256)) * 40
COMPRESSED = {
    "UNCOMPRESSED": [DATA],
    "SNAPPY": [bytes(cramjam.snappy.compress_raw(DATA))],
    "GZIP": [gzip.compress(DATA), gzip.compress(DATA[:99]) + gzip.compress(DATA[99:])],
    "LZ4_RAW": [bytes(cramjam.lz4.compress_block(DATA, store_size=False))],
    "ZSTD": [
        zstandard.ZstdCompressor().compress(DATA),
        zstandard.ZstdCompressor(write_content_size=False).compress(DATA),
    ],
}
CASES = [(codec, data) for codec, several in COMPRESSED.items() for data in several]


@pytest.mark.parametrize(("codec", "data"), CASES)
def test_a_page_inflates_to_the_size_that_its_header_says_or_not_at_all(codec: str, data: bytes) -> None:
    inflate = inflater(codec)
    assert inflate is not None
    assert bytes(inflate(data, len(DATA))) == DATA
    for size in (1, len(DATA) - 1, len(DATA) + 1, len(DATA) * 3):
        with pytest.raises(BadPageError):
            inflate(data, size)


@pytest.mark.parametrize(("codec", "data"), CASES)
def test_damaged_bytes_are_refused_or_have_that_size(codec: str, data: bytes) -> None:
    inflate = inflater(codec)
    assert inflate is not None
    for damaged in (b"", data[:-1], data[: len(data) // 2], b"\xff" * 40, data[:7] + b"\xff\xff\xff" + data[10:]):
        try:
            assert len(inflate(damaged, len(DATA))) == len(DATA)
        except BadPageError:
            continue


def test_other_codecs_are_left_to_others() -> None:
    assert inflater("BROTLI") is None
