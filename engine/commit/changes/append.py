"""Appending data files without reading any manifest (a fast append)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.commit.manifests import AddedManifests, load_manifests
from engine.commit.snapshots import Staged, branch_head, stage_snapshot, unused_snapshot_id
from engine.commit.staging import Staging
from engine.commit.summary import summarize
from engine.spec.data_file import DataFile
from engine.spec.manifest import ManifestContent
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import MAIN


@dataclass
class Append:
    """Adds data files in manifests of their own. Nothing that others commit can make it wrong.

    Args:
        data_files: Written, of any of the table's partition specs.
        branch: Where to; made when it does not exist.
        properties: Entries for the snapshot summary.
    """

    data_files: Sequence[DataFile]
    branch: str = MAIN
    properties: Mapping[str, str] = field(default_factory=dict)
    _snapshot_id: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._manifests = AddedManifests(self.data_files, ManifestContent.DATA)

    @property
    def added_snapshot_id(self) -> int:
        """The id of the snapshot that the change adds; known once it was staged."""
        assert self._snapshot_id is not None
        return self._snapshot_id

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        parent = branch_head(base, self.branch)
        if self._snapshot_id is None:
            self._snapshot_id = unused_snapshot_id(base, staging)
        return stage_snapshot(
            base,
            staging,
            branch=self.branch,
            snapshot_id=self._snapshot_id,
            operation="append",
            written=self._manifests.written(base, self._snapshot_id, staging),
            kept=load_manifests(parent, staging.store),
            summary=summarize(added=self.data_files, parent=parent, properties=self.properties),
        )
