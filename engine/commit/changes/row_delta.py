"""Adds delete files, with or without new rows, without rewriting data (merge-on-read)."""

from __future__ import annotations

from dataclasses import dataclass

from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.errors import Invalid
from icebench.engine.spec.data_file import FileContent


@dataclass(kw_only=True)
class RowDelta(SnapshotProducer):
    """Adds data files and delete files in one snapshot.

    Deletion vectors replace those that their data files had: the former ones are `removed_deletes`. Equality deletes of
    a keyed stream are right on any base and need no validation; position deletes need one, for they point into files.
    Data files of which no row remains may be removed rather than marked.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.removed_data and self.data_files:
            raise Invalid("a row delta that adds rows removes no data files; that is an overwrite")
        positional = any(file.content is FileContent.POSITION_DELETES for file in self.delete_files)
        if positional and (self.validation is None or not self.validation.referenced):
            raise Invalid(
                "position deletes point into data files, so the change must say which (validation.referenced)"
            )
