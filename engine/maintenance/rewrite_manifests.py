"""Rewrites manifests, so that there are few and each lists files of few partitions."""

from __future__ import annotations

from collections.abc import Mapping

from icebench.engine.commit.changes.rewrite_manifests import RewriteManifests
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.spec.snapshots import MAIN, Snapshot


def rewrite_manifests(
    table: Target,
    *,
    by_partition: bool = True,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableState, Snapshot]:
    """Rewrite all manifests of a branch, in a snapshot with the same data and delete files.

    Args:
        table: The table.
        by_partition: Cluster files by partition, so that filters on partitions skip whole manifests; otherwise the
            order is kept, and small manifests are merged.
        branch: The branch.
        properties: Entries for the snapshot summary.

    Returns:
        The table, and the snapshot, whose summary has ``manifests-created``, ``manifests-replaced`` and
        ``entries-processed``.

    Raises:
        NotFound: There is no such branch.
        Invalid: The branch has no snapshot, or is a tag.
        CommitFailed: See `Target.commit`.
    """
    change = RewriteManifests(by_partition=by_partition, branch=branch, properties=dict(properties or {}))
    state = table.commit([change])
    snapshot = change.snapshot_in(state.metadata)
    return state, snapshot
