"""Avro object container files (Avro spec: "Object Container Files"): headers and block ranges."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from icebench.engine.codec.avro.schema import AvroSchema
from icebench.engine.codec.block_codecs import Buffer
from icebench.engine.codec.metadata_json.objects import parse_json, write_json
from icebench.engine.errors import CorruptTable

MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_MAX_VARINT_BYTES = 10


@dataclass(frozen=True, slots=True)
class AvroBlock:
    """One block: the number of objects it claims, and the range of its compressed bytes in the file."""

    index: int
    count: int
    start: int
    end: int


@dataclass(frozen=True)
class AvroHeader:
    """The header of a file. `size` is its length in bytes: the offset of the first block."""

    metadata: Mapping[str, bytes]
    sync: bytes
    size: int
    location: str | None = None

    @property
    def codec(self) -> str:
        """The Avro name of the block codec."""
        return self.metadata.get("avro.codec", b"null").decode("latin-1") or "null"

    @cached_property
    def schema_json(self) -> bytes:
        """The text of the writer schema; raises CorruptTable when there is none."""
        text = self.metadata.get("avro.schema")
        if text is None:
            raise CorruptTable("the Avro header has no schema", location=self.location, path="header")
        return text

    @cached_property
    def schema(self) -> AvroSchema:
        """The writer schema; raises CorruptTable when it is not JSON."""
        return parse_json(self.schema_json, location=self.location)

    def text(self, key: str) -> str | None:
        """A UTF-8 metadata value, None when absent; raises CorruptTable when it is not UTF-8."""
        value = self.metadata.get(key)
        try:
            return None if value is None else value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorruptTable("is not UTF-8", location=self.location, path=f"header.{key}") from error


class _Cursor:
    """Reads Avro primitives of the container itself; every failure is a CorruptTable at a byte position."""

    def __init__(self, data: bytes, location: str | None) -> None:
        self.data = data
        self.location = location
        self.position = 0

    def error(self, reason: str) -> CorruptTable:
        return CorruptTable(reason, location=self.location, path=f"byte {self.position}")

    def long(self) -> int:
        value, end = _read_long(self.data, self.position)
        if end < 0:
            raise self.error("a number is cut off or too long")
        self.position = end
        return value

    def take(self, size: int) -> bytes:
        start, end = self.position, self.position + size
        if size < 0 or end > len(self.data):
            raise self.error(f"{size} bytes are promised and {len(self.data) - start} left")
        self.position = end
        return self.data[start:end]


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    """Decode an Avro long, of 64 bits; returns it and the position after it, which is negative if there is none."""
    value = shift = 0
    for byte in data[position : position + _MAX_VARINT_BYTES]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((value >> 1) ^ -(value & 1), position) if value < 1 << 64 else (0, -1)
        shift += 7
    return 0, -1


def read_header(data: bytes, *, location: str | None = None) -> AvroHeader:
    """Decode the header of a container file; `data` may be just its beginning.

    Raises:
        CorruptTable: The bytes are not an Avro file, or the header is cut off.
    """
    cursor = _Cursor(data, location)
    if cursor.take(min(4, len(data))) != MAGIC:
        raise CorruptTable("not an Avro file", location=location)
    metadata: dict[str, bytes] = {}
    while count := cursor.long():
        if count < 0:
            count = -count
            cursor.long()
        for _ in range(count):
            key = cursor.take(cursor.long())
            metadata[key.decode("utf-8", "replace")] = cursor.take(cursor.long())
    sync = cursor.take(_SYNC_SIZE)
    return AvroHeader(metadata, sync, cursor.position, location)


def read_headers(files: Iterable[tuple[bytes, str | None]]) -> list[AvroHeader]:
    """Decode the headers of files with their locations, which are mostly of one writer: those that begin as the one
    before share its metadata, and have their own sync markers. Raises as `read_header`."""
    found: list[AvroHeader] = []
    shared = b""
    for data, location in files:
        if shared and data.startswith(shared) and len(data) >= found[-1].size:
            one = found[-1]
            found.append(AvroHeader(one.metadata, data[len(shared) : one.size], one.size, location))
        else:
            found.append(read_header(data, location=location))
            shared = data[: found[-1].size - _SYNC_SIZE]
    return found


def read_blocks(data: bytes, header: AvroHeader) -> tuple[AvroBlock, ...]:
    """List the blocks, checking the sync markers.

    Raises:
        CorruptTable: A block is cut off, has a negative size or count, or a sync marker is wrong.
    """
    blocks: list[AvroBlock] = []
    position = header.size
    while position < len(data):
        count, start = _read_long(data, position)
        size, start = _read_long(data, start) if start >= 0 else (0, -1)
        end = start + size
        if start < 0 or count < 0 or size < 0 or end + _SYNC_SIZE > len(data):
            reason = "the block is cut off, or has a negative size or count"
            raise CorruptTable(reason, location=header.location, path=f"block {len(blocks)}")
        position = end + _SYNC_SIZE
        if data[end:position] != header.sync:
            reason = "the sync marker after the block is wrong"
            raise CorruptTable(reason, location=header.location, path=f"block {len(blocks)}")
        blocks.append(AvroBlock(len(blocks), count, start, end))
    return tuple(blocks)


def encode_long(value: int) -> bytes:
    """Encode an Avro int or long: zigzag, then seven bits per byte."""
    rest = (value << 1) ^ (value >> 63)
    made = bytearray()
    while rest > 0x7F:
        made.append((rest & 0x7F) | 0x80)
        rest >>= 7
    made.append(rest)
    return bytes(made)


def encode_bytes(value: bytes) -> bytes:
    """Encode Avro bytes or string: the length, then the bytes."""
    return encode_long(len(value)) + value


def encode_container(
    schema: AvroSchema, metadata: Mapping[str, str], codec: str, blocks: Iterable[tuple[int, Buffer]]
) -> bytes:
    """Encode a container file of compressed blocks, each with its object count.

    The sync marker is a digest of the header instead of a random number: the same content gives the same bytes.
    """
    header, sync = encode_header(schema, metadata, codec)
    return b"".join([header, *(part for count, block in blocks for part in encode_block(count, block, sync))])


def encode_header(schema: AvroSchema, metadata: Mapping[str, str], codec: str) -> tuple[bytes, bytes]:
    """Encode the header of a container file; returns its sync marker, too."""
    entries = {
        "avro.schema": write_json(schema),
        "avro.codec": codec.encode(),
        **{key: value.encode("utf-8") for key, value in metadata.items()},
    }
    header = MAGIC + encode_long(len(entries))
    header += b"".join(encode_bytes(key.encode()) + encode_bytes(value) for key, value in entries.items()) + b"\x00"
    sync = hashlib.blake2b(header, digest_size=_SYNC_SIZE).digest()
    return header + sync, sync


def encode_block(count: int, block: Buffer, sync: bytes) -> tuple[Buffer, ...]:
    """The parts of a compressed block of that many objects, in order."""
    return encode_long(count) + encode_long(len(block)), block, sync
