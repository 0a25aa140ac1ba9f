"""Selects the data files to rewrite, and groups them (Iceberg's ``rewrite_data_files``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from icebench.engine.deletes.files import FileRead
from icebench.engine.errors import Invalid
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.partitioning import Partition, PartitionKey

_MIN_RATIO = 0.75
_MAX_RATIO = 1.8
_ROUNDED_DOWN = 1.1
"""Files may be this much larger than the target rather than leave a small one."""
_ROOM = 1.02
"""Tolerance for compression of rewritten rows, so that a file is not split for it."""
DEFAULT_GROUP_SIZE_BYTES = 100 << 30
DEFAULT_SORTED_GROUP_SIZE_BYTES = 4 << 30
"""One thread or task sorts a group."""
GROUP_PER_MEMORY = 4
"""The largest ratio of a sorted group to the memory for rows, where memory is short."""


class Grouping(Protocol):
    """Which files are rewritten, and which of them together."""

    @property
    def output_spec_id(self) -> int:
        """The partition spec of the new files."""
        ...

    def groups(self, files: Iterable[FileRead]) -> list[FileGroup]:
        """The groups, from the files of a plan."""
        ...


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which files to rewrite. Sizes are bytes of data files as stored.

    Args:
        target_file_size_bytes: The target size.
        min_file_size_bytes: Smaller ones are rewritten; None means 75 % of the target.
        max_file_size_bytes: Larger ones are rewritten; None means 180 % of the target.
        min_input_files: A group of this many files is rewritten, however small it is.
        delete_file_threshold: A data file with this many delete files is rewritten, whatever its size; None for never.
        delete_ratio_threshold: A data file is rewritten, whatever its size, if at least this fraction of its rows is
            deleted by position in delete files of its own.
        rewrite_all: All files are rewritten.
        max_file_group_size_bytes: Maximum bytes of a group with several files.
        output_spec_id: The partition spec of the new files.
    """

    target_file_size_bytes: int
    min_file_size_bytes: int | None = None
    max_file_size_bytes: int | None = None
    min_input_files: int = 5
    delete_file_threshold: int | None = None
    delete_ratio_threshold: float = 0.3
    rewrite_all: bool = False
    max_file_group_size_bytes: int = DEFAULT_GROUP_SIZE_BYTES
    output_spec_id: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.smallest < self.target_file_size_bytes < self.largest:
            raise Invalid(
                f"file sizes must rise from min_file_size_bytes ({self.smallest}) over target_file_size_bytes "
                f"({self.target_file_size_bytes}) to max_file_size_bytes ({self.largest})"
            )
        for name in ("min_input_files", "max_file_group_size_bytes"):
            if getattr(self, name) < 1:
                raise Invalid(f"{name} must be positive, not {getattr(self, name)}")
        if self.delete_file_threshold is not None and self.delete_file_threshold < 1:
            raise Invalid(f"delete_file_threshold must be positive, not {self.delete_file_threshold}")
        if not 0 < self.delete_ratio_threshold <= 1:
            raise Invalid(f"delete_ratio_threshold is a share above 0 up to 1, not {self.delete_ratio_threshold}")

    @property
    def smallest(self) -> int:
        """Files below it are too small."""
        given = self.min_file_size_bytes
        return int(self.target_file_size_bytes * _MIN_RATIO) if given is None else given

    @property
    def largest(self) -> int:
        """Files above it are too large."""
        given = self.max_file_size_bytes
        return int(self.target_file_size_bytes * _MAX_RATIO) if given is None else given

    def groups(self, files: Iterable[FileRead]) -> list[FileGroup]:
        """The groups to rewrite, by partition in the order of their first files.

        A file with a spec other than the output spec may have rows of several output partitions: such files are grouped
        together, as unpartitioned.
        """
        by_partition: dict[PartitionKey | None, list[FileRead]] = {}
        for file in files:
            own = file.spec_id == self.output_spec_id
            key = file.scope if own else None
            by_partition.setdefault(key, []).append(file)
        found: list[FileGroup] = []
        for key, candidates in by_partition.items():
            chosen = [file for file in candidates if self.rewrite_all or self._is_candidate(file)]
            for packed in _pack(chosen, self.max_file_group_size_bytes):
                if self.rewrite_all or self._is_worth_it(packed):
                    partition = None if key is None else packed[0].partition
                    found.append(FileGroup(len(found), tuple(packed), partition, self.split_size(packed)))
        return found

    def _is_candidate(self, file: FileRead) -> bool:
        return not self.smallest <= _size(file) <= self.largest or self._has_many_deletes(file)

    def _has_many_deletes(self, file: FileRead) -> bool:
        if self.delete_file_threshold is not None and len(file.deletes) >= self.delete_file_threshold:
            return True
        own = [
            d
            for d in file.deletes
            if d.content is FileContent.POSITION_DELETES and (d.is_vector or d.referenced_data_file is not None)
        ]
        deleted = min(sum(d.record_count for d in own), file.record_count)
        return bool(own) and deleted >= self.delete_ratio_threshold * file.record_count

    def _is_worth_it(self, group: Sequence[FileRead]) -> bool:
        size = sum(map(_size, group))
        if len(group) > 1 and (len(group) >= self.min_input_files or size > self.target_file_size_bytes):
            return True
        return size > self.largest or any(map(self._has_many_deletes, group))

    def split_size(self, group: Sequence[FileRead]) -> int:
        """The size of a group's new files that leaves none small."""
        size, target = sum(map(_size, group)), self.target_file_size_bytes
        most = target + (self.largest - target) // 2
        if size < target:
            return most
        count = file_count(size, target, smallest=self.smallest, most=most)
        return min(max(int(size / count * _ROOM), target), most)


def file_count(size: float, target: float, *, smallest: float | None = None, most: float | None = None) -> int:
    """The number of files into which a rewrite divides `size`, so that none is small; at least one.

    Args:
        size: In any unit, which is that of all arguments.
        target: Target size of a file.
        smallest: A remainder of up to this size is divided among the other files; 75 % of the target by default.
        most: Largest size of a file; half-way from the target to 180 % of it by default.
    """
    if size < target:
        return 1
    smallest = target * _MIN_RATIO if smallest is None else smallest
    most = target * (1 + _MAX_RATIO) / 2 if most is None else most
    count, rest = divmod(size, target)
    return int(count + ((rest > smallest or size / count >= min(_ROUNDED_DOWN * target, most)) and rest > 0))


@dataclass(frozen=True)
class ChosenFiles:
    """Files that were chosen before, each cluster in groups of its own.

    Args:
        selection: Sizes and the output spec.
        clusters: Locations of files of one partition of that spec.
    """

    selection: Selection
    clusters: Sequence[Sequence[str]]

    @property
    def output_spec_id(self) -> int:
        return self.selection.output_spec_id

    def groups(self, files: Iterable[FileRead]) -> list[FileGroup]:
        """The groups; a cluster that is too large for one is divided in its order."""
        wanted = {path for cluster in self.clusters for path in cluster}
        known = {file.file_path: file for file in files if file.file_path in wanted}
        packs = (
            packed
            for cluster in self.clusters
            for packed in _pack([known[path] for path in cluster], self.selection.max_file_group_size_bytes)
        )
        return [
            FileGroup(number, tuple(packed), packed[0].partition, self.selection.split_size(packed))
            for number, packed in enumerate(packs)
        ]


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are rewritten together.

    Args:
        number: From 0, in the order of the plan.
        files: As planned, with their deletes.
        partition: Their partition in the output spec; None for files of other specs.
        file_size_bytes: The target size of the new files.
    """

    number: int
    files: tuple[FileRead, ...]
    partition: Partition | None
    file_size_bytes: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the data files."""
        return sum(map(_size, self.files))


def _size(file: FileRead) -> int:
    return file.file_size_in_bytes or 0


def _pack(files: Sequence[FileRead], limit: int) -> Iterator[list[FileRead]]:
    """The files in order, in groups of up to `limit` bytes."""
    group: list[FileRead] = []
    size = 0
    for file in files:
        if group and size + _size(file) > limit:
            yield group
            group, size = [], 0
        group.append(file)
        size += _size(file)
    if group:
        yield group
