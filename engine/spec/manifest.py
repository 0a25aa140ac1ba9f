"""Manifest entries and manifest-list entries (spec: "Manifests", "Manifest Lists")."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from icebench.engine.spec.data_file import DataFile


class EntryStatus(IntEnum):
    """What a manifest says of a file; DELETED entries are not part of the table."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class ManifestContent(IntEnum):
    """Which kind of files a manifest lists."""

    DATA = 0
    DELETES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """A file in a manifest. None for the id or a sequence number means: inherited from the manifest-list entry."""

    status: EntryStatus
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None
    data_file: DataFile


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFieldSummary:
    """What the values of one partition field are across a manifest; bounds are binary single values."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A manifest as its manifest list describes it. Counts are None where a v1 writer left them out."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: int
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[PartitionFieldSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None
