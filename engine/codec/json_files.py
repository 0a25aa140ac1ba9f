"""Metadata files of tables and views: JSON, plain or gzip (spec: "Metadata files"; the view spec allows the same)."""

from __future__ import annotations

import gzip
import io
import zlib

from engine.codec.json_object import JsonValue, parse_json
from engine.errors import CorruptTable

_GZIP_MAGIC = b"\x1f\x8b"
_LIMIT_FLOOR = 64 * 1024 * 1024
_MAX_RATIO = 100
"""Metadata of ten thousand snapshots shrinks thirtyfold; gzip can reach 1032, which no memory is made for."""


def parse_json_file(data: bytes, *, location: str | None = None) -> JsonValue:
    """The value in a metadata file; gzip is recognised by its first bytes, whatever the file is named.

    Raises:
        CorruptTable: Broken gzip, not JSON, or nested too deeply.
    """
    if data.startswith(_GZIP_MAGIC):
        data = _inflated(data, location)
    return parse_json(data, location=location)


def _inflated(data: bytes, location: str | None) -> bytes:
    limit = max(_LIMIT_FLOOR, len(data) * _MAX_RATIO)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise CorruptTable(f"not valid gzip: {error}", location=location) from error
    if len(text) > limit:
        raise CorruptTable(f"gzip of {len(data)} bytes that inflates to more than {limit}", location=location)
    return text


def compressed(text: bytes) -> bytes:
    """The text as gzip; the same text gives the same bytes."""
    return gzip.compress(text, mtime=0)
