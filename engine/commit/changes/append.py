"""Appending data files without reading any manifest (a fast append)."""

from __future__ import annotations

from dataclasses import dataclass

from engine.commit.file_changes import FileChanges
from engine.errors import Invalid


@dataclass(kw_only=True)
class Append(FileChanges):
    """Adds data files in manifests of their own. Nothing that others commit can make it wrong."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delete_files or self.removed_data or self.removed_deletes:
            raise Invalid("an append only adds data files")
