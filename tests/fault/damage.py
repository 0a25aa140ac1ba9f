"""Ways to damage a file: blind ones, which know bytes, and knowing ones, which keep the frame of a format whole."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeAlias

from icebench.engine.codec.avro.file import encode_long, read_blocks, read_header
from icebench.engine.codec.block_codecs import AVRO_NAMES, Inflater, compress_block
from icebench.engine.codec.puffin.file import MAGIC as PUFFIN_MAGIC
from icebench.engine.codec.puffin.file import footer_size

Damage: TypeAlias = Callable[[Random, bytes], bytes]

_HUGE = [
    encode_long((1 << 63) - 1),
    encode_long(-(1 << 63)),
    encode_long((1 << 31) - 1),
    encode_long(1 << 40),
    b"\xff" * 10,
    b"\xff\xff\xff\x7f",
    b"\x7f\xff\xff\xff",
    b"\xff" * 4,
    b"\xff" * 7 + b"\x7f",
    b"\x80" * 9 + b"\x01",
    # Thrift's compact protocol: zigzag numbers, and the head of a list of a million structs.
    b"\xfe\xff\xff\xff\x0f",
    b"\xfc\x80\x89\x7a",
    b"\x00" * 8,
]
"""Numbers that promise more than there is, in the encodings of the formats."""
_BOMB_BYTES = 48 << 20
_ORC_TAIL_BYTES = 600
"""About what the tails of the specimens take."""
_ODD_VALUES: list[Any] = [
    None, True, -1, 0, 1, 1 << 31, 1 << 63, 1 << 70, 1.5, "", "x", "9" * 30, "\ud800", [], [[]], {}, {"id": 1},
    "decimal(99,99)", "bucket[0]", "s3://elsewhere/x", "memory://wh/none", [[[[[[1]]]]]],
]  # fmt: skip


def truncated(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data))]


def flipped(random: Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(random.randrange(1, 5)):
        made[random.randrange(len(made))] ^= 1 << random.randrange(8)
    return bytes(made)


def overwritten(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data))
    length = min(random.randrange(1, 17), len(data) - start)
    fill = random.choice([b"\x00", b"\xff", b"\x7f", b"\x80"]) * length
    return data[:start] + random.choice([fill, random.randbytes(length)]) + data[start + length :]


def spliced(random: Random, data: bytes) -> bytes:
    """A stretch copied over another, or put in, or doubled, or left out."""
    source, target = random.randrange(len(data)), random.randrange(len(data))
    stretch = data[source : source + random.randrange(1, 200)]
    replaced = random.choice([0, len(stretch)])
    return random.choice(
        [data[:target] + stretch + data[target + replaced :], data[:source] + data[source + len(stretch) :]]
    )


def exaggerated(random: Random, data: bytes) -> bytes:
    """A number that is too large, over what was there or put in."""
    huge = random.choice(_HUGE)
    start = random.randrange(len(data))
    return data[:start] + huge + data[start + random.choice([0, len(huge)]) :]


def lengthened(random: Random, data: bytes) -> bytes:
    return data + random.choice([random.randbytes(random.randrange(1, 40)), data[-random.randrange(1, 40) :], data])


BLIND: tuple[Damage, ...] = (truncated, flipped, overwritten, spliced, exaggerated, lengthened)


def inside_avro(random: Random, data: bytes) -> bytes:
    """The objects of a block damaged and compressed again, so that only decoding can find out."""
    return _with_block(data, lambda body, count: (random.choice(BLIND[:5])(random, body) if body else body, count))


def avro_count(random: Random, data: bytes) -> bytes:
    """A block that has another number of objects than it says."""
    count = random.choice([0, 1, 2, 1 << 20, 1 << 40, (1 << 63) - 1])
    return _with_block(data, lambda body, _: (body, count))


def avro_bomb(random: Random, data: bytes) -> bytes:
    """A small block that inflates to megabytes."""
    fill = random.choice([b"\x00", b"\x02", b"\xff", b"\x80"])
    return _with_block(data, lambda body, count: (body + fill * _BOMB_BYTES, random.choice([count, _BOMB_BYTES])))


def avro_header(random: Random, data: bytes) -> bytes:
    """Another codec or a damaged schema."""
    header = read_header(data)
    metadata = dict(header.metadata)
    if random.random() < 0.3:
        metadata["avro.codec"] = random.choice([*AVRO_NAMES.values(), "bzip2", "x" * 1000]).encode()
    else:
        key = random.choice([name for name in metadata if metadata[name].startswith(b"{")] or ["avro.schema"])
        metadata[key] = _json_damaged(random, metadata[key])
    made = bytearray(data[:4] + encode_long(len(metadata)))
    for name, value in metadata.items():
        made += encode_long(len(name)) + name.encode() + encode_long(len(value)) + value
    return bytes(made) + b"\x00" + header.sync + data[header.size :]


def _with_block(data: bytes, change: Callable[[bytes, int], tuple[bytes, int]]) -> bytes:
    header = read_header(data)
    first, *rest = read_blocks(data, header)
    body, count = change(bytes(Inflater(header.codec, 1 << 30)(data[first.start : first.end])), first.count)
    packed = bytes(compress_block(header.codec, body))
    end = data[rest[0].start :] if rest else b""
    return data[: header.size] + encode_long(count) + encode_long(len(packed)) + packed + header.sync + end


def inside_json(random: Random, data: bytes) -> bytes:
    """A member changed, left out, doubled or given an odd value."""
    return _json_damaged(random, data)


def json_bomb(random: Random, data: bytes) -> bytes:
    """Depth without end, or gzip that inflates to megabytes."""
    deep = b"[" * 100_000
    return random.choice(
        [deep, b'{"a":' * 50_000, data[:-1] + b',"x":' + deep, gzip.compress(b" " * _BOMB_BYTES + data)]
    )


def _json_damaged(random: Random, text: bytes) -> bytes:
    document = json.loads(text)
    places = list(_places(document))
    holder, key = random.choice(places)
    match random.randrange(4):
        case 0:
            del holder[key]
        case 1 | 2:
            holder[key] = random.choice(_ODD_VALUES)
        case _:
            other_holder, other_key = random.choice(places)
            holder[key] = json.loads(json.dumps(other_holder[other_key]))
    return json.dumps(document).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(members):
        yield value, key
        yield from _places(inner)


def puffin_footer(random: Random, data: bytes) -> bytes:
    """A damaged payload in a whole footer."""
    size = footer_size(data)
    payload = _json_damaged(random, data[len(data) - size + 4 : -12])
    return data[: len(data) - size + 4] + payload + struct.pack("<iI", len(payload), 0) + PUFFIN_MAGIC


def vector_resealed(random: Random, data: bytes) -> bytes:
    """A damaged bitmap with the checksum that fits it."""
    (length,) = struct.unpack_from(">I", data, 4)
    body = (
        flipped(random, data[12 : 8 + length]) if random.random() < 0.7 else exaggerated(random, data[12 : 8 + length])
    )
    body = (data[8:12] + body)[:length].ljust(length, b"\x00")
    return data[:8] + body + zlib.crc32(body).to_bytes(4, "big") + data[12 + length :]


def parquet_footer(random: Random, data: bytes) -> bytes:
    """Damage in the footer alone, whose length is kept true."""
    (length,) = struct.unpack_from("<I", data, len(data) - 8)
    footer = random.choice([flipped, overwritten, spliced, exaggerated])(random, data[-8 - length : -8])
    return data[: -8 - length] + footer + struct.pack("<I", len(footer)) + data[-4:]


def parquet_pages(random: Random, data: bytes) -> bytes:
    """Damage before the footer alone, of the same length."""
    (length,) = struct.unpack_from("<I", data, len(data) - 8)
    return random.choice([flipped, overwritten])(random, data[: -8 - length]) + data[-8 - length :]


def orc_tail(random: Random, data: bytes) -> bytes:
    """Damage in the tail alone: statistics, footer and postscript, of the same length."""
    start = max(len(data) - _ORC_TAIL_BYTES, 0)
    return data[:start] + random.choice([flipped, overwritten])(random, data[start:])


def orc_stripes(random: Random, data: bytes) -> bytes:
    """Damage before the tail alone, of the same length."""
    end = max(len(data) - _ORC_TAIL_BYTES, 1)
    return random.choice([flipped, overwritten])(random, data[:end]) + data[end:]


def digits(random: Random, data: bytes) -> bytes:
    """Another version hint."""
    return random.choice(
        [b"0", b"1", b"2", b"99", b"-1", b"9" * 50, b"", b"v3", b"\xff\xfe", "٣".encode(), b"3\n", b" 2 "]
    )


_AVRO = (inside_avro, inside_avro, avro_count, avro_header, avro_bomb)
_PARQUET = (parquet_footer, parquet_footer, parquet_pages, parquet_pages)
_JSON = (inside_json, inside_json, inside_json, json_bomb)
DAMAGES: dict[str, tuple[Damage, ...]] = {
    "table metadata": (*BLIND, *_JSON),
    "view metadata": (*BLIND, *_JSON),
    "rest answer": (*BLIND, *_JSON),
    "version hint": (*BLIND, digits),
    "manifest list": (*BLIND, *_AVRO),
    "data manifest": (*BLIND, *_AVRO),
    "delete manifest": (*BLIND, *_AVRO),
    "data file": (*BLIND, *_PARQUET),
    "orc data file": (*BLIND, orc_tail, orc_tail, orc_stripes, orc_stripes),
    "avro data file": (*BLIND, *_AVRO),
    "position-delete file": (*BLIND, *_PARQUET),
    "equality-delete file": (*BLIND, *_PARQUET),
    "deletion vector": (*BLIND, puffin_footer, vector_resealed),
}
"""What is done to a file of each kind."""


def damaged(kind: str, data: bytes, seed: str) -> tuple[str, bytes]:
    """The name of a damage drawn for that seed, and the damaged bytes, which differ from `data`."""
    random = Random(seed)
    while True:
        damage = random.choice(DAMAGES[kind])
        made = damage(random, data)
        if made != data:
            return damage.__name__, made
