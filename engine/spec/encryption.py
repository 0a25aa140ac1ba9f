"""Tables whose files are encrypted (spec: "Encryption keys"). This engine neither reads nor writes such files."""

from __future__ import annotations

from icebench.engine.errors import Unsupported
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import ENCRYPTION_KEY_ID


def check_not_encrypted(metadata: TableMetadata) -> None:
    """Raises Unsupported for a table that asks for encrypted files, in which what this engine writes could be read by
    everybody who reaches the files: rows, and bounds of columns in manifests and statistics."""
    key = ENCRYPTION_KEY_ID.of(metadata.properties)
    if key or metadata.encryption_keys:
        asks = f"{ENCRYPTION_KEY_ID.name}={key!r}" if key else "it has encryption keys"
        raise Unsupported(f"writing the encrypted table at {metadata.location} ({asks}): its files would be readable")
