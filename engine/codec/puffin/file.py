"""Puffin files: blobs of statistics and deletion vectors (Puffin spec).

A file is magic, blobs, footer; the footer is magic, payload, payload size (4 bytes), flags (4 bytes), magic, integers
little-endian. The payload is JSON that locates the blobs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import zstandard

from icebench.engine.codec.block_codecs import BadBlockError, inflate_lz4, inflate_zstandard
from icebench.engine.codec.budget import piece_limit
from icebench.engine.codec.metadata_json.objects import JsonObject, parse_json, write_json
from icebench.engine.errors import CorruptTable, Unsupported

MAGIC = b"PFA1"
TAIL_BYTES = 12
"""Payload size, flags and magic, which end every file: all that `footer_size` needs."""

DELETION_VECTOR = "deletion-vector-v1"

Codec: TypeAlias = Literal["zstd", "lz4"]

_COMPRESSED_FOOTER = 1
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinBlob:
    """A blob's description in the footer. `length` is that of the stored bytes, compressed if there is a codec."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinFooter:
    """The footer of a file; `size_bytes` is its whole length, from magic to magic."""

    blobs: tuple[PuffinBlob, ...]
    properties: Mapping[str, str]
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBlob:
    """A blob to write. Deletion vectors have snapshot id and sequence number -1, and no compression."""

    type: str
    data: bytes
    fields: tuple[int, ...] = ()
    snapshot_id: int = -1
    sequence_number: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)
    compression: Literal["zstd"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPuffin:
    """A file's bytes and its footer; blobs are in the order in which they were passed."""

    data: bytes
    footer: PuffinFooter


def footer_size(tail: bytes, *, location: str | None = None) -> int:
    """The length in bytes of the footer of a file that ends with `tail`, of which the last 12 bytes are read.

    Raises:
        CorruptTable: The bytes are not the end of a Puffin file.
    """
    if len(tail) < TAIL_BYTES or tail[-4:] != MAGIC:
        raise CorruptTable("not the end of a Puffin file", location=location, path="footer")
    (payload,) = struct.unpack_from("<i", tail, len(tail) - TAIL_BYTES)
    if payload < 0:
        raise CorruptTable(f"a footer of {payload} bytes", location=location, path="footer")
    return len(MAGIC) + payload + TAIL_BYTES


def read_footer(data: bytes, *, location: str | None = None, file_size: int | None = None) -> PuffinFooter:
    """Decode the footer of a file.

    Args:
        data: The whole file, or at least the footer at its end.
        location: For messages.
        file_size: The length of the whole file if `data` is only its end.

    Raises:
        CorruptTable: The bytes contradict the specification, or a blob is outside the file.
        Unsupported: A flag that the specification does not define.
    """
    size = footer_size(data, location=location)
    begin = len(data) - size
    if begin < 0 or data[begin : begin + 4] != MAGIC:
        raise CorruptTable("the footer has no magic where it begins", location=location, path="footer")
    if file_size is None and not data.startswith(MAGIC):
        raise CorruptTable("not a Puffin file", location=location)
    (flags,) = struct.unpack_from("<I", data, len(data) - 8)
    if flags & ~_COMPRESSED_FOOTER:
        raise Unsupported(f"the Puffin footer flags {flags:#x} of {location or 'a file'}")
    payload = data[begin + 4 : -TAIL_BYTES]
    if flags & _COMPRESSED_FOOTER:
        codec = "zstd" if payload.startswith(_ZSTD_MAGIC) else "lz4"
        payload = _inflate(codec, payload, location, "footer")
    node = JsonObject(parse_json(payload, location=location, file_size=size), path="footer", location=location)
    blobs_end = (len(data) if file_size is None else file_size) - size
    blobs = tuple(_blob_from_json(child, blobs_end) for child in node.children("blobs"))
    return PuffinFooter(blobs=blobs, properties=node.text_map("properties"), size_bytes=size)


def _blob_from_json(node: JsonObject, blobs_end: int) -> PuffinBlob:
    blob = PuffinBlob(
        type=node.text("type"),
        fields=node.int32s("fields"),
        snapshot_id=node.int64("snapshot-id"),
        sequence_number=node.int64("sequence-number"),
        offset=node.int64("offset"),
        length=node.int64("length"),
        compression_codec=node.text_or_none("compression-codec"),
        properties=node.text_map("properties"),
    )
    if blob.offset < len(MAGIC) or blob.length < 0 or blob.offset + blob.length > blobs_end:
        raise node.error("offset", f"{blob.length} bytes at {blob.offset} are not inside the file")
    return blob


def read_blob(data: bytes, blob: PuffinBlob, *, location: str | None = None) -> bytes:
    """Decode the content of a blob of a whole file; raises as `decode_blob`."""
    return decode_blob(data[blob.offset : blob.offset + blob.length], blob, location=location)


def decode_blob(stored: bytes, blob: PuffinBlob, *, location: str | None = None) -> bytes:
    """Decode the content of a blob from its stored bytes.

    Raises:
        CorruptTable: The bytes are too few, or do not decompress.
        Unsupported: A codec that the specification does not name.
    """
    path = f"blob at {blob.offset}"
    if len(stored) != blob.length:
        raise CorruptTable(f"{len(stored)} bytes instead of {blob.length}", location=location, path=path)
    if blob.compression_codec is None:
        return stored
    return _inflate(blob.compression_codec, stored, location, path)


def _inflate(codec: str, data: bytes, location: str | None, path: str) -> bytes:
    try:
        match codec:
            case "zstd":
                return inflate_zstandard(data, piece_limit(len(data)))
            case "lz4":
                return inflate_lz4(data, piece_limit(len(data)))
    except BadBlockError as error:
        raise error.at(location, path) from error
    raise Unsupported(f"the Puffin codec {codec!r} of {location or 'a file'}")


def write_puffin(blobs: Iterable[NewBlob], *, properties: Mapping[str, str] | None = None) -> EncodedPuffin:
    """Encode a Puffin file of these blobs with an uncompressed footer; `properties` should name the writer as
    `created-by`."""
    parts = [MAGIC]
    offset = len(MAGIC)
    described: list[PuffinBlob] = []
    for blob in blobs:
        stored = blob.data if blob.compression is None else zstandard.ZstdCompressor().compress(blob.data)
        described.append(
            PuffinBlob(
                type=blob.type,
                fields=blob.fields,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                offset=offset,
                length=len(stored),
                compression_codec=blob.compression,
                properties=dict(blob.properties),
            )
        )
        parts.append(stored)
        offset += len(stored)
    written = dict(properties or {})
    footer = _encode_footer(described, written)
    made = PuffinFooter(blobs=tuple(described), properties=written, size_bytes=len(footer))
    return EncodedPuffin(data=b"".join([*parts, footer]), footer=made)


def with_blob_properties(
    data: bytes, changed: Callable[[Mapping[str, str]], Mapping[str, str]], *, location: str | None = None
) -> bytes:
    """The same file with other properties of its blobs, which keep their offsets; raises as `read_footer`."""
    footer = read_footer(data, location=location)
    blobs = [replace(blob, properties=changed(blob.properties)) for blob in footer.blobs]
    return data[: len(data) - footer.size_bytes] + _encode_footer(blobs, footer.properties)


def _encode_footer(blobs: Iterable[PuffinBlob], properties: Mapping[str, str]) -> bytes:
    payload = write_json({"blobs": [_blob_to_json(blob) for blob in blobs], "properties": dict(properties)})
    return MAGIC + payload + struct.pack("<iI", len(payload), 0) + MAGIC


def _blob_to_json(blob: PuffinBlob) -> dict[str, object]:
    made: dict[str, object] = {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
    }
    if blob.compression_codec is not None:
        made["compression-codec"] = blob.compression_codec
    if blob.properties:
        made["properties"] = dict(blob.properties)
    return made
