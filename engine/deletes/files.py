"""Data files and delete files, as readers get them from a plan."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import CorruptTable
from engine.expressions.bound import BoundPredicate
from engine.formats.source import Source
from engine.spec.data_file import FileContent
from engine.spec.partitioning import Partition, PartitionKey, partition_key


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A position-delete file, an equality-delete file or a deletion vector.

    A deletion vector is a range of a Puffin file, at `content_offset` and of `content_size_in_bytes`;
    `referenced_data_file` is its data file.
    """

    content: FileContent
    file_path: str
    file_format: str
    record_count: int
    file_size_in_bytes: int
    sequence_number: int
    equality_ids: tuple[int, ...] = ()
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    @property
    def is_vector(self) -> bool:
        """Whether it is a deletion vector."""
        return self.file_format == "puffin"


@dataclass(frozen=True, kw_only=True)
class FileRead:
    """One data file to read, or a part of it.

    Args:
        file_path: Its location.
        file_format: ``"parquet"``, ``"orc"`` or ``"avro"``; others are refused.
        record_count: Its rows, by its manifest entry.
        file_size_in_bytes: Its size, by its manifest entry; None where it has none.
        spec_id: Its partition spec.
        partition: Its partition tuple, one internal value a field of the spec; None where it can not be told.
        data_sequence_number: For equality deletes and row lineage.
        first_row_id: For row lineage; None where the table has none.
        deletes: The delete files that apply to it.
        residual: What is left of the filter; None for nothing.
        byte_range: (start, length): only row groups that begin there; None for all.
    """

    file_path: str
    record_count: int
    file_format: str = "parquet"
    file_size_in_bytes: int | None = None
    spec_id: int = 0
    partition: Partition | None = ()
    data_sequence_number: int = 0
    first_row_id: int | None = None
    deletes: tuple[DeleteFile, ...] = ()
    residual: BoundPredicate | None = None
    byte_range: tuple[int, int] | None = None

    @property
    def scope(self) -> PartitionKey | None:
        """The partition as the scope of equality deletes."""
        return None if self.partition is None else partition_key(self.spec_id, self.partition)


def check_records(file: DeleteFile, source: Source) -> None:
    """Raise CorruptTable for a delete file whose number of rows is not that of its manifest entry: it may be another
    file, or truncated."""
    if source.num_rows != file.record_count:
        raise CorruptTable(
            f"a delete file with {source.num_rows} rows, where its manifest entry says {file.record_count}",
            location=file.file_path,
        )
