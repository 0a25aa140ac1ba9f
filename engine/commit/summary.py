"""Snapshot summaries (spec: "Snapshots", appendix F: "Optional Snapshot Summary Fields").

Counts of what a change adds and removes, and totals carried on from the parent. A total whose former value the parent
does not say is left out: a wrong total would be worse than none. Nothing here is ever used to answer a query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from icebench.engine.codec.manifests.data_file_columns import DataFileColumns
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partition_paths import partition_path
from icebench.engine.spec.partitioning import Partition, PartitionKey, partition_key
from icebench.engine.spec.properties import PARTITION_SUMMARY_LIMIT, as_texts
from icebench.engine.spec.snapshots import Snapshot, count_of

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
    """What files come to in a summary, counted as they go by: a commit may have more than fit in memory.

    Args:
        files: The first to count.
        partition_limit: Count each partition by itself as well, as long as there are no more than this.
    """

    def __init__(self, files: Iterable[DataFile] = (), *, partition_limit: int = 0) -> None:
        self._found: dict[tuple[FileContent, bool], list[int]] = {}
        self._limit = partition_limit
        self.partitions: set[PartitionKey] = set()
        self.by_partition: dict[PartitionKey, tuple[int, Partition, FileCounts]] = {}
        """Spec, values and counts of each partition; empty where they are more than the limit."""
        for file in files:
            self.add(file)

    def __bool__(self) -> bool:
        return bool(self._found)

    def has(self, content: FileContent) -> bool:
        """Whether files of that content were counted."""
        return any(form[0] is content for form in self._found)

    def add(self, file: DataFile) -> None:
        """Count a file."""
        key = partition_key(file.spec_id, file.partition)
        self.partitions.add(key)
        # A deletion vector shares its Puffin file with others: only its own bytes count.
        own = file.content_size_in_bytes
        size = file.file_size_in_bytes if own is None else own
        form = (file.content, file.file_format == "puffin")
        self.count(form, 1, file.record_count, size)
        if self._limit:
            self._count_partition(key, (file.spec_id, file.partition), form, (1, file.record_count, size))

    def add_columns(self, files: DataFileColumns) -> None:
        """Count data files that are described by column."""
        form = (files.content, False)
        self.count(form, files.count, files.row_count, files.size_bytes)
        self.partitions |= files.partitions()
        if self._limit:
            for partition, *sums in files.by_partition():
                key = partition_key(files.spec_id, partition)
                self._count_partition(key, (files.spec_id, partition), form, sums)

    def count(self, form: tuple[FileContent, bool], number: int, rows: int, size: int) -> None:
        """Count files of that content and place, with their rows and bytes."""
        totals = self._found.setdefault(form, [0, 0, 0])
        totals[0] += number
        totals[1] += rows
        totals[2] += size

    def _count_partition(
        self, key: PartitionKey, partition: tuple[int, Partition], form: tuple[FileContent, bool], sums: Iterable[int]
    ) -> None:
        if len(self.partitions) > self._limit:
            self.by_partition.clear()
            return
        _, _, counts = self.by_partition.setdefault(key, (*partition, FileCounts()))
        counts.count(form, *sums)

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
    added: Sequence[FileCounts] = (),
    removed: Sequence[FileCounts] = (),
    parent: Snapshot | None,
    properties: Mapping[str, str] | None = None,
    base: TableMetadata | None = None,
) -> dict[str, str]:
    """The summary of a snapshot that adds and removes these files (of any content); counts of zero are left out.

    Each partition's own counts are among them, as ``partitions.<path>``, where they are no more than the table property
    ``write.summary.partition-limit``, as Iceberg Java writes them.

    Args:
        added: Files with status ADDED.
        removed: Files with status DELETED.
        parent: The snapshot before, for the totals; None for the first of a branch.
        properties: The caller's own entries; the computed ones win.
        base: The table, for the partitions' entries; None for none.
    """
    partitions: set[PartitionKey] = set()
    counts: Counter[str] = Counter()
    for verb, parts in (("added", added), ("removed", removed)):
        for part in parts:
            counts.update(part.entries(verb))
            partitions |= part.partitions
    summary = as_texts(properties or {})
    summary.update({name: str(n) for name, n in sorted(counts.items()) if n})
    summary["changed-partition-count"] = str(len(partitions))
    if base is not None and 0 < len(partitions) <= PARTITION_SUMMARY_LIMIT.of(base.properties):
        summary["partition-summaries-included"] = "true"
        summary.update(_partition_entries({"added": added, "removed": removed}, base))
    before = dict.fromkeys(_TOTALS, "0") if parent is None else parent.summary
    for total, (up, down) in _TOTALS.items():
        known = count_of(before.get(total))
        if known is not None and (now := known + counts[up] - counts[down]) >= 0:
            summary[total] = str(now)
    return summary


def _partition_entries(parts: Mapping[str, Iterable[FileCounts]], base: TableMetadata) -> dict[str, str]:
    """``partitions.<path>`` -> what each partition's files come to; files without a partition have no entry."""
    counts: dict[str, Counter[str]] = {}
    for verb, each in parts.items():
        for spec_id, partition, own in (found for part in each for found in part.by_partition.values()):
            path = partition_path(base.spec_by_id[spec_id], base.schema, partition)
            counts.setdefault(path, Counter()).update(own.entries(verb))
    return {
        f"partitions.{path}": ",".join(f"{name}={number}" for name, number in sorted(found.items()) if number)
        for path, found in sorted(counts.items())
        if path
    }
