"""Snapshots, references and logs (spec: "Snapshots", "Snapshot References", "Snapshot Log", "Metadata Log")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from icebench.engine.errors import Unsupported

MAIN = "main"
"""The branch that is the table's current state."""

Operation = Literal["append", "replace", "overwrite", "delete"]

MOST_LONG = (1 << 63) - 1
"""The largest snapshot id of the specification."""

COUNT_DIGITS = 19
"""Of the largest long: no writer counts further."""


def count_of(text: str | None) -> int | None:
    """The count in a snapshot summary or a blob property; None for any other text."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > COUNT_DIGITS:
        return None
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a table at one commit.

    `manifest_list` is None only in v1 tables that list `manifests` inline. `sequence_number` is 0 in v1.
    """

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int
    manifest_list: str | None
    manifests: tuple[str, ...] = ()
    operation: Operation | None
    summary: Mapping[str, str] = field(default_factory=dict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None


def check_snapshot_ids(snapshots: Iterable[Snapshot], purpose: str) -> None:
    """Raise Unsupported for an id beyond a long: manifests cannot name it, so nothing finds what the snapshot added."""
    for snapshot in snapshots:
        if snapshot.snapshot_id > MOST_LONG:
            raise Unsupported(f"{purpose} with snapshot id {snapshot.snapshot_id}, which is beyond a long")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRef:
    """A branch or a tag with its retention; None means the table's default."""

    snapshot_id: int
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLogEntry:
    """When a snapshot became current."""

    timestamp_ms: int
    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogEntry:
    """A former metadata file."""

    timestamp_ms: int
    metadata_file: str
