"""Checks a manifest against its entry in the manifest list: its length and its counts (spec: "Manifest Lists").

Avro has no checksum. These checks detect a manifest that was cut off at the end of a block, an entry that lost its
status or record count, and another file in the manifest's place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.errors import CorruptTable
from engine.spec.manifest import EntryStatus, ManifestFile


def check_length(listed: ManifestFile, size_bytes: int) -> None:
    """Raise CorruptTable unless the manifest has the length that its list states."""
    if size_bytes != listed.manifest_length:
        reason = f"has {size_bytes} bytes, and its manifest list says {listed.manifest_length}"
        raise CorruptTable(reason, location=listed.manifest_path)


def entry_count(listed: ManifestFile) -> int | None:
    """The number of entries of a manifest according to its list; None if the list lacks a count."""
    counts = listed.added_files_count, listed.existing_files_count, listed.deleted_files_count
    return None if None in counts else sum(count for count in counts if count is not None)


def check_counts(listed: ManifestFile, status: NDArray[np.integer], record_count: NDArray[np.integer]) -> None:
    """Raise CorruptTable unless the numbers of files and rows of each status are those that the list states.

    Args:
        listed: The manifest's entry in its list. Counts that a v1 writer left out are not checked.
        status: `EntryStatus` codes, one per entry.
        record_count: Rows, one per entry.
    """
    told = {
        EntryStatus.ADDED: (listed.added_files_count, listed.added_rows_count),
        EntryStatus.EXISTING: (listed.existing_files_count, listed.existing_rows_count),
        EntryStatus.DELETED: (listed.deleted_files_count, listed.deleted_rows_count),
    }
    for code, (files, rows) in told.items():
        own = status == code
        for what, expected, found in (
            ("files", files, int(np.count_nonzero(own))),
            ("rows", rows, int(record_count[own].sum(dtype=np.int64))),
        ):
            if expected is not None and expected != found:
                reason = f"has {found} {code.name.lower()} {what}, and its manifest list says {expected}"
                raise CorruptTable(reason, location=listed.manifest_path)
