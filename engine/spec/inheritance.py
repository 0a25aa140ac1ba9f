"""What manifest entries inherit (spec: "Sequence Number Inheritance", "First Row ID Inheritance", "Snapshot ID
Inheritance"): writers leave numbers out that are known only when a commit succeeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from icebench.engine.errors import CorruptTable
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile

_MOST_ROW_IDS = 2**63 - 1


def apply_inheritance(entries: Iterable[ManifestEntry], manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """The entries of a manifest, in their order, with nothing left to inherit.

    Raises:
        CorruptTable: An entry that was not added by this manifest lacks a sequence number, or row ids exceed a long.
    """
    numbers_rows = manifest.first_row_id is not None and manifest.content is ManifestContent.DATA
    next_row_id = manifest.first_row_id or 0
    for entry in entries:
        data_file = replace(entry.data_file, spec_id=manifest.partition_spec_id)
        if numbers_rows and data_file.first_row_id is None and entry.status is not EntryStatus.DELETED:
            data_file = replace(data_file, first_row_id=next_row_id)
            next_row_id += data_file.record_count
            if next_row_id > _MOST_ROW_IDS:
                raise row_ids_exceed_long(manifest)
        yield ManifestEntry(
            status=entry.status,
            snapshot_id=manifest.added_snapshot_id if entry.snapshot_id is None else entry.snapshot_id,
            sequence_number=_number(entry, entry.sequence_number, manifest),
            file_sequence_number=_number(entry, entry.file_sequence_number, manifest),
            data_file=data_file,
        )


def row_ids_exceed_long(manifest: ManifestFile) -> CorruptTable:
    """The error for a manifest that gives row ids beyond a long."""
    return CorruptTable(f"row ids from {manifest.first_row_id} exceed a long", location=manifest.manifest_path)


def _number(entry: ManifestEntry, own: int | None, manifest: ManifestFile) -> int:
    if own is not None:
        return own
    if entry.status is EntryStatus.ADDED or manifest.sequence_number == 0:  # v1 has no numbers: all are 0
        return manifest.sequence_number
    raise CorruptTable(
        f"{entry.data_file.file_path} has status {entry.status.name} and no sequence number",
        location=manifest.manifest_path,
    )
