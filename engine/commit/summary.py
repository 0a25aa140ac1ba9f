"""Snapshot summaries (spec: "Snapshots", appendix F: "Optional Snapshot Summary Fields").

Counts of what a change adds and removes, and totals carried on from the parent. A total whose former value the parent
does not say is left out: a wrong total would be worse than none. Nothing here is ever used to answer a query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from engine.spec.data_file import DataFile, FileContent
from engine.spec.snapshots import Snapshot

_TOTALS = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


def summarize(
    *,
    added: Iterable[DataFile],
    removed: Iterable[DataFile] = (),
    parent: Snapshot | None,
    properties: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The summary of a snapshot that adds and removes these files (of any content); counts of zero are left out.

    Args:
        added: Files with status ADDED.
        removed: Files with status DELETED.
        parent: The snapshot before, for the totals; None for the first of a branch.
        properties: The caller's own entries; the computed ones win.
    """
    counts: Counter[str] = Counter()
    partitions: set[tuple[object, ...]] = set()
    for file in added:
        partitions.add((file.spec_id, *file.partition))
        counts.update(_added(file))
    for file in removed:
        partitions.add((file.spec_id, *file.partition))
        counts.update(_removed(file))
    summary = dict(properties or {})
    summary.update({name: str(n) for name, n in sorted(counts.items()) if n})
    summary["changed-partition-count"] = str(len(partitions))
    before = dict.fromkeys(_TOTALS, "0") if parent is None else parent.summary
    for total, (up, down) in _TOTALS.items():
        text = before.get(total, "")
        if text.isdecimal():
            now = int(text) + counts[up] - counts[down]
            if now >= 0:
                summary[total] = str(now)
    return summary


def _size(file: DataFile) -> int:
    # A deletion vector shares its Puffin file with others: only its own bytes count.
    if file.content_size_in_bytes is not None:
        return file.content_size_in_bytes
    return file.file_size_in_bytes


def _added(file: DataFile) -> dict[str, int]:
    match file.content:
        case FileContent.DATA:
            kind = {"added-data-files": 1, "added-records": file.record_count}
        case FileContent.POSITION_DELETES:
            form = "added-dvs" if file.file_format == "puffin" else "added-position-delete-files"
            kind = {"added-delete-files": 1, form: 1, "added-position-deletes": file.record_count}
        case FileContent.EQUALITY_DELETES:
            kind = {
                "added-delete-files": 1,
                "added-equality-delete-files": 1,
                "added-equality-deletes": file.record_count,
            }
    return {**kind, "added-files-size": _size(file)}


def _removed(file: DataFile) -> dict[str, int]:
    if file.content is FileContent.DATA:
        return {"deleted-data-files": 1, "deleted-records": file.record_count, "removed-files-size": _size(file)}
    return {name.replace("added-", "removed-", 1): n for name, n in _added(file).items()}
