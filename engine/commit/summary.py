"""Snapshot summaries (spec: "Snapshots", appendix F: "Optional Snapshot Summary Fields").

Counts of what a change adds and removes, and totals carried on from the parent. A total whose former value the parent
does not say is left out: a wrong total would be worse than none. Nothing here is ever used to answer a query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from engine.codec.described_files import DescribedFiles
from engine.spec.data_file import DataFile, FileContent
from engine.spec.partitioning import PartitionKey, partition_key
from engine.spec.snapshots import Snapshot

_TOTALS = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


_FORMS = {
    (FileContent.DATA, False): ("{}-data-files", "{}-records"),
    (FileContent.POSITION_DELETES, False): ("{}-position-delete-files", "{}-position-deletes"),
    (FileContent.POSITION_DELETES, True): ("{}-dvs", "{}-position-deletes"),
    (FileContent.EQUALITY_DELETES, False): ("{}-equality-delete-files", "{}-equality-deletes"),
}
"""Content, and whether it is in a Puffin file -> the counters of files and of their rows."""


class FileCounts:
    """What files come to in a summary, counted as they go by: a commit may have more than fit in memory."""

    def __init__(self, files: Iterable[DataFile] = ()) -> None:
        self._found: dict[tuple[FileContent, bool], list[int]] = {}
        self.partitions: set[PartitionKey] = set()
        for file in files:
            self.add(file)

    def __bool__(self) -> bool:
        return bool(self._found)

    def has(self, content: FileContent) -> bool:
        """Whether files of that content were counted."""
        return any(form[0] is content for form in self._found)

    def add(self, file: DataFile) -> None:
        """Count a file."""
        self.partitions.add(partition_key(file.spec_id, file.partition))
        totals = self._found.setdefault((file.content, file.file_format == "puffin"), [0, 0, 0])
        totals[0] += 1
        totals[1] += file.record_count
        # A deletion vector shares its Puffin file with others: only its own bytes count.
        own = file.content_size_in_bytes
        totals[2] += file.file_size_in_bytes if own is None else own

    def add_columns(self, files: DescribedFiles) -> None:
        """Count data files that are described by column."""
        totals = self._found.setdefault((files.content, False), [0, 0, 0])
        totals[0] += files.count
        totals[1] += files.row_count
        totals[2] += files.size_bytes
        self.partitions |= files.partitions()

    def entries(self, verb: str) -> Counter[str]:
        """The summary's entries; `verb` is ``added`` or ``removed``."""
        counts: Counter[str] = Counter()
        for form, (number, rows, size) in self._found.items():
            # Data files and their rows are said to be deleted, all else to be removed.
            word = "deleted" if verb == "removed" and form[0] is FileContent.DATA else verb
            of_files, of_rows = (name.format(word) for name in _FORMS[form])
            counts.update({of_files: number, of_rows: rows, f"{verb}-files-size": size})
            if form[0] is not FileContent.DATA:
                counts[f"{verb}-delete-files"] += number
        return counts


def summarize(
    *,
    added: Iterable[FileCounts] = (),
    removed: Iterable[FileCounts] = (),
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
    partitions: set[PartitionKey] = set()
    counts: Counter[str] = Counter()
    for verb, parts in (("added", added), ("removed", removed)):
        for part in parts:
            counts.update(part.entries(verb))
            partitions |= part.partitions
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
