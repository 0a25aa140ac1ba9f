"""Changes the statistics files in the metadata (spec: "Table Statistics", "Partition Statistics")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icebench.engine.commit.staged_snapshot import Staged
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import ValidationFailed
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.requirements import AssertTableUuid
from icebench.engine.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebench.engine.spec.updates import (
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
    TableUpdate,
)


@dataclass(frozen=True, kw_only=True)
class UpdateStatistics:
    """Sets and removes statistics files; a snapshot has at most one of each kind, so a new one replaces the former.

    Args:
        table: Puffin files to set, each for its snapshot.
        partition: Partition statistics files to set, each for its snapshot.
        removed_table: Snapshot ids whose Puffin files to remove.
        removed_partition: Snapshot ids whose partition statistics to remove.
        made_from: The Puffin file, or None, that a snapshot had when one of `table` was made with the blobs of it.
    """

    table: Sequence[StatisticsFile] = ()
    partition: Sequence[PartitionStatisticsFile] = ()
    removed_table: Sequence[int] = ()
    removed_partition: Sequence[int] = ()
    made_from: Mapping[int, str | None] = field(default_factory=dict)

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `icebench.engine.commit.changes.change.Change`.

        Raises:
            NotFound: Statistics of an unknown snapshot.
            ValidationFailed: Another commit changed the file that one was made from; its blobs would be lost.
        """
        current = {file.snapshot_id: file.statistics_path for file in base.statistics}
        for snapshot_id, path in self.made_from.items():
            if current.get(snapshot_id) != path:
                raise ValidationFailed(
                    f"another commit changed the statistics of snapshot {snapshot_id}; run the operation again"
                )
        for snapshot_id in [f.snapshot_id for f in self.table] + [f.snapshot_id for f in self.partition]:
            base.snapshot(snapshot_id)
        updates: list[TableUpdate] = [SetStatistics(file) for file in self.table]
        updates += [SetPartitionStatistics(file) for file in self.partition]
        updates += [RemoveStatistics(snapshot_id) for snapshot_id in self.removed_table]
        updates += [RemovePartitionStatistics(snapshot_id) for snapshot_id in self.removed_partition]
        return Staged(requirements=(AssertTableUuid(base.table_uuid),), updates=tuple(updates))
