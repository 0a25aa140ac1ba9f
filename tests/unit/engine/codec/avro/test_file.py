"""Avro container files."""

from __future__ import annotations

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.avro.file import encode_container, encode_long, read_blocks, read_header, read_headers
from icebench.engine.codec.block_codecs import compress_block
from icebench.errors import CorruptTable

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
FILE = encode_container(SCHEMA, {"k": "v"}, "deflate", [(2, compress_block("deflate", b"\x02\x04")), (0, b"")])


def test_header_and_blocks():
    header = read_header(FILE, location="f.avro")
    assert header.schema == SCHEMA
    assert (header.codec, header.text("k"), header.text("gone")) == ("deflate", "v", None)
    blocks = read_blocks(FILE, header)
    assert [(b.index, b.count) for b in blocks] == [(0, 2), (1, 0)]
    assert FILE[blocks[0].start : blocks[0].end] == compress_block("deflate", b"\x02\x04")


def test_fastavro_reads_it():
    one = encode_container(SCHEMA, {}, "null", [(2, b"\x02\x04"), (1, b"\x01")])
    assert list(fastavro.reader(io.BytesIO(one))) == [{"a": 1}, {"a": 2}, {"a": -1}]


def test_the_beginning_is_enough_for_the_header():
    header = read_header(FILE)
    assert read_header(FILE[: header.size]) == header
    with pytest.raises(CorruptTable):
        read_header(FILE[: header.size - 1])


def test_headers_of_several_files_are_those_of_each():
    size = read_header(FILE).size
    other_marker = FILE[: size - 16] + b"m" * 16 + FILE[size:]
    other_writer = encode_container(SCHEMA, {"k": "w"}, "null", [])
    other_length = encode_container(SCHEMA, {"k": "v", "l": "w"}, "deflate", [])
    files = [(FILE, "a"), (other_marker, "b"), (other_writer, "c"), (other_length, "d"), (FILE, "e"), (FILE, "f")]
    assert read_headers(files) == [read_header(data, location=location) for data, location in files]
    with pytest.raises(CorruptTable, match="16 bytes are promised and 15 left") as caught:
        read_headers([(FILE, "a"), (FILE[: size - 1], "b")])
    assert caught.value.location == "b"


def test_the_same_content_gives_the_same_bytes():
    assert encode_container(SCHEMA, {}, "null", []) == encode_container(SCHEMA, {}, "null", [])
    assert encode_container(SCHEMA, {}, "null", []) != encode_container(SCHEMA, {"k": "v"}, "null", [])


def test_a_wrong_sync_marker_names_its_block():
    header = read_header(FILE)
    end = read_blocks(FILE, header)[0].end
    damaged = FILE[:end] + bytes([FILE[end] ^ 1]) + FILE[end + 1 :]
    with pytest.raises(CorruptTable, match="sync marker") as caught:
        read_blocks(damaged, read_header(damaged, location="f.avro"))
    assert (caught.value.location, caught.value.path) == ("f.avro", "block 0")


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_files_that_end_within_a_block(cut: int):
    with pytest.raises(CorruptTable):
        read_blocks(FILE[:-cut], read_header(FILE))


def test_a_number_of_more_than_64_bits_is_damage():
    header = read_header(FILE)
    for last in (b"\x02", b"\x7e"):
        data = FILE[: header.size] + b"\xfe" + b"\xff" * 8 + last + b"\x00" + header.sync
        with pytest.raises(CorruptTable, match="negative size or count"):
            read_blocks(data, header)
    most = FILE[: header.size] + b"\xfe" + b"\xff" * 8 + b"\x01\x00" + header.sync
    assert read_blocks(most, header)[0].count == (1 << 63) - 1


@pytest.mark.parametrize("data", [b"", b"Obj", b"Obj\x02" + FILE[4:], b"PAR1" + FILE[4:], b"Obj\x01" + b"\xff" * 12])
def test_other_files(data: bytes):
    with pytest.raises(CorruptTable):
        read_header(data)


def test_header_metadata_in_a_block_that_says_its_size():
    schema = b'"null"'
    entry = encode_long(11) + b"avro.schema" + encode_long(len(schema)) + schema
    data = b"Obj\x01" + encode_long(-1) + encode_long(len(entry)) + entry + b"\x00" + bytes(16)
    header = read_header(data)
    assert header.schema == "null"
    assert header.codec == "null"


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_numbers_are_those_of_avro(number: int):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, {"type": "long"}, number)
    assert encode_long(number) == out.getvalue()
