"""Deleting rows by a filter: merge-on-read or copy-on-write.

Data files none of whose live rows remain are taken out of the table in both modes, with their deletes. For the others,
merge-on-read writes which rows are deleted (position-delete files in format version 2, deletion vectors in version 3);
copy-on-write writes the rows that remain as new data files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from engine.columnar.reserved import LAST_UPDATED, POS, ROW_ID
from engine.commit.changes.overwrite import Overwrite
from engine.commit.changes.row_delta import RowDelta
from engine.commit.committer import TableState
from engine.commit.conflicts import Validation
from engine.commit.file_changes import FileChanges
from engine.commit.file_refs import FileRef
from engine.errors import Invalid, Unsupported
from engine.expressions.predicate import Predicate
from engine.operations.target import Target
from engine.plan.scan import ScanPlan, TableScan
from engine.read.matches import MatchedRows, matched_rows
from engine.read.plans import request_for
from engine.read.reader import read_files
from engine.runtime.local import LocalRunner
from engine.spec.data_file import DataFile, FileContent
from engine.spec.metadata import TableMetadata
from engine.spec.properties import DELETE_ISOLATION, DELETE_MODE
from engine.spec.schema import Schema
from engine.spec.snapshots import MAIN, Snapshot
from engine.write.data_files import write_data_files
from engine.write.delete_files import DeletedRows, write_position_deletes
from engine.write.vectors import write_deletion_vectors

Mode = Literal["copy-on-write", "merge-on-read"]


def delete(
    target: Target,
    scan_of: Callable[[TableMetadata], TableScan],
    *,
    mode: Mode | None = None,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableState, Snapshot | None]:
    """Delete the rows that a scan's filter is true for, in one snapshot.

    A row for which the filter is null stays. With ``write.delete.isolation-level=serializable`` (the default) the
    commit fails if another one added rows that the filter may be true for; with ``snapshot`` such rows stay.

    Args:
        target: The table.
        scan_of: Makes the scan of the branch whose filter says what to delete; its columns do not matter.
        mode: How; None means the table property ``write.delete.mode``, which then must be set.
        branch: Where.
        properties: Entries for the snapshot summary.

    Returns:
        The table without the rows, and the snapshot that deleted them; None where no row matched and none was made.

    Raises:
        Invalid: No mode, or the filter does not fit the table.
        Unsupported: The mode is not possible in the table's format version.
        ValidationFailed: Another commit changed what this one was meant for.
        CommitFailed: See `Target.commit`.
    """
    state = target.committer.load_state(target.identifier)
    chosen = _mode(mode, state.metadata)
    scan = scan_of(state.metadata)
    plan = scan.plan()
    matches = list(matched_rows(plan, target.store, counters=target.counters, runner=scan.runner))
    if not matches:
        return state, None
    change = _Prepared.of(matches, plan).change(
        chosen, _Context(target, plan, scan.predicate, branch, dict(properties or {}))
    )
    committed = target.commit([change], [*change.data_files, *change.delete_files])
    return committed, committed.metadata.snapshot(change.added_snapshot_id)


def _mode(mode: Mode | None, metadata: TableMetadata) -> str:
    chosen = mode or DELETE_MODE.of(metadata.properties)
    if chosen is None:
        raise Invalid(
            f"say how to delete: mode='merge-on-read' or mode='copy-on-write', or set table property {DELETE_MODE.name}"
        )
    if chosen not in ("copy-on-write", "merge-on-read"):
        raise Invalid(f"mode {chosen!r} is neither 'merge-on-read' nor 'copy-on-write'")
    if chosen == "merge-on-read" and metadata.format_version < 2:
        raise Unsupported("merge-on-read in format version 1, which has no delete files; upgrade the table")
    return chosen


@dataclass(frozen=True, slots=True)
class _Context:
    target: Target
    plan: ScanPlan
    predicate: Predicate
    branch: str
    properties: Mapping[str, str]

    @property
    def metadata(self) -> TableMetadata:
        return self.plan.metadata

    def validation(
        self, referenced: Sequence[FileRef], refuse_deletes: Literal["all", "positions", "none"]
    ) -> Validation:
        serializable = DELETE_ISOLATION.of(self.metadata.properties) == "serializable"
        return Validation(
            starting_snapshot_id=None if self.plan.snapshot is None else self.plan.snapshot.snapshot_id,
            referenced=referenced,
            added_rows=self.predicate if serializable else None,
            refuse_deletes=refuse_deletes,
        )


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Matches, sorted into data files of which nothing remains and others."""

    gone: list[MatchedRows] = field(default_factory=list)
    partial: list[MatchedRows] = field(default_factory=list)

    @classmethod
    def of(cls, matches: Sequence[MatchedRows], plan: ScanPlan) -> _Prepared:
        paths, counts = plan.files.column("file_path").to_pylist(), plan.files.column("record_count").to_pylist()
        record_count = dict(zip(paths, counts, strict=True))
        prepared = cls()
        for match in matches:
            # How many rows equality deletes have taken is not known here.
            by_key = any(d.content is FileContent.EQUALITY_DELETES for d in match.file.deletes)
            taken = len(match.positions) + len(match.deleted_before)
            whole = not by_key and taken == record_count[match.file.file_path]
            (prepared.gone if whole else prepared.partial).append(match)
        return prepared

    def change(self, mode: str, context: _Context) -> FileChanges:
        """Write what the mode needs, and say what to commit."""
        if mode == "copy-on-write":
            return self._rewritten(context)
        return self._marked(context)

    def _marked(self, context: _Context) -> RowDelta:
        metadata, target = context.metadata, context.target
        vectors = metadata.format_version >= 3
        deleted = [
            DeletedRows(
                file_path=match.file.file_path,
                positions=np.union1d(match.positions, match.deleted_before) if vectors else match.positions,
                spec_id=match.file.spec_id,
                partition=match.partition,
            )
            for match in self.partial
        ]
        write = write_deletion_vectors if vectors else write_position_deletes
        superseded = [*self.gone, *self.partial] if vectors else self.gone
        refs = [_ref(match) for match in [*self.gone, *self.partial]]
        return RowDelta(
            delete_files=write(deleted, metadata=metadata, store=target.store, counters=target.counters),
            removed_data=[_ref(match) for match in self.gone],
            removed_deletes=_superseded(superseded),
            # Two vectors of one data file cannot both be in the table; two position-delete files can.
            validation=context.validation(refs, "positions" if vectors else "none"),
            branch=context.branch,
            properties=context.properties,
        )

    def _rewritten(self, context: _Context) -> Overwrite:
        metadata, target = context.metadata, context.target
        refs = [_ref(match) for match in [*self.gone, *self.partial]]
        written: list[DataFile] = []
        if self.partial:
            remaining = _remaining_rows(self.partial, context)
            written = write_data_files(
                remaining,
                metadata=metadata,
                store=target.store,
                schema=_written_schema(metadata),
                counters=target.counters,
            )
        return Overwrite(
            data_files=written,
            removed_data=refs,
            removed_deletes=_superseded([*self.gone, *self.partial]),
            validation=context.validation(refs, "all"),
            branch=context.branch,
            properties=context.properties,
        )


def _ref(match: MatchedRows) -> FileRef:
    return FileRef(file_path=match.file.file_path, spec_id=match.file.spec_id, partition=match.partition)


def _superseded(matches: Sequence[MatchedRows]) -> list[FileRef]:
    """The delete files that concern only these data files."""
    return [
        FileRef(
            file_path=deletes.file_path,
            spec_id=match.file.spec_id,
            partition=match.partition,
            content_offset=deletes.content_offset if deletes.is_vector else None,
        )
        for match in matches
        for deletes in match.superseded
    ]


def _written_schema(metadata: TableMetadata) -> Schema:
    """The columns of rewritten files: in format version 3 rows keep their ids (spec: "Row Lineage")."""
    if metadata.format_version < 3:
        return metadata.schema
    return Schema((*metadata.schema.fields, ROW_ID, LAST_UPDATED), metadata.schema.schema_id)


def _remaining_rows(matches: Sequence[MatchedRows], context: _Context) -> pa.RecordBatchReader:
    """The live rows of the data files without those that match, file by file."""
    target = context.target
    written = _written_schema(context.metadata)
    request = request_for(context.plan, target.store, projection=Schema((*written.fields, POS)))
    schema = pa.schema(list(request.arrow_schema)[:-1])

    def batches() -> Iterator[pa.RecordBatch]:
        for match in matches:
            whole = [replace(match.file, residual=None)]
            for batch in read_files(whole, request, runner=LocalRunner(), counters=target.counters):
                positions = batch.column(batch.num_columns - 1).to_numpy()
                kept = batch.filter(pa.array(~np.isin(positions, match.positions, assume_unique=True)))
                yield pa.RecordBatch.from_arrays(kept.columns[:-1], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
