"""Delete files as a plan hands them to readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from engine.errors import Unsupported
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


def refuse_format(file: DeleteFile) -> NoReturn:
    """Raise for a delete file that this engine does not read."""
    raise Unsupported(f"{file.file_path}: reading {file.file_format} delete files is not supported, only parquet")
