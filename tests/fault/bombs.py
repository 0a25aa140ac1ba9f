"""Files of kilobytes that would decode to gigabytes, of every format and codec that a table is read from."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeAlias

import cramjam
import fastavro
import zstandard
from pyroaring import BitMap64

from icebench.engine.codec.avro.file import encode_container, encode_long
from icebench.engine.codec.avro.schema import record_schema
from icebench.engine.codec.budget import DEFAULT_BYTES
from icebench.engine.codec.manifests import schema as manifest_schema
from icebench.engine.codec.metadata_json.schema import encode_schema
from icebench.engine.codec.puffin.bitmap import encode_vector
from icebench.engine.codec.puffin.file import MAGIC as PUFFIN
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, NestedField, StructType

Bomb: TypeAlias = Callable[[Random], bytes]

MIB = 1 << 20
CODECS = ("deflate", "zstandard", "zstandard unsized", "snappy", "null")


def count_of(unit: bytes, size: int) -> int:
    """How often a unit is in what `packed` packs."""
    stretch = max(MIB // len(unit), 1)
    return stretch * max(size // (stretch * len(unit)), 1)


def deflated(unit: bytes, size: int) -> bytes:
    """A unit again and again: deflated once, since whole stretches of a stream may stand side by side."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    stretch = unit * max(MIB // len(unit), 1)
    again = packer.compress(stretch) + packer.flush(zlib.Z_FULL_FLUSH)
    return again * (count_of(unit, size) * len(unit) // len(stretch)) + packer.flush()


def lz4_frame(unit: bytes, size: int) -> bytes:
    """A unit again and again: one block of four MiB, which may be repeated as none refers to another."""
    stretch = bytes(cramjam.lz4.compress_block(unit * (4 * MIB // len(unit)), store_size=False))
    header = b'\x04"M\x18`ps'  # blocks of up to four MiB, without checksums
    return header + (struct.pack("<I", len(stretch)) + stretch) * (size // (4 * MIB)) + bytes(4)


def packed(codec: str, unit: bytes, size: int) -> bytes:
    """A block of a unit again and again, of about so many bytes."""
    if codec == "deflate":
        return deflated(unit, size)
    if codec == "lz4":
        return lz4_frame(unit, size)
    # Stretch by stretch: to fill gigabytes takes longer than to pack them.
    stretch = unit * max(MIB // len(unit), 1)
    times = count_of(unit, size) * len(unit) // len(stretch)
    match codec:
        case "zstandard" | "zstandard unsized":
            stated = times * len(stretch) if codec == "zstandard" else -1
            streaming = zstandard.ZstdCompressor().compressobj(size=stated)
            return b"".join(streaming.compress(stretch) for _ in range(times)) + streaming.flush()
        case "snappy":
            # What follows the length of a block refers to nothing before it, so that blocks make one.
            body = bytes(cramjam.snappy.compress_raw(stretch))[len(_varint(len(stretch))) :]
            return _varint(times * len(stretch)) + body * times + _crc32(stretch, times).to_bytes(4, "big")
        case "gzip":
            tail = struct.pack("<II", _crc32(stretch, times), times * len(stretch) & 0xFFFF_FFFF)
            return b"\x1f\x8b\x08" + bytes(7) + deflated(unit, size) + tail
    return stretch * times


def _crc32(stretch: bytes, times: int) -> int:
    found = 0
    for _ in range(times):
        found = zlib.crc32(stretch, found)
    return found


def container(schema: Any, metadata: dict[str, str], codec: str, blocks: list[tuple[int, bytes]]) -> bytes:
    return encode_container(schema, metadata, codec.split(maxsplit=1)[0], blocks)


def _sizes(random: Random, codec: str) -> tuple[int, int]:
    """What a block inflates to, and how many blocks there are; files of what does not shrink are as large."""
    most = 300 if codec == "null" else 700 if codec == "snappy" else 1500
    block = random.choice([1, 8, 60, 120, 300, most])
    return block * MIB, max(1, random.choice([1, most // block]))


SCHEMA = Schema((NestedField(field_id=1, name="a", type=LONG, required=False),))
_HEADER = {
    "schema": encode_schema(SCHEMA).decode(),
    "partition-spec": "[]",
    "partition-spec-id": "0",
    "format-version": "2",
    "content": "data",
}
_ENTRY = manifest_schema.entry_type(StructType(()), 2)
_NULL, _SOME = b"\x00", b"\x02"


def entry(pairs: int = 0) -> bytes:
    """A manifest entry with little in it, and as many column sizes."""
    made = b""
    for f in _ENTRY.fields:
        made += _value(f, pairs)
    return made


def _value(f: NestedField, pairs: int) -> bytes:
    if isinstance(f.type, StructType):
        inner = b"".join(_value(child, pairs) for child in f.type.fields)
        return inner if f.required else _SOME + inner
    if f.name == "column_sizes" and pairs:
        return _SOME + encode_long(pairs) + b"\x02\x02" * pairs + _NULL
    if not f.required:
        return _NULL
    return b"\x0eparquet" if f.name == "file_format" else b"\x02"


def manifest(random: Random, codec: str) -> bytes:
    """Entries without end, or entries of pairs without end, or bytes that are no entries, or claims of them."""
    size, blocks = _sizes(random, codec)
    schema = record_schema(_ENTRY, "manifest_entry")
    match random.randrange(4):
        case 0:
            unit = entry()
        case 1:
            unit = entry(random.choice([1000, 50_000]))
        case 2:
            unit = random.choice([b"\x00", b"\xff", b"\x02", b"\x80"])
        case _:
            return container(schema, _HEADER, "null", [(random.choice([1 << 40, (1 << 63) - 1]), entry())])
    count = random.choice([count_of(unit, size), 1])
    return container(schema, _HEADER, codec, [(count, packed(codec, unit, size))] * blocks)


def manifest_list(random: Random, codec: str) -> bytes:
    """Entries of manifests that nobody ever wrote."""
    size, blocks = _sizes(random, codec)
    struct_ = manifest_schema.manifest_file_type(2)
    unit = b"".join(b"\x02a" if f.name == "manifest_path" else b"\x02" if f.required else _NULL for f in struct_.fields)
    block = count_of(unit, size), packed(codec, unit, size)
    return container(record_schema(struct_, "manifest_file"), {"format-version": "2"}, codec, [block] * blocks)


def avro_rows(random: Random, codec: str) -> bytes:
    """Rows of lists of what takes many times more memory than bytes: empty lists, records of nothing."""
    nothing: Any = random.choice(
        [
            {"type": "array", "items": "int", "element-id": 4},
            {"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "int"], "field-id": 5}]},
            ["null", "string"],
        ]
    )
    items = {"type": "array", "items": nothing, "element-id": 3}
    schema = {"type": "record", "name": "table", "fields": [{"name": "a", "type": items, "field-id": 1}]}
    size, blocks = _sizes(random, codec)
    count = random.choice([0, 100, 1 << 19])
    unit = encode_long(count) + _NULL * count + _NULL * (count > 0)
    rows = count_of(unit, size)
    if blocks > 1:
        # A row group that inflates to less than the budget is read value by value, which takes minutes. With codecs
        # that shrink little, all of them do.
        stretch, shrinks = rows * len(unit), codec not in ("snappy", "null")
        blocks = DEFAULT_BYTES // stretch + 1 if shrinks else max(8 * MIB // stretch, 1)
    return container(schema, {}, codec, [(rows, packed(codec, unit, size))] * blocks)


def avro_columns(random: Random, codec: str) -> bytes:
    """Rows of a hundred columns that are all null."""
    fields = [{"name": f"c{i}", "type": ["null", "long"], "field-id": i + 1} for i in range(100)]
    size, blocks = _sizes(random, codec)
    blocks = min(blocks, max(300 * MIB // size, 1))  # a block within the limit is read, and takes long
    schema = {"type": "record", "name": "table", "fields": fields}
    block = count_of(_NULL * 100, size), packed(codec, _NULL * 100, size)
    return container(schema, {}, codec, [block] * blocks)


def metadata(random: Random, *, compress: bool) -> bytes:
    """JSON of blanks, of text, or of empty things, plain or gzip."""
    unit = random.choice([b" ", b"{},", b"[[[]]],", b'{"":{"":0}},', b"1.5,", b'"ab",', b"x", b"\xc3\xa9"])
    size = random.choice([30, 200, 1500] if compress else [30, 100]) * MIB
    begin = b'{"format-version":2,"x":' + (b'"' if unit in (b"x", b"\xc3\xa9") else b"[")
    if not compress:
        return begin + unit * (size // len(unit))
    return gzip.compress(begin, mtime=0) + packed("gzip", unit, size)


def puffin_footer(random: Random, codec: str) -> bytes:
    """A footer of blobs without end."""
    unit = random.choice([b" ", b"{},", b"[[]],"])
    payload = packed(codec, unit, random.choice([100, 1500]) * MIB)
    return PUFFIN + PUFFIN + payload + struct.pack("<iI", len(payload), 1) + PUFFIN


def puffin_blob(random: Random, codec: str) -> bytes:
    """A blob of zeros."""
    blob = packed(codec, b"\x00", random.choice([300, 1500]) * MIB)
    payload = json.dumps(
        {
            "blobs": [
                {
                    "type": "x",
                    "fields": [],
                    "snapshot-id": 1,
                    "sequence-number": 1,
                    "offset": 4,
                    "length": len(blob),
                    "compression-codec": codec if codec == "lz4" else "zstd",
                }
            ]
        }
    ).encode()
    return PUFFIN + blob + PUFFIN + payload + struct.pack("<iI", len(payload), 0) + PUFFIN


def vector(random: Random) -> bytes:
    """Runs of all positions there are in some of the high halves."""
    positions = BitMap64()
    for key in range(random.randrange(1, 4)):
        positions.add_range(key << 32, (key + 1) << 32)
    return encode_vector(positions)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


_ORC_KINDS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (0, bytes),
    "zlib": (1, lambda body: zlib.compress(body, 9)[2:-4]),
    "snappy": (2, lambda body: bytes(cramjam.snappy.compress_raw(body))),
    "lz4": (4, lambda body: bytes(cramjam.lz4.compress_block(body, store_size=False))),
    "zstd": (5, zstandard.compress),
}


def orc_footer(random: Random, codec: str) -> bytes:
    """A footer of empty stripes, statistics or metadata, or of types inside each other, without end."""
    types = _field(4, _number(1, 12) + _field(2, b"\x01") + _field(3, b"a")) + _field(4, _number(1, 4))
    match random.randrange(5):
        case 0:
            footer = types + b"\x1a\x00" * random.choice([3_000_000, 30_000_000])
        case 1:
            footer = types + b"\x3a\x00" * random.choice([3_000_000, 30_000_000])
        case 2:
            footer = types + b"\x2a\x00" * random.choice([3_000_000, 30_000_000])
        case 3:
            depth = random.choice([1000, 100_000])
            footer = b"".join(_field(4, _number(1, 10) + _field(2, _varint(i + 1))) for i in range(depth))
            footer += _field(4, _number(1, 4))
        case _:  # round and round
            footer = _field(4, _number(1, 12) + _field(2, b"\x00") + _field(3, b"a"))
    footer = _number(1, 3) + _number(2, 3) + footer + _number(6, 0)
    kind, compress = _ORC_KINDS[codec]
    block = 262144
    stored = b""
    if kind:
        cache: dict[bytes, bytes] = {}
        for start in range(0, len(footer), block):
            part = footer[start : start + block]
            if part not in cache:
                cache[part] = compress(part)
            body = cache[part]
            stored += (len(body) << 1).to_bytes(3, "little") + body
    else:
        stored = footer
    postscript = _number(1, len(stored)) + _number(2, kind) + _number(3, block) + _field(4, b"\x00\x0c")
    postscript += _number(5, 0) + _number(6, 6) + _field(8000, b"ORC")
    return b"ORC" + stored + postscript + bytes([len(postscript)])


def _list(items: bytes, count: int) -> bytes:
    return (bytes([count << 4 | 12]) if count < 15 else b"\xfc" + _varint(count)) + items


def parquet_footer(random: Random) -> bytes:
    """A footer of column chunks, row groups, or columns without end, or of groups inside each other."""
    leaf = b"\x15\x02\x25\x02\x18\x01a\x00"
    schema, elements, groups, row_groups = b"\x35\x02\x18\x01r\x15\x02\x00" + leaf, 2, b"", 0
    chunk = b"\x26\x00\x00"
    match random.randrange(4):
        case 0:
            each, row_groups = random.choice([(1_000_000, 4), (1000, 5000)])
            groups = (b"\x19" + _list(chunk * each, each) + b"\x16\x00\x16\x00\x00") * row_groups
        case 1:
            elements = random.choice([900_000, 2_000_000])
            root = b"\x35\x02\x18\x01r\x15" + _varint(2 * (elements - 1)) + b"\x00"
            schema = root + leaf * (elements - 1)
        case 2:
            depth = random.choice([1000, 100_000])
            schema, elements = b"\x35\x02\x18\x01r\x15\x02\x00" * depth + leaf, depth + 1
        case _:
            row_groups = 50_000_000
            groups = b"\x19\x0c\x16\x00\x16\x00\x00"
    footer = b"\x15\x02\x19" + _list(schema, elements) + b"\x16\x00\x19" + _list(groups, row_groups) + b"\x00"
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def other_codec(random: Random) -> bytes:
    """Codecs of Avro that tables do not use."""
    schema = fastavro.parse_schema({"type": "record", "name": "t", "fields": [{"name": "a", "type": "bytes"}]})
    return container(schema, {}, random.choice(["bzip2", "xz", "lz4"]), [(1, random.randbytes(100))])


def kinds() -> Iterator[tuple[str, Bomb]]:
    """What is read, and what makes a file for it."""

    def with_codec(make: Callable[[Random, str], bytes], codec: str) -> Bomb:
        return lambda random: make(random, codec)

    for codec in CODECS:
        yield f"manifest {codec}", with_codec(manifest, codec)
        yield f"manifest_list {codec}", with_codec(manifest_list, codec)
        yield f"avro {codec}, by value", with_codec(avro_rows, codec)
        yield f"avro {codec}, by column", with_codec(avro_columns, codec)
    yield "manifest other", other_codec
    yield "avro other", other_codec
    yield "metadata gzip", lambda random: metadata(random, compress=True)
    yield "metadata plain", lambda random: metadata(random, compress=False)
    for codec in ("zstandard", "zstandard unsized", "lz4"):
        yield f"puffin {codec}, footer", with_codec(puffin_footer, codec)
        yield f"puffin {codec}, blob", with_codec(puffin_blob, codec)
    yield "vector", vector
    for codec in _ORC_KINDS:
        yield f"orc {codec}", with_codec(orc_footer, codec)
    yield "parquet", parquet_footer


BOMBS = dict(kinds())
