"""Checks a manifest against its entry in the manifest list: its length and its counts (spec: "Manifest Lists").

Avro has no checksum, and a manifest that was cut off at the end of a block is a smaller manifest. So the list is needed
to know whether a manifest is whole. Some writers record a wrong length or wrong counts; some tools rewrite manifests
without their list. Therefore one of the two suffices:

- The counts agree: no entry is missing, whatever the length.
- The length agrees, and the number of entries does not: nothing was cut off, and damage to a manifest of this length
  would not have left more or fewer entries that decode exactly. The list is wrong. If only their status or rows differ,
  an entry may be damaged, unless the live files and rows are as many.

Whatever differs, some added entry must be of the snapshot that added the manifest, or it is another manifest; except
that one of the stated length with more entries than the list counts lacks none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import valid_of, values_of
from icebench.engine.errors import Contradiction, CorruptTable
from icebench.engine.spec.manifest import EntryStatus, ManifestFile

Report: TypeAlias = Callable[[Contradiction], None]
"""Called with each contradiction; may raise."""

LENGTH, COUNTS = "manifest length", "manifest counts"
"""Causes of contradictions."""


def check_listed(
    listed: ManifestFile,
    size_bytes: int,
    *,
    status: NDArray[np.integer],
    record_count: NDArray[np.integer],
    snapshot_id: pa.Array,
    report: Report,
) -> None:
    """Compare a manifest with its entry in the manifest list.

    Args:
        listed: The entry. Counts that a v1 writer left out are not compared.
        size_bytes: The manifest's length.
        status: `EntryStatus` codes, one per entry.
        record_count: Rows, likewise.
        snapshot_id: Likewise; null is inherited.
        report: Called with a difference that leaves the rows certain.

    Raises:
        CorruptTable: The manifest may lack entries, be damaged, or be another one.
    """
    # By numbers: numpy asks members of an enumeration for methods, which takes longer than comparing a few entries.
    counted = [_counted(status == code, record_count) for code in range(len(EntryStatus))]
    counts = _difference(listed, counted)
    if counts is None and size_bytes == listed.manifest_length:
        return
    location = listed.manifest_path
    valid = valid_of(snapshot_id)
    says = status == EntryStatus.ADDED if valid is None else (status == EntryStatus.ADDED) & valid
    is_own = not says.any() or bool((values_of(snapshot_id)[says] == listed.added_snapshot_id).any())
    if size_bytes != listed.manifest_length:
        cause, reason = LENGTH, f"has {size_bytes} bytes, and its manifest list says {listed.manifest_length}"
        is_certain = is_own and counts is None and None not in (files for files, _ in _listed_counts(listed))
    else:
        assert counts is not None
        cause, reason, is_certain = COUNTS, counts, _is_lists_mistake(listed, counted, is_own=is_own)
    if not is_certain:
        raise CorruptTable(reason, location=location)
    report(Contradiction(cause, location, reason))


def are_as_listed(
    listed: Sequence[ManifestFile],
    sizes_bytes: Sequence[int],
    entries: Sequence[int],
    *,
    status: NDArray[np.integer],
    record_count: NDArray[np.integer],
) -> NDArray[np.bool_]:
    """Which of these manifests have the length and the counts that the manifest list says, so that `check_listed` would
    find nothing in them.

    Args:
        listed: The entries of the manifest list.
        sizes_bytes: The manifests' lengths.
        entries: How many entries each has.
        status: `EntryStatus` codes, manifest by manifest.
        record_count: Rows, likewise.
    """
    ends = np.cumsum([0, *entries])
    is_same = np.array(sizes_bytes) == [each.manifest_length for each in listed]
    claimed = [_listed_counts(each) for each in listed]
    for code in range(len(EntryStatus)):
        own = status == code
        for which, numbers in enumerate((own, own * record_count)):
            # Differences of sums that exceed 64 bits are exact.
            found = np.diff(np.concatenate([[0], np.cumsum(numbers, dtype=np.int64)])[ends]).tolist()
            claims = [counts[code][which] for counts in claimed]
            is_same &= [claim is None or claim == number for claim, number in zip(claims, found, strict=True)]
    return is_same


def _listed_counts(listed: ManifestFile) -> list[tuple[int | None, int | None]]:
    """Files and rows of each status, in the order of `EntryStatus`."""
    return [
        (listed.existing_files_count, listed.existing_rows_count),
        (listed.added_files_count, listed.added_rows_count),
        (listed.deleted_files_count, listed.deleted_rows_count),
    ]


def _difference(listed: ManifestFile, counted: list[tuple[int, int]]) -> str | None:
    claimed = _listed_counts(listed)
    if claimed == counted:
        return None
    for code in EntryStatus:
        for what, expected, found in zip(("files", "rows"), claimed[code], counted[code], strict=True):
            if expected is not None and expected != found:
                return f"has {found} {code.name.lower()} {what}, and its manifest list says {expected}"
    return None


def _is_lists_mistake(listed: ManifestFile, counted: list[tuple[int, int]], *, is_own: bool) -> bool:
    """Whether counts that differ, in a manifest of the stated length, leave its live files and rows certain.

    Args:
        listed: Of the manifest list.
        counted: Files and rows of each status in the manifest.
        is_own: Whether some added entry is of the snapshot that added the manifest.
    """
    claimed = _listed_counts(listed)
    files = [claimed[code][0] for code in EntryStatus]
    rows = [claimed[code][1] for code in EntryStatus]
    if None in files:
        return False
    more = sum(n for n, _ in counted) - sum(n or 0 for n in files)
    if more:
        return is_own or more > 0
    live = (EntryStatus.EXISTING, EntryStatus.ADDED)
    return (
        is_own
        and None not in rows
        and all(
            sum(claimed[code][which] or 0 for code in live) == sum(counted[code][which] for code in live)
            for which in (0, 1)
        )
    )


def _counted(own: NDArray[np.bool_], record_count: NDArray[np.integer]) -> tuple[int, int]:
    """Files, and their rows."""
    files = int(np.count_nonzero(own))
    rows = record_count if files == len(own) else record_count[own]
    return files, int(rows.sum(dtype=np.int64)) if files else 0
