"""Appends data files without reading any manifest (a fast append)."""

from __future__ import annotations

from dataclasses import dataclass

from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.commit.staged_snapshot import Staged
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import Invalid
from icebench.engine.spec.metadata import TableMetadata


@dataclass(kw_only=True)
class Append(SnapshotProducer):
    """Adds data files in manifests of their own. Never conflicts with other commits.

    Args:
        must_add: Whether a stream without files is an error.
    """

    must_add: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delete_files or self.removed_data or self.removed_deletes:
            raise Invalid("an append only adds data files")

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `icebench.engine.commit.changes.change.Change`; Invalid if there are no files and `must_add`."""
        staged = super().stage(base, staging)
        if self.must_add and not self._added_data.counts:
            raise Invalid("no files to add")
        return staged
