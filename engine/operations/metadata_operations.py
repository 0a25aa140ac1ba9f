"""Operations on the metadata of a table: at once, or in a transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from icebench.engine.errors import Invalid
from icebench.engine.lazy_module import LazyModule
from icebench.engine.spec.properties import RESERVED, as_texts
from icebench.engine.spec.schema import list_of_names
from icebench.engine.spec.snapshots import MAIN
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.statistics import PartitionStatisticsFile, StatisticsFile

if TYPE_CHECKING:
    from icebench.engine.commit.changes import cherry_pick, evolution, references, statistics, stream_batch
    from icebench.engine.commit.changes.change import Change
    from icebench.engine.spec.partition_evolution import PartitionSpecUpdate
    from icebench.engine.spec.schema_evolution import SchemaUpdate
else:  # loaded on first use: a reader of tables needs nothing that changes them
    cherry_pick = LazyModule("icebench.engine.commit.changes.cherry_pick")
    evolution = LazyModule("icebench.engine.commit.changes.evolution")
    references = LazyModule("icebench.engine.commit.changes.references")
    statistics = LazyModule("icebench.engine.commit.changes.statistics")
    stream_batch = LazyModule("icebench.engine.commit.changes.stream_batch")


class MetadataOperations(ABC):
    """Changes of metadata only. Each method returns the handle, so that calls can be chained.

    All raise Unsupported for a read-only table, Invalid for arguments that do not fit the table, and CommitFailed if
    the change is not visible.
    """

    @abstractmethod
    def _change(self, change: Change) -> None:
        """Commit the change, or stage it."""

    def update_schema(self, edit: Callable[[SchemaUpdate], object]) -> Self:
        """Change the current schema (spec: "Schema Evolution").

        A name mapping (``schema.name-mapping.default``) is updated: new columns are added, and renamed ones get both
        names.

        Args:
            edit: Makes its changes on the given `SchemaUpdate` (``lambda s: s.add_column("x", LONG)``); called once for
                every commit attempt, with the schema as it is then.
        """
        self._change(evolution.UpdateSchema(edit))
        return self

    def update_spec(self, edit: Callable[[PartitionSpecUpdate], object]) -> Self:
        """Change the default partition spec (spec: "Partition Evolution"); files keep the spec they were written with.

        Args:
            edit: Makes its changes on the given `PartitionSpecUpdate`; called once for every commit attempt.
        """
        self._change(evolution.UpdateSpec(edit))
        return self

    def replace_sort_order(self, order: SortOrder | Sequence[str]) -> Self:
        """Set the sort order for writers, as a `SortOrder` or as the full names of columns to sort by, ascending.

        The table assigns its id. Without fields or names the table becomes unsorted.
        """
        # Staged more than once: an iterator would be exhausted, and no names mean unsorted.
        wanted = order if isinstance(order, SortOrder) else list_of_names(order, "sort_order")
        self._change(evolution.ReplaceSortOrder(wanted))
        return self

    def set_properties(self, properties: Mapping[str, str]) -> Self:
        """Set table properties. The last writer of a property wins."""
        reserved = sorted(RESERVED & properties.keys())
        if reserved:
            raise Invalid(f"{reserved[0]!r} is a reserved name and cannot be set as a table property")
        self._change(evolution.UpdateProperties(as_texts(properties)))
        return self

    def remove_properties(self, *names: str) -> Self:
        """Remove table properties; names that are not set are ignored."""
        self._change(evolution.UpdateProperties(removed=frozenset(names)))
        return self

    def upgrade_format(self, format_version: int) -> Self:
        """Upgrade to a later format version, irreversibly; raises Unsupported for one that the engine does not know."""
        self._change(evolution.UpgradeFormat(format_version))
        return self

    def create_branch(
        self,
        name: str,
        *,
        snapshot_id: int | None = None,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        overwrite: bool = False,
    ) -> Self:
        """Create a branch at a snapshot, by default at main's head; see
        `icebench.engine.commit.changes.references.CreateRef`.

        Raises:
            AlreadyExists: It exists, and `overwrite` is False.
            NotFound: No such snapshot.
            Invalid: The table has no snapshot yet; a number or an age is below 1.
        """
        self._change(
            references.CreateRef(
                name=name,
                type="branch",
                snapshot_id=snapshot_id,
                min_snapshots_to_keep=min_snapshots_to_keep,
                max_snapshot_age_ms=max_snapshot_age_ms,
                max_ref_age_ms=max_ref_age_ms,
                overwrite=overwrite,
            )
        )
        return self

    def create_tag(
        self, name: str, *, snapshot_id: int | None = None, max_ref_age_ms: int | None = None, overwrite: bool = False
    ) -> Self:
        """Create a tag at a snapshot, by default at main's head; raises as `create_branch`."""
        self._change(
            references.CreateRef(
                name=name, type="tag", snapshot_id=snapshot_id, max_ref_age_ms=max_ref_age_ms, overwrite=overwrite
            )
        )
        return self

    def remove_ref(self, name: str) -> Self:
        """Remove a branch or tag; its snapshots stay until they expire.

        Raises NotFound if it does not exist, and Invalid for main.
        """
        self._change(references.RemoveRef(name))
        return self

    def fast_forward(self, branch: str, to: str) -> Self:
        """Move a branch to the snapshot of `to`, a branch or tag; a branch that does not exist is created.

        Raises:
            NotFound: There is no `to`.
            Invalid: The snapshot does not descend from the branch's head, or `branch` is a tag.
        """
        self._change(references.FastForward(branch, to))
        return self

    def rollback(self, *, snapshot_id: int | None = None, before_ms: int | None = None, branch: str = MAIN) -> Self:
        """Make a former state of a branch current again: an ancestor of its head.

        Args:
            snapshot_id: The ancestor; None to find it by `before_ms`.
            before_ms: The newest ancestor from before this time, in milliseconds since 1970 UTC.
            branch: The branch.

        Raises:
            NotFound: No such branch or snapshot, or no ancestor from before that time.
            Invalid: The snapshot is no ancestor; `branch` is a tag; both or neither of the two arguments are given.
        """
        self._change(references.Rollback(snapshot_id=snapshot_id, before_ms=before_ms, branch=branch))
        return self

    def set_current_snapshot(self, snapshot_id: int) -> Self:
        """Make any snapshot the head of main, whether or not it is an ancestor; raises NotFound for an unknown one."""
        self._change(references.SetCurrentSnapshot(snapshot_id))
        return self

    def cherry_pick(self, snapshot_id: int | None = None, *, wap_id: str | None = None) -> Self:
        """Apply the changes of a snapshot outside main's history to main, for example one that was staged for an audit;
        see `icebench.engine.commit.changes.cherry_pick.CherryPick` for restrictions and errors.

        Args:
            snapshot_id: The snapshot; None to name it by `wap_id`.
            wap_id: The ``wap.id`` that the snapshot was written with.
        """
        self._change(cherry_pick.CherryPick(snapshot_id=snapshot_id, wap_id=wap_id))
        return self

    def set_last_batch(self, stream_id: str, batch_id: int, *, branch: str = MAIN) -> Self:
        """Record which batch of a stream is the last one that a branch has.

        For a stream whose batches are no longer known; see `icebench.engine.commit.committed_batches`.

        Args:
            stream_id: The stream; for a Spark query, its id.
            batch_id: The batch; -1 for none.
            branch: The branch; one that does not exist is taken to be created at main's head.

        Raises:
            Invalid: `branch` is a tag or has no snapshot; the batch id is below -1, or has more than 19 digits.
        """
        self._change(stream_batch.SetLastBatch(stream_id=stream_id, batch_id=batch_id, branch=branch))
        return self

    def set_statistics(self, *files: StatisticsFile | PartitionStatisticsFile) -> Self:
        """Set statistics files of snapshots, each replacing the former one of its kind; the files are not opened.

        Raises NotFound for statistics of an unknown snapshot.
        """
        self._change(
            statistics.UpdateStatistics(
                table=[file for file in files if isinstance(file, StatisticsFile)],
                partition=[file for file in files if isinstance(file, PartitionStatisticsFile)],
            )
        )
        return self

    def remove_statistics(self, snapshot_id: int) -> Self:
        """Remove the table and partition statistics of a snapshot from the metadata; the files stay in storage."""
        self._change(statistics.UpdateStatistics(removed_table=[snapshot_id], removed_partition=[snapshot_id]))
        return self
