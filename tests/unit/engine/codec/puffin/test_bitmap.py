"""Deletion vectors."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from icebench.engine.codec.puffin.bitmap import MAGIC, decode_vector, encode_vector
from icebench.errors import CorruptTable, Invalid, TooLarge

POSITIONS = st.one_of(
    st.sets(st.integers(0, (1 << 63) - 1), max_size=20),
    st.sets(st.integers(0, 200_000), max_size=50),
    st.builds(
        lambda start, count, step: set(range(start, start + count * step, step)),
        st.integers(0, 1 << 35),
        st.integers(0, 20_000),
        st.integers(1, 9),
    ),
)


def framed(bitmap: bytes, magic: bytes = MAGIC) -> bytes:
    body = magic + bitmap
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def of_one(bitmap32: bytes, key: int = 0) -> bytes:
    return framed(struct.pack("<QI", 1, key) + bitmap32)


@given(POSITIONS)
def test_positions_are_read_back(positions: set[int]):
    blob = encode_vector(BitMap64(positions))
    assert set(decode_vector(blob, cardinality=len(positions))) == positions


@given(st.lists(st.sets(st.integers(0, (1 << 32) - 1), min_size=1, max_size=20), max_size=3), st.booleans())
def test_the_layout_is_the_one_of_the_specification(sets: list[set[int]], runs: bool):
    # 32-bit bitmaps by rising key, with and without run containers, as other libraries write them.
    bitmap = struct.pack("<Q", len(sets))
    for key, low in enumerate(sets):
        inner = BitMap(low)
        if runs:
            inner.run_optimize()
        bitmap += struct.pack("<I", 3 * key) + inner.serialize()
    expected = {(3 * key << 32) + position for key, low in enumerate(sets) for position in low}
    assert set(decode_vector(framed(bitmap))) == expected


def test_writing_leaves_the_bitmap_alone():
    positions = BitMap64(range(1000))
    size = len(positions.serialize())
    assert len(encode_vector(positions)) < 100
    assert len(positions.serialize()) == size


def test_positions_have_63_bits():
    assert (1 << 63) - 1 in decode_vector(encode_vector(BitMap64([(1 << 63) - 1])))
    with pytest.raises(Invalid, match="does not fit"):
        encode_vector(BitMap64([1 << 63]))


ARRAY = struct.pack("<IIHHI", 12346, 1, 0, 2, 16)
GOOD = encode_vector(BitMap64([1, 5]))


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", "has 0 bytes only"),
        (GOOD[:-1], "says that it has"),
        (GOOD + b"\x00", "says that it has"),
        (framed(b"", b"\xd1\xd3\x39\x65"), "begins with"),
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "checksum"),
        (framed(BitMap64([1]).serialize() + b"\x00"), "after its bitmap"),
        (framed(BitMap64([1]).serialize()[:-1]), "deletion vector"),
        (of_one(BitMap([1]).serialize(), key=1 << 31), "key 2147483648"),
        (framed(struct.pack("<Q", 2) + (struct.pack("<I", 4) + BitMap([1]).serialize()) * 2), "key 4 after 4"),
        (framed(struct.pack("<Q", 1 << 60)), "deletion vector"),
        (of_one(struct.pack("<I", 99)), "begins with 99"),
        (of_one(struct.pack("<II", 12346, 70_000)), "70000 containers"),
        (of_one(ARRAY + struct.pack("<HHH", 5, 4, 9)), "not rising"),
        (of_one(ARRAY + struct.pack("<HHH", 5, 5, 9)), "not rising"),
        (of_one(struct.pack("<IIHHI", 12346, 1, 0, 2, 17) + struct.pack("<HHH", 1, 2, 3)), "offset"),
        (of_one(struct.pack("<IIHHI", 12346, 1, 0, 4999, 16) + bytes(8192)), "cardinality"),
        (of_one(struct.pack("<IIHHI", 12346, 1, 0, 4999, 16) + b"\xff" * 100), "cardinality"),
        (of_one(struct.pack("<IIHHI", 12346, 1, 0, 4999, 16) + b"\xff" * 8192), "a bit set that is cut off or has"),
        (of_one(struct.pack("<IIHHHHIIHH", 12346, 2, 1, 0, 0, 0, 24, 26, 5, 5)), "container keys"),
        (of_one(struct.pack("<IBHHH", 12347, 1, 0, 9, 1) + struct.pack("<HH", 65_530, 9)), "runs"),
        (of_one(struct.pack("<IBHHH", 12347, 1, 0, 9, 2) + struct.pack("<HHHH", 0, 4, 4, 4)), "runs"),
        (of_one(struct.pack("<IBHHH", 12347, 1, 0, 8, 1) + struct.pack("<HH", 0, 9)), "runs"),
    ],
)
def test_blobs_that_contradict_the_specification(blob: bytes, reason: str):
    with pytest.raises(CorruptTable, match=reason) as caught:
        decode_vector(blob, location="d.puffin")
    assert caught.value.location == "d.puffin"


def test_the_cardinality_of_the_manifest_entry_counts():
    assert len(decode_vector(GOOD, cardinality=2)) == 2
    with pytest.raises(CorruptTable, match="2 positions instead of 3"):
        decode_vector(GOOD, cardinality=3)


def test_a_position_behind_the_last_row():
    blob = encode_vector(BitMap64([0, 9]))
    assert set(decode_vector(blob, cardinality=2, rows=10)) == {0, 9}
    with pytest.raises(CorruptTable, match="has position 9, and its data file has 9 rows"):
        decode_vector(blob, cardinality=2, rows=9, location="s3://b/x.puffin")
    assert not decode_vector(encode_vector(BitMap64()), rows=0)


def test_billions_of_positions_in_a_few_bytes():
    positions = BitMap64(range(1))
    positions.add_range(0, 1 << 32)
    blob = encode_vector(positions)
    assert len(blob) < 1_000_000
    with pytest.raises(TooLarge, match="the deletion vector of 4294967296 positions takes more than"):
        decode_vector(blob, cardinality=1 << 32, rows=1 << 32, location="s3://b/x.puffin")
