"""A small Avro writer that makes every choice the specification leaves open: how lists and maps are cut into blocks,
whether a block says its size, how objects are cut into file blocks. Values of unions are (branch, value)."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cramjam
import zstandard

SYNC = bytes(range(16))


@dataclass(frozen=True, kw_only=True)
class Style:
    """How to write. `items_per_block` 0 puts all items into one block."""

    items_per_block: int = 0
    sized_blocks: bool = False
    objects_per_block: int = 100
    codec: str = "deflate"


def long(value: int) -> bytes:
    """Zigzag and seven bits a byte."""
    rest = value * 2 if value >= 0 else -value * 2 - 1
    made = bytearray()
    while rest > 127:
        made.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*made, rest])


def raw_bytes(value: bytes) -> bytes:
    return long(len(value)) + value


_LEAVES: dict[str, Callable[[Any], bytes]] = {
    "null": lambda _: b"",
    "boolean": lambda value: bytes([value]),
    "int": long,
    "long": long,
    "enum": long,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "string": lambda value: raw_bytes(value.encode("utf-8")),
    "bytes": raw_bytes,
    "fixed": bytes,
}


class Writer:
    """Writes values of one schema; named types are remembered."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._names: dict[str, Any] = {}

    def value(self, schema: Any, value: Any) -> bytes:
        if isinstance(schema, list):
            branch, inner = value
            return long(branch) + self.value(schema[branch], inner)
        if isinstance(schema, str):
            schema = self._names.get(schema, {"type": schema})
        if "name" in schema:
            self._names[schema["name"]] = schema
        kind = schema["type"]
        if kind in _LEAVES:
            return _LEAVES[kind](value)
        match kind:
            case "record":
                return b"".join(self.value(f["type"], value[f["name"]]) for f in schema["fields"])
            case "array":
                return self._items([self.value(schema["items"], item) for item in value])
            case "map":
                pairs = value.items()
                return self._items([raw_bytes(k.encode("utf-8")) + self.value(schema["values"], v) for k, v in pairs])
        raise AssertionError(schema)

    def _items(self, items: Sequence[bytes]) -> bytes:
        made = b""
        for block in _cut(items, self._style.items_per_block or max(len(items), 1)):
            body = b"".join(block)
            if self._style.sized_blocks:
                made += long(-len(block)) + long(len(body)) + body
            else:
                made += long(len(block)) + body
        return made + b"\x00"


def _cut(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def container(schema: Any, objects: Sequence[Any], metadata: Mapping[str, str], style: Style) -> bytes:
    """A container file."""
    writer = Writer(style)
    entries = {
        "avro.schema": json.dumps(schema).encode(),
        "avro.codec": style.codec.encode(),
        **{key: value.encode() for key, value in metadata.items()},
    }
    made = b"Obj\x01" + long(len(entries))
    made += b"".join(raw_bytes(key.encode()) + raw_bytes(value) for key, value in entries.items()) + b"\x00" + SYNC
    for block in _cut(objects, style.objects_per_block):
        body = compress(style.codec, b"".join(writer.value(schema, one) for one in block))
        made += long(len(block)) + long(len(body)) + body + SYNC
    return made


def compress(codec: str, body: bytes) -> bytes:
    match codec:
        case "deflate":
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            return packer.compress(body) + packer.flush()
        case "snappy":
            return bytes(cramjam.snappy.compress_raw(body)) + zlib.crc32(body).to_bytes(4, "big")
        case "zstandard":
            return zstandard.ZstdCompressor().compress(body)
    return body
