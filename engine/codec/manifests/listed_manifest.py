"""A manifest against its entry in the manifest list: its length and its counts (spec: "Manifest Lists").

Avro has no checksum of its own, so these are what tells that a manifest was cut off at the end of a block, that an
entry lost its status or its record count, or that another file lies where the manifest should.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.errors import CorruptTable
from engine.spec.manifest import EntryStatus, ManifestFile


def check_length(listed: ManifestFile, size_bytes: int) -> None:
    """Raises CorruptTable unless the manifest is as long as its list says."""
    if size_bytes != listed.manifest_length:
        reason = f"has {size_bytes} bytes, and its manifest list says {listed.manifest_length}"
        raise CorruptTable(reason, location=listed.manifest_path)


def entry_count(listed: ManifestFile) -> int | None:
    """How many entries the list says that the manifest has; None where it leaves a count out."""
    counts = listed.added_files_count, listed.existing_files_count, listed.deleted_files_count
    return None if None in counts else sum(count for count in counts if count is not None)


def check_counts(listed: ManifestFile, status: NDArray[np.integer], record_count: NDArray[np.integer]) -> None:
    """Raises CorruptTable unless there are as many files and rows of each status as the list says, where it does.

    Args:
        listed: The manifest's entry in its list. Counts that a v1 writer left out are not checked.
        status: `EntryStatus` codes, one an entry.
        record_count: Rows, one an entry.
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
