"""Puffin files."""

from __future__ import annotations

import json
import struct
from typing import Any

import cramjam
import pytest
import zstandard

from icebench.engine.codec.puffin.file import (
    MAGIC,
    TAIL_BYTES,
    NewBlob,
    decode_blob,
    footer_size,
    read_blob,
    read_footer,
    write_puffin,
)
from icebench.errors import CorruptTable, Unsupported

BLOBS = [
    NewBlob(type="a", data=b"some data", fields=(1, 2), snapshot_id=5, sequence_number=6, properties={"ndv": "3"}),
    NewBlob(type="b", data=b"x" * 1000, compression="zstd"),
    NewBlob(type="c", data=b""),
]
FILE = write_puffin(BLOBS, properties={"created-by": "a test"})


def puffin(payload: bytes, flags: int = 0, body: bytes = b"") -> bytes:
    return MAGIC + body + MAGIC + payload + struct.pack("<iI", len(payload), flags) + MAGIC


def blob(**changes: Any) -> dict[str, Any]:
    base = {"type": "t", "fields": [], "snapshot-id": 1, "sequence-number": 1, "offset": 4, "length": 3}
    return {**base, **changes}


def footer_json(*blobs: dict[str, Any]) -> bytes:
    return json.dumps({"blobs": list(blobs)}).encode()


def test_what_is_written_is_read_back():
    footer = read_footer(FILE.data)
    assert footer == FILE.footer
    assert footer.properties == {"created-by": "a test"}
    assert [read_blob(FILE.data, b) for b in footer.blobs] == [b.data for b in BLOBS]
    assert footer.blobs[1].length < 100
    assert zstandard.frame_content_size(FILE.data[footer.blobs[1].offset :]) == 1000


def test_the_end_of_the_file_is_enough():
    size = footer_size(FILE.data[-TAIL_BYTES:])
    assert size == FILE.footer.size_bytes
    assert read_footer(FILE.data[-size:], file_size=len(FILE.data)) == FILE.footer


def test_the_smallest_file_of_the_specification():
    # Iceberg's own test resource v1/empty-puffin-uncompressed.bin.
    data = bytes.fromhex("50464131504641317b22626c6f6273223a5b5d7d0c0000000000000050464131")
    assert read_footer(data).blobs == ()


@pytest.mark.parametrize("compress", [cramjam.lz4.compress, zstandard.ZstdCompressor().compress])
def test_compressed_footers(compress: Any):
    payload = bytes(compress(footer_json(blob())))
    assert read_footer(puffin(payload, 1, b"abc")).blobs[0].length == 3


def test_lz4_blobs():
    stored = bytes(cramjam.lz4.compress(b"abc" * 100))
    data = puffin(footer_json(blob(length=len(stored), **{"compression-codec": "lz4"})), body=stored)
    assert read_blob(data, read_footer(data).blobs[0]) == b"abc" * 100


def test_other_codecs_and_flags_are_unsupported():
    data = puffin(footer_json(blob(**{"compression-codec": "snappy"})), body=b"abc")
    with pytest.raises(Unsupported, match="snappy"):
        read_blob(data, read_footer(data).blobs[0])
    with pytest.raises(Unsupported, match="0x2"):
        read_footer(puffin(footer_json(), 2))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PFA1",
        FILE.data[:-1],
        FILE.data[1:],
        b"PFA2" + FILE.data[4:],
        puffin(b"{}"),
        puffin(b"[]"),
        puffin(b"\xff"),
        puffin(b"{}", 1),
        puffin(footer_json(blob(offset=0)), body=b"abc"),
        puffin(footer_json(blob(offset=5)), body=b"abc"),
        puffin(footer_json(blob(length=-1)), body=b"abc"),
        puffin(footer_json(blob(offset=1 << 62, length=1 << 62)), body=b"abc"),
        puffin(footer_json(blob(fields="x")), body=b"abc"),
    ],
)
def test_files_that_contradict_the_specification(data: bytes):
    with pytest.raises(CorruptTable):
        read_footer(data, location="f.puffin")


def test_the_footer_size_is_not_believed():
    with pytest.raises(CorruptTable):
        footer_size(struct.pack("<iI", -1, 0) + MAGIC)
    with pytest.raises(CorruptTable):
        read_footer(MAGIC + struct.pack("<iI", 1 << 30, 0) + MAGIC)


def test_blobs_that_are_cut_off():
    second = FILE.footer.blobs[1]
    with pytest.raises(CorruptTable, match="instead of"):
        decode_blob(b"abc", second)
    with pytest.raises(CorruptTable, match="not valid zstandard"):
        decode_blob(bytes(second.length), second)
