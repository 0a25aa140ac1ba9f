"""`table.maintenance`: what keeps a table fast, by name; delegation only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.codec.file_index import IndexKind
from engine.commit.committer import TableState
from engine.maintenance.build_index import BuiltIndex, build_file_index
from engine.maintenance.maintained_table import MaintainedTable
from engine.maintenance.rewrite_manifests import rewrite_manifests
from engine.spec.snapshots import MAIN, Snapshot


@dataclass(frozen=True)
class Maintenance:
    """Operations that change how a table is stored, never its rows.

    All raise CommitFailed where the change is not visible; for `CommitStateUnknown` it may or may not be.
    """

    table: MaintainedTable
    advance: Callable[[TableState], None]

    def build_index(self, column: str, *, kind: IndexKind = "bloom", fpp: float = 0.01) -> BuiltIndex:
        """Index which values of a column each data file of the current snapshot may hold.

        Plans use it for ``=`` and ``in`` on the column, after partitions and metrics, in every snapshot that has the
        files (counter ``entries_skipped_by_index``). Files that come later are read by all plans until the index is
        built again, which reads only those. It is part of the snapshot's statistics file, and forgotten with it.

        Args:
            column: Full name, not inside a list or map.
            kind: ``"bloom"``: a Bloom filter for each file, some 10 bits for each distinct value. ``"values"``: hashes
                of all values, 12 bytes for each distinct value of a file, without false positives.
            fpp: The share of files that a Bloom filter keeps for nothing.

        Raises:
            Invalid: No such column, another kind, or a table without a snapshot.
            Unsupported: Values of the column's type are not hashed.
        """
        state, built = build_file_index(self.table, column, kind=kind, fpp=fpp)
        self.advance(state)
        return built

    def rewrite_manifests(
        self,
        *,
        by_partition: bool = True,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Write all manifests again, up to ``commit.manifest.target-size-bytes`` each. No data or delete file changes.

        Many small manifests cost a plan a request each; manifests whose files are of all partitions are read by every
        plan, whatever it filters.

        Args:
            by_partition: Bring the files of a partition together; otherwise they stay in order.
            branch: Where.
            snapshot_properties: Entries for the snapshot summary.

        Returns:
            The snapshot, whose summary counts the manifests.

        Raises:
            Invalid: The branch has no snapshot.
        """
        state, snapshot = rewrite_manifests(
            self.table, by_partition=by_partition, branch=branch, properties=snapshot_properties
        )
        self.advance(state)
        return snapshot
