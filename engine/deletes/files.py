"""Delete files as a plan hands them to readers."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import CorruptTable
from engine.formats.source import Source
from engine.spec.data_file import FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A position-delete file, an equality-delete file or a deletion vector.

    A deletion vector is part of a Puffin file: `content_offset` and `content_size_in_bytes` say which,
    `referenced_data_file` says whose.
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


def check_records(file: DeleteFile, source: Source) -> None:
    """Raise CorruptTable for a delete file with another number of rows than its manifest entry says: it may be another
    file, or half of one."""
    if source.num_rows != file.record_count:
        raise CorruptTable(
            f"a delete file with {source.num_rows} rows, where its manifest entry says {file.record_count}",
            location=file.file_path,
        )
