"""Turns deleted and inserted rows into files to commit, for deletes, updates, overwrites and upserts.

Data files without remaining live rows are removed in both modes, with their deletes. For others, merge-on-read writes
the positions of deleted rows (position-delete files in format version 2, deletion vectors in version 3), including
those deleted before, so that one file has all deletes of a data file; copy-on-write writes the remaining rows as new
data files. Inserted rows are written as new data files in both modes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.lineage import without_preliminary
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.changes.read import Read
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import FileRef, ref_of, refs_of_deletes
from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.commit.target import Target
from icebench.engine.deletes.files import FileRead
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions.predicate import Predicate
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.read.matches import MatchedRows, matched_rows, superseded_by_rewrite
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import POS
from icebench.engine.spec.properties import DELETE_GRANULARITY, Property
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.resolve import default_runner
from icebench.engine.write.data_files import remove_files, write_data_files, written_schema
from icebench.engine.write.delete_files import DeletedRows, write_position_deletes
from icebench.engine.write.vectors import write_deletion_vectors

Mode = Literal["copy-on-write", "merge-on-read"]
Rows: TypeAlias = pa.RecordBatchReader | pa.Table


def chosen_mode(mode: Mode | None, metadata: TableMetadata, default: Property[str | None], verb: str) -> str:
    """The requested mode, or the table's.

    Raises:
        Invalid: Neither is set, or a mode is unknown.
        Unsupported: The format version does not have it.
    """
    chosen = mode or default.of(metadata.properties)
    if chosen is None:
        raise Invalid(
            f"say how to {verb}: mode='merge-on-read' or mode='copy-on-write', or set table property {default.name}"
        )
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
        branch: Where.
        properties: Entries for the snapshot summary.
    """

    target: Target
    plan: ScanPlan
    mode: str
    added_rows: Predicate | None
    branch: str
    properties: Mapping[str, str] = field(default_factory=dict)

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
        )

    @property
    def metadata(self) -> TableMetadata:
        """The table as planned."""
        return self.plan.metadata

    def validation(
        self, referenced: Sequence[FileRef], refuse_deletes: Literal["all", "positions", "none"]
    ) -> Validation:
        """What must not happen meanwhile."""
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

    def commit(
        self, matches: Matches, *, added: Sequence[DataFile] = (), coming: Rows | None = None
    ) -> tuple[TableState, Snapshot]:
        """Write deleted and inserted rows, and commit; arguments as `prepare`."""
        prepared = self.prepare(matches, added=added, coming=coming)
        committed = self.target.commit([prepared], [*prepared.data_files, *prepared.delete_files])
        return committed, prepared.snapshot_in(committed.metadata)

    def prepare(
        self, matches: Matches, *, added: Sequence[DataFile] = (), coming: Rows | None = None
    ) -> SnapshotProducer:
        """Write deleted and inserted rows, and return the change to commit.

        Args:
            matches: Deleted rows.
            added: Files of inserted rows, which are removed on failure.
            coming: Inserted rows that are not yet written, with the columns of `written_schema` by name. Copy-on-write
                adds them to the files of the remaining rows, which halves the number of files.
        """
        files = list(added)
        try:
            if self.mode == "copy-on-write":
                files += self._written_again(matches, coming)
                return self._rewritten(matches, files)
            if coming is not None:
                files += self.write(coming)
            return self._marked(matches, files)
        except BaseException:
            remove_files(self.target.store, files)
            raise

    def write(self, rows: Rows) -> list[DataFile]:
        """Write rows with the columns of `written_schema` by name.

        A row that the same transaction has added gets its id when its last file is committed: another commit may take
        the preliminary one.
        """
        committed = self.target.committed_metadata
        return write_data_files(
            rows if committed is None or self.metadata.format_version < 3 else _with_assigned_ids(rows, committed),
            metadata=self.metadata,
            store=self.target.store,
            schema=written_schema(self.metadata),
            counters=self.target.counters,
        )

    def _marked(self, matches: Matches, added: Sequence[DataFile]) -> SnapshotProducer:
        vectors = self.metadata.format_version >= 3
        earlier = self._merged_before(matches.partial)
        deleted = [
            DeletedRows(
                file_path=match.file.file_path,
                positions=np.union1d(match.positions, before),
                spec_id=match.file.spec_id,
                partition=match.partition,
            )
            for match, before in zip(matches.partial, earlier, strict=True)
        ]
        write = write_deletion_vectors if vectors else write_position_deletes
        refs = matches.refs
        # Two vectors of one data file cannot both be in the table; two position-delete files can. A row that comes in
        # place of one that another commit deletes would bring it back.
        refused: Literal["all", "positions", "none"] = "all" if added else "positions" if vectors else "none"
        merged = _superseded([match.file for match in matches.partial]) if self._merges_deletes else []
        kind = Append if not refs else Overwrite if added and matches.gone else RowDelta
        return kind(
            data_files=added,
            delete_files=write(deleted, metadata=self.metadata, store=self.target.store, counters=self.target.counters)
            if deleted
            else [],
            removed_data=[ref_of(file) for file in matches.gone],
            removed_deletes=[*_superseded(matches.gone), *(merged if vectors else ())],
            merged_deletes=[] if vectors else merged,
            validation=self.validation(refs, refused),
            planned_version=self.metadata.format_version if refs else None,
            branch=self.branch,
            properties=self.properties,
        )

    @property
    def _merges_deletes(self) -> bool:
        """Whether all deletes of a data file go into one file. A deletion vector must have them all; a position-delete
        file does so unless it is for a whole partition, since a reader would otherwise open one file per change."""
        return self.metadata.format_version >= 3 or DELETE_GRANULARITY.of(self.metadata.properties) == "file"

    def _merged_before(self, matches: Sequence[MatchedRows]) -> list[npt.NDArray[np.int64]]:
        """For each data file, the earlier deleted positions that the new deletes replace: all of a deletion vector, and
        those of position-delete files that refer to this data file alone."""
        if self.metadata.format_version >= 3:
            return [match.deleted_before for match in matches]
        nothing = np.empty(0, np.int64)
        own = [replace(match.file, deletes=match.superseded) for match in matches]
        if not self._merges_deletes or not any(each.deletes for each in own):
            return [nothing] * len(own)
        request = request_for(self.plan, self.target.store)
        runner = default_runner(self.target.store, self.metadata.location)
        loaded = request.load_deletes(own, runner=runner, counters=self.target.counters)
        found = (loaded.of(each).positions for each in own)
        return [nothing if positions is None else positions for positions in found]

    def _written_again(self, matches: Matches, coming: Rows | None) -> list[DataFile]:
        """Write new files with the remaining and the inserted rows."""
        if not matches.partial:
            return [] if coming is None else self.write(coming)
        remaining = _remaining_rows(matches.partial, self)
        return self.write(remaining if coming is None else _joined(remaining, coming))

    def _rewritten(self, matches: Matches, files: Sequence[DataFile]) -> SnapshotProducer:
        kind = Overwrite if matches.refs else Append
        return kind(
            data_files=files,
            removed_data=matches.refs,
            removed_deletes=_superseded([*matches.gone, *(match.file for match in matches.partial)]),
            validation=self.validation(matches.refs, "all"),
            planned_version=self.metadata.format_version if matches.refs else None,
            branch=self.branch,
            properties=self.properties,
        )


@dataclass(frozen=True, slots=True)
class Matches:
    """Deleted rows: all rows of some data files, some rows of others."""

    gone: list[FileRead] = field(default_factory=list)
    partial: list[MatchedRows] = field(default_factory=list)

    @classmethod
    def of_filter(cls, scan: TableScan, plan: ScanPlan, target: Target, *, drop_whole: bool = False) -> Matches:
        """The rows for which the filter of a plan is true.

        Args:
            scan: The scan of the plan.
            plan: The files that may have such rows.
            target: The table.
            drop_whole: Remove files whose rows all match without checking for live rows.
        """
        whole: list[FileRead] = []
        others: list[FileRead] = []
        for file in planned_files(plan):
            known = file.residual is None and (drop_whole or (not file.deletes and file.record_count > 0))
            (whole if known else others).append(file)
        found = matched_rows(plan, target.store, files=others, counters=target.counters, runner=scan.runner)
        sorted_out = cls.of(list(found))
        return cls([*whole, *sorted_out.gone], sorted_out.partial)

    @classmethod
    def of(cls, matches: Sequence[MatchedRows]) -> Matches:
        """Separate files without remaining rows from others."""
        found = cls()
        for match in matches:
            # The number of rows removed by equality deletes is unknown here.
            by_key = any(d.content is FileContent.EQUALITY_DELETES for d in match.file.deletes)
            taken = len(match.positions) + len(match.deleted_before)
            if not by_key and taken == match.file.record_count:
                found.gone.append(match.file)
            else:
                found.partial.append(match)
        return found

    def __bool__(self) -> bool:
        return bool(self.gone or self.partial)

    @property
    def refs(self) -> list[FileRef]:
        """The data files that lose rows."""
        return [ref_of(file) for file in [*self.gone, *(match.file for match in self.partial)]]


def _with_assigned_ids(rows: Rows, committed: TableMetadata) -> pa.RecordBatchReader:
    """The rows without preliminary lineage, which only the commit will assign."""
    next_row_id, last = committed.next_row_id or 0, committed.last_sequence_number
    batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
    assigned = (without_preliminary(batch, next_row_id, last) for batch in batches)
    return pa.RecordBatchReader.from_batches(rows.schema, assigned)


def _superseded(files: Sequence[FileRead]) -> list[FileRef]:
    """The delete files that refer to these data files only."""
    return [ref for file in files for ref in refs_of_deletes(file, superseded_by_rewrite(file))]


def _remaining_rows(matches: Sequence[MatchedRows], change: RowChange) -> pa.RecordBatchReader:
    """The live rows of the data files that do not match, file by file."""
    target = change.target
    written = written_schema(change.metadata)
    request = request_for(change.plan, target.store, projection=Schema((*written.fields, POS)))
    schema = pa.schema(list(request.arrow_schema)[:-1])
    runner = default_runner(target.store, change.metadata.location)

    def batches() -> Iterator[pa.RecordBatch]:
        for match in matches:
            whole = [replace(match.file, residual=None)]
            for batch in read_files(whole, request, runner=runner, counters=target.counters):
                positions = batch.column(batch.num_columns - 1).to_numpy()
                kept = batch.filter(pa.array(~np.isin(positions, match.positions, assume_unique=True)))
                yield pa.RecordBatch.from_arrays(kept.columns[:-1], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _joined(first: pa.RecordBatchReader, second: Rows) -> pa.RecordBatchReader:
    """The rows of both, with the columns of the first."""
    schema = first.schema
    rest = second.to_batches() if isinstance(second, pa.Table) else second

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first
        for batch in rest:
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
