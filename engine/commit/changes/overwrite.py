"""Replaces data files by others with other rows (copy-on-write)."""

from __future__ import annotations

from dataclasses import dataclass

from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.errors import Invalid


@dataclass(kw_only=True)
class Overwrite(SnapshotProducer):
    """Removes data files, with the delete files that refer to them only, and adds others.

    It fails when one of the removed files is gone already, and, by its validation, when rows were deleted from one of
    them meanwhile: the new files, written from the old state, would bring those rows back.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        rewrites = bool(self.removed_data and self.data_files)
        if rewrites and (self.validation is None or self.validation.refuse_deletes != "all"):
            raise Invalid("an overwrite must refuse concurrent deletes on the files whose rows it writes again")
