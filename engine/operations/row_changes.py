"""Commits deleted and inserted rows, for deletes, updates, overwrites and upserts.

Data files without remaining live rows are removed in both modes, with their deletes. For others, merge-on-read writes
the positions of deleted rows (position-delete files in format version 2, deletion vectors in version 3), including
those deleted before, so that one file has all deletes of a data file; copy-on-write writes the remaining rows as new
data files. Inserted rows are written as new data files in both modes.

The files are found and written here, or by executors (`icebench.engine.operations.executor_changes`), by the same
functions; they are committed here in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.changes.read import Read
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import FileRef, ref_of, refs_of_deletes
from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.commit.target import Target
from icebench.engine.commit.written_for import WrittenFor
from icebench.engine.deletes.files import FileRead
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions.predicate import Predicate
from icebench.engine.operations.executor_changes import ExecutorChanges
from icebench.engine.operations.row_writer import ChangedFiles, Coming, RowWriter, joined_files, split_matching
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.read.matches import superseded_by_rewrite
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import Property
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.resolve import default_runner
from icebench.engine.write.data_files import remove_files

Mode = Literal["copy-on-write", "merge-on-read"]


def chosen_mode(mode: Mode | None, metadata: TableMetadata, default: Property[str]) -> str:
    """The requested mode, or the table's, which is copy-on-write by default.

    Raises:
        Invalid: The mode is unknown.
        Unsupported: The format version does not have it.
    """
    chosen = default.of(metadata.properties) if mode is None else mode
    if chosen not in ("copy-on-write", "merge-on-read"):
        raise Invalid(f"mode {chosen!r} is neither 'merge-on-read' nor 'copy-on-write'")
    if chosen == "merge-on-read" and metadata.format_version < 2:
        raise Unsupported("merge-on-read in format version 1, which has no delete files; upgrade the table")
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """The context of one change of rows.

    Args:
        target: The table.
        plan: The plan that found the rows: the state of the branch from which the change starts.
        mode: How rows are deleted.
        added_rows: Rows that others may not add concurrently (serializable isolation); None for snapshot isolation.
        branch: The branch to change.
        properties: Entries for the snapshot summary.
        executors: Find and write rows; None does so in this process.
    """

    target: Target
    plan: ScanPlan
    mode: str
    added_rows: Predicate | None
    branch: str
    properties: Mapping[str, str] = field(default_factory=dict)
    executors: ExecutorChanges | None = None

    @classmethod
    def of(
        cls,
        target: Target,
        scan: TableScan,
        *,
        mode: str,
        isolation: Property[str],
        branch: str,
        properties: Mapping[str, str] | None,
        executors: ExecutorChanges | None = None,
    ) -> RowChange:
        """A change of the rows of a scan; the property decides the isolation level."""
        serializable = isolation.of(scan.metadata.properties) == "serializable"
        return cls(
            target=target,
            plan=scan.plan(),
            mode=mode,
            added_rows=scan.predicate if serializable else None,
            branch=branch,
            properties=dict(properties or {}),
            executors=executors,
        )

    @property
    def metadata(self) -> TableMetadata:
        """The table as planned."""
        return self.plan.metadata

    def writer(self) -> RowWriter:
        """Writes the rows; its files have names of their own."""
        target, before = self.target, self.target.committed_metadata
        return RowWriter(
            metadata=self.metadata,
            request=request_for(self.plan, target.store),
            mode=self.mode,
            runner=default_runner(target.store, self.metadata.location),
            assigned=None if before is None else (before.next_row_id or 0, before.last_sequence_number),
            counters=target.counters,
        )

    def changed_by_filter(self, coming: Coming | None = None, *, drop_whole: bool = False) -> ChangedFiles:
        """Delete the rows for which the plan's filter is true, and write those that come instead.

        Args:
            coming: The inserted rows; None for none.
            drop_whole: See `split_matching`; only where no rows come.
        """
        writer, files = self.writer(), list(planned_files(self.plan))
        if self.executors is None:
            return writer.changed_by_filter(files, coming, drop_whole=drop_whole)
        # Files that are removed as a whole need not be read.
        gone, rest = split_matching(files, drop_whole=drop_whole) if coming is None else ([], files)
        return ChangedFiles(gone=gone) + self.executors.changed_by_filter(writer, rest, coming)

    def validation(
        self, referenced: Sequence[FileRef], refuse_deletes: Literal["all", "positions", "none"]
    ) -> Validation:
        """What must not happen concurrently."""
        return Validation(
            starting_snapshot_id=None if self.plan.snapshot is None else self.plan.snapshot.snapshot_id,
            referenced=referenced,
            added_rows=self.added_rows,
            schema=self.plan.schema,
            refuse_deletes=refuse_deletes,
        )

    def leave(self) -> None:
        """Record that no row matched, since a concurrent commit that adds a matching row may make this wrong."""
        if self.added_rows is not None:
            self.target.read(Read(validation=self.validation([], "none"), branch=self.branch))

    def commit(self, changed: ChangedFiles, *, added: Sequence[DataFile] = ()) -> tuple[TableState, Snapshot]:
        """Commit what was written; where it certainly is not visible, all new files are removed.

        Args:
            changed: Deleted rows, and rows that were inserted for them.
            added: Files of further inserted rows.
        """
        make = self._rewritten if self.mode == "copy-on-write" else self._marked
        try:
            change = make(changed, joined_files(added, changed.data_files))
        except BaseException:
            remove_files(self.target.store, [*added, *changed.written])
            raise
        committed = self.target.commit([change], chain(added, changed.written))
        return committed, change.snapshot_in(committed.metadata)

    def _marked(self, changed: ChangedFiles, added: Sequence[DataFile]) -> SnapshotProducer:
        vectors, refs = self.metadata.format_version >= 3, changed.refs
        # Two vectors of one data file cannot both be in the table; two position-delete files can. A row that comes in
        # place of one that another commit deletes would bring it back.
        refused: Literal["all", "positions", "none"] = "all" if added else "positions" if vectors else "none"
        merged = _superseded(changed.partial) if self.writer().merges_deletes else []
        kind = Append if not refs else Overwrite if added and changed.gone else RowDelta
        return kind(
            data_files=added,
            delete_files=changed.delete_files,
            removed_data=[ref_of(file) for file in changed.gone],
            removed_deletes=[*_superseded(changed.gone), *(merged if vectors else ())],
            merged_deletes=[] if vectors else merged,
            validation=self.validation(refs, refused),
            planned_version=self.metadata.format_version if refs else None,
            written_for=WrittenFor(schema=self.metadata.schema),
            branch=self.branch,
            properties=self.properties,
        )

    def _rewritten(self, changed: ChangedFiles, files: Sequence[DataFile]) -> SnapshotProducer:
        refs = changed.refs
        kind = Overwrite if refs else Append
        return kind(
            data_files=files,
            removed_data=refs,
            removed_deletes=_superseded([*changed.gone, *changed.partial]),
            validation=self.validation(refs, "all"),
            planned_version=self.metadata.format_version if refs else None,
            written_for=WrittenFor(schema=self.metadata.schema),
            branch=self.branch,
            properties=self.properties,
        )


def _superseded(files: Sequence[FileRead]) -> list[FileRef]:
    """The delete files that refer to these data files only."""
    return [ref for file in files for ref in refs_of_deletes(file, superseded_by_rewrite(file))]
