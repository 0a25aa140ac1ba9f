"""Metadata files of tables and views: JSON, plain or gzip (spec: "Metadata files"; the view spec allows the same)."""

from __future__ import annotations

import gzip
import zlib

from engine.codec.json_object import JsonValue, parse_json
from engine.errors import CorruptTable

_GZIP_MAGIC = b"\x1f\x8b"


def parse_json_file(data: bytes, *, location: str | None = None) -> JsonValue:
    """The value in a metadata file; gzip is recognised by its first bytes, whatever the file is named.

    Raises:
        CorruptTable: Broken gzip, not JSON, or nested too deeply.
    """
    if data.startswith(_GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise CorruptTable(f"not valid gzip: {error}", location=location) from error
    return parse_json(data, location=location)


def compressed(text: bytes) -> bytes:
    """The text as gzip; the same text gives the same bytes."""
    return gzip.compress(text, mtime=0)
