"""Metadata files of tables and views: JSON, plain or gzip (spec: "Metadata files"; the view spec allows the same)."""

from __future__ import annotations

import gzip
import io
import zlib

from icebench.engine.codec.budget import budget_of, too_large
from icebench.engine.codec.metadata_json.objects import JSON_COPIES, JsonValue, parse_json
from icebench.engine.errors import CorruptTable

_GZIP_MAGIC = b"\x1f\x8b"


def parse_json_file(data: bytes, *, location: str | None = None) -> JsonValue:
    """Parse the value in a metadata file; gzip is recognised by its first bytes, whatever the name of the file.

    Raises:
        CorruptTable: Broken gzip, not JSON, or nested too deeply.
        TooLarge: See `icebench.engine.codec.budget`.
    """
    text = _inflate(data, location) if data.startswith(_GZIP_MAGIC) else data
    return parse_json(text, location=location, file_size=len(data))


def _inflate(data: bytes, location: str | None) -> bytes:
    limit = budget_of(len(data)) // JSON_COPIES
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise CorruptTable(f"not valid gzip: {error}", location=location) from error
    if len(text) > limit:
        raise too_large(f"gzip of {len(data)} bytes", limit, location=location)
    return text


def gzip_text(text: bytes) -> bytes:
    """Compress the text by gzip; the same text gives the same bytes."""
    return gzip.compress(text, mtime=0)
