"""References of changes to files of the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from icebench.engine.deletes.files import DeleteFile
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.partitioning import Partition, PartitionKey, partition_key

FileKey = tuple[str, int | None]
"""A file's path, and the offset of a deletion vector inside it (None for other files)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A reference to a data or delete file of the table.

    Args:
        file_path: Spelled as its manifest entry spells it.
        spec_id: Its partition spec.
        partition: Its partition tuple; None if unknown.
        content_offset: Of a deletion vector; many share one Puffin file.
    """

    file_path: str
    spec_id: int = 0
    partition: Partition | None = ()
    content_offset: int | None = None

    @property
    def key(self) -> FileKey:
        """The key that identifies the file in the table."""
        return self.file_path, self.content_offset

    @property
    def scope(self) -> PartitionKey | None:
        """Its partition in comparable form; None if unknown."""
        return None if self.partition is None else partition_key(self.spec_id, self.partition)


def key_of(file: DataFile) -> FileKey:
    """The key of a manifest entry's file."""
    return file.file_path, file.content_offset if file.file_format == "puffin" else None


def ref_to(file: DataFile) -> FileRef:
    """A reference to a manifest entry's file."""
    path, offset = key_of(file)
    return FileRef(file_path=path, spec_id=file.spec_id, partition=file.partition, content_offset=offset)


class PlannedDataFile(Protocol):
    """A data file as plans and readers name it."""

    @property
    def file_path(self) -> str: ...

    @property
    def spec_id(self) -> int: ...

    @property
    def partition(self) -> Partition | None: ...


def ref_of(file: PlannedDataFile) -> FileRef:
    """A reference to a data file of a plan."""
    return FileRef(file_path=file.file_path, spec_id=file.spec_id, partition=file.partition)


def refs_of_deletes(file: PlannedDataFile, deletes: Iterable[DeleteFile]) -> list[FileRef]:
    """References to delete files that refer to this data file alone, and so are of its partition."""
    return [
        FileRef(
            file_path=each.file_path,
            spec_id=file.spec_id,
            partition=file.partition,
            content_offset=each.content_offset if each.is_vector else None,
        )
        for each in deletes
    ]
