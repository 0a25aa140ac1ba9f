"""Manifests written again, so that plans read few of them and each lists few partitions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from engine.commit.changes.rewrite_manifests import RewriteManifests
from engine.commit.committer import TableState
from engine.commit.target import Target
from engine.spec.data_file import DataFile
from engine.spec.partitioning import partition_key
from engine.spec.snapshots import MAIN, Snapshot


def rewrite_manifests(
    table: Target,
    *,
    by_partition: bool = True,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableState, Snapshot]:
    """Write all manifests of a branch again, in a snapshot that replaces none of its files.

    Args:
        table: The table.
        by_partition: Bring the files of a partition together, so that a filter on partitions skips whole manifests;
            otherwise they stay in order, and small manifests become large ones.
        branch: Where.
        properties: Entries for the snapshot summary.

    Returns:
        The table, and the snapshot, whose summary has ``manifests-created``, ``manifests-replaced`` and
        ``entries-processed``.

    Raises:
        Invalid: The branch has no snapshot.
        CommitFailed: See `Target.commit`.
    """
    change = RewriteManifests(
        cluster_by=_partition if by_partition else None, branch=branch, properties=dict(properties or {})
    )
    state = table.commit([change])
    snapshot = change.snapshot_in(state.metadata)
    return state, snapshot


def _partition(file: DataFile) -> Hashable:
    return partition_key(file.spec_id, file.partition)
