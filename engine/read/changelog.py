"""Changelogs: the changes of a table's rows between two snapshots.

Each snapshot is compared with its parent (`icebench.engine.plan.changes`): rows of removed data files, and rows that
new deletes remove, are DELETE; rows of added data files are INSERT. A row that a snapshot removes and adds unchanged
was merely rewritten and is left out. Whole rows are compared, whatever columns are projected: by row id and values in
tables with row lineage, else by values, one for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.batch_columns import column_by_id, combined
from icebench.engine.columnar.matching import find_uncancelled, row_codes, update_pairs
from icebench.engine.columnar.projection import MissingValues, Projector
from icebench.engine.columnar.scalars import shown_value
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.deletes.files import FileRead
from icebench.engine.deletes.positions import Positions
from icebench.engine.display import count_text, printable
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.plan.changes import SnapshotChanges, changes_of
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.positions import read_rows_at
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import BATCH_ROWS
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata_columns import CHANGE_COLUMNS, FILE, POS, ROW_ID
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot

INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER = "INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"

_KINDS = pa.array([DELETE, INSERT, UPDATE_BEFORE, UPDATE_AFTER], pa.string())
_NO_POSITIONS: Positions = np.zeros(0, np.int64)
_Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ChangelogScan:
    """A changelog; created without reading anything.

    Args:
        scan: Supplies table, schema, filter, columns and runner.
        span: The snapshots, in a line, oldest first.
        net_changes: Also cancel out changes of different snapshots, and return those that remain. Holds all changes in
            memory.
        identifier_columns: Columns that identify a row, for updates; those of the schema by default, and the row id in
            tables with row lineage.
        compute_updates: Return a DELETE and an INSERT of one snapshot with the same identifier as UPDATE_BEFORE and
            UPDATE_AFTER.
        counters: Count planning and reading.
        to_frame: Makes a DataFrame of a Spark session and a changelog.

    Raises:
        Invalid: A table column has the name of a change column, an identifier is unknown or inside a list or map,
            nothing identifies rows, or updates are combined with net changes.
    """

    scan: TableScan
    span: tuple[Snapshot, ...]
    net_changes: bool = False
    identifier_columns: tuple[str, ...] | None = None
    compute_updates: bool = False
    counters: Counters = field(default_factory=Counters)
    to_frame: Callable[[Any, ChangelogScan], Any] | None = None

    def __repr__(self) -> str:
        said = [printable(self.scan.table_name or self.scan.metadata.location), count_text(len(self.span), "snapshot")]
        if self.span:
            said.append(f"{self.span[0].snapshot_id} to {self.span[-1].snapshot_id}")
        said.append(f"filter: {printable(self.scan.predicate)}")
        said += ["net changes"] if self.net_changes else []
        said += ["with updates"] if self.compute_updates else []
        return f"ChangelogScan({', '.join(said)})"

    def __post_init__(self) -> None:
        added = (*CHANGE_COLUMNS, ROW_ID) if self._has_lineage else CHANGE_COLUMNS
        taken = [f.name for f in added if f.name in {own.name for own in self.scan.schema.fields}]
        if taken:
            raise Invalid(f"column {taken[0]!r} of the table has the name of a changelog's column; rename it first")
        if self.net_changes and self.compute_updates:
            raise Invalid("net changes have no updates: an update may begin and end in different snapshots")
        _ = self.scan.projection, self.scan.bound, self._identifiers

    @cached_property
    def schema(self) -> Schema:
        """The columns of the result: the projected ones, then `_change_type`, `_change_ordinal`,
        `_commit_snapshot_id`."""
        return Schema((*self.scan.projection.fields, *CHANGE_COLUMNS))

    @cached_property
    def _identifiers(self) -> tuple[int, ...]:
        """The columns that identify a row; empty if none is needed."""
        if not self.compute_updates:
            return ()
        schema = self.scan.schema
        if self.identifier_columns is not None:
            find, sensitive = schema.find, self.scan.case_sensitive
            found = tuple(find(name, case_sensitive=sensitive).field_id for name in self.identifier_columns)
        elif schema.identifier_field_ids:
            found = tuple(sorted(schema.identifier_field_ids))
        else:
            found = (ROW_ID.field_id,) if self._has_lineage else ()
        if not found:
            raise Invalid("updates need identifier columns: the table has none, nor row ids; name them")
        return found

    @property
    def _has_lineage(self) -> bool:
        return self.scan.metadata.format_version >= 3

    def plan(self) -> Iterator[SnapshotChanges]:
        """The changed files of each snapshot that changes rows; see `icebench.engine.plan.changes`."""
        return changes_of(self.scan, self.span, self.counters)

    def to_batches(self, *, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        """Stream the changes snapshot by snapshot, oldest first; within a snapshot deletes, updates, inserts.

        A snapshot that only adds or only removes rows is streamed; the changed rows of other snapshots are held in
        memory.

        Args:
            batch_rows: The most rows of a batch.

        Raises:
            From the stream NotFound: The parent of a snapshot that removes rows was expired.
            Invalid: Several rows of one snapshot have the same identifier, so updates are ambiguous.
            FileNotFound, CorruptTable, Unsupported: As a scan's.
        """
        schema = to_arrow_schema(self.schema)
        tables = self._net_changes(batch_rows) if self.net_changes else self._changes(batch_rows)
        batches = (b for table in tables for b in table.to_batches(max_chunksize=batch_rows) if b.num_rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def to_arrow(self) -> pa.Table:
        """The changes as a table; raises as `to_batches`."""
        return self.to_batches().read_all()

    def to_spark(self, spark: Any) -> Any:  # noqa: ANN401 - Spark's own types are at home in `engine.spark` alone
        """The changes as a `pyspark.sql.DataFrame` of a `pyspark.sql.SparkSession`; planned now, read when it runs.

        See `icebench.engine.spark.changelog_scan`, also for errors.
        """
        if self.to_frame is None:
            raise Unsupported("a DataFrame of this changelog: it was not made by Table.changelog_scan")
        return self.to_frame(spark, self)

    def _changes(self, batch_rows: int) -> Iterator[pa.Table]:
        for change in self.plan():
            rows = _ChangedRows(self, change, batch_rows)
            if rows.takes and rows.brings:
                yield self._keep_uncancelled(_Candidates.of([rows], self._whole))
            else:
                for batch in rows.deleted(self.scan.projection):
                    yield self._complete(pa.Table.from_batches([batch]), 0, change)
                for batch in rows.inserted(self.scan.projection):
                    yield self._complete(pa.Table.from_batches([batch]), 1, change)

    def _net_changes(self, batch_rows: int) -> Iterator[pa.Table]:
        found = _Candidates.of([_ChangedRows(self, change, batch_rows) for change in self.plan()], self._whole)
        yield self._keep_uncancelled(found)

    @property
    def _whole(self) -> Schema:
        """All columns of the table, with the row id if there is one."""
        fields = self.scan.schema.fields
        return Schema((*fields, ROW_ID) if self._has_lineage else fields)

    def _complete(self, rows: pa.Table, kind: int, change: SnapshotChanges) -> pa.Table:
        kinds = np.full(rows.num_rows, kind)
        return _with_changes(rows, self, kinds, np.full(rows.num_rows, change.ordinal), [change])

    def _keep_uncancelled(self, found: _Candidates) -> pa.Table:
        """The changes of candidates that do not cancel out."""
        kept = np.flatnonzero(find_uncancelled(self._codes(found), found.ordinals, found.inserted))
        rows, ordinals, inserted = found.rows.take(pa.array(kept)), found.ordinals[kept], found.inserted[kept]
        kinds = inserted.astype(np.int64)
        order = np.lexsort((kinds, ordinals))
        if self.compute_updates:
            keys = [_identifier(rows, self.scan.schema, field_id) for field_id in self._identifiers]
            pairs = update_pairs(row_codes(keys, len(kept)), inserted)
            if pairs.ambiguous is not None:
                key = [shown_value(column[pairs.ambiguous]) for column in keys]
                snapshot = found.changes[0].snapshot.snapshot_id
                raise Invalid(f"snapshot {snapshot} changes several rows with identifier {key}: updates are ambiguous")
            kinds[pairs.before], kinds[pairs.after] = 2, 3
            rank = np.where(inserted, 2 * len(kept), 0)  # deletes, pairs, inserts
            rank[pairs.before] = len(kept) // 2 + np.arange(len(pairs.before))
            rank[pairs.after] = rank[pairs.before]
            order = np.lexsort((inserted, rank))
        chosen = rows.select([f.name for f in self.scan.schema.fields]).take(pa.array(order))
        return _with_changes(self._project(chosen), self, kinds[order], ordinals[order], found.changes)

    def _codes(self, found: _Candidates) -> _Codes:
        """Codes of equal rows. The row id only counts if every row has one: a file from before an upgrade to version 3
        has none, and a file that its rows were moved to does."""
        columns = [combined(column) for column in found.rows.columns]
        if self._has_lineage and columns[-1].null_count:
            columns = columns[:-1]
        return row_codes(columns, found.rows.num_rows)

    def _project(self, rows: pa.Table) -> pa.Table:
        """Project rows with all columns to the requested columns."""
        if self.scan.columns is None:
            return rows
        return Projector(missing=MissingValues()).table(rows, self.scan.projection, rows.schema)


def _identifier(rows: pa.Table, schema: Schema, field_id: int) -> pa.Array:
    if field_id == ROW_ID.field_id:
        return combined(rows.column(ROW_ID.name))
    return column_by_id(rows, schema, field_id)


def _with_changes(
    rows: pa.Table, scan: ChangelogScan, kinds: _Codes, ordinals: _Codes, changes: Sequence[SnapshotChanges]
) -> pa.Table:
    ids = np.zeros(max((c.ordinal for c in changes), default=-1) + 1, np.int64)
    for change in changes:
        ids[change.ordinal] = change.snapshot.snapshot_id
    change_columns = [_KINDS.take(pa.array(kinds)), pa.array(ordinals, pa.int32()), pa.array(ids[ordinals], pa.int64())]
    return pa.Table.from_arrays([*rows.columns, *change_columns], schema=to_arrow_schema(scan.schema))


@dataclass(frozen=True, kw_only=True)
class _Candidates:
    """Whole rows that were removed or added, with the time of the change."""

    rows: pa.Table
    ordinals: _Codes
    inserted: npt.NDArray[np.bool_]
    changes: Sequence[SnapshotChanges]

    @classmethod
    def of(cls, changed: Sequence[_ChangedRows], schema: Schema) -> _Candidates:
        batches: list[pa.RecordBatch] = []
        ordinals: list[int] = []
        inserted: list[bool] = []
        for rows in changed:
            for side, found in ((False, rows.deleted(schema)), (True, rows.inserted(schema))):
                own = list(found)
                batches += own
                ordinals += [rows.change.ordinal] * len(own)
                inserted += [side] * len(own)
        lengths = [batch.num_rows for batch in batches]
        return cls(
            rows=pa.Table.from_batches(batches, to_arrow_schema(schema)),
            ordinals=np.repeat(np.array(ordinals, np.int64), lengths),
            inserted=np.repeat(np.array(inserted, np.bool_), lengths),
            changes=[rows.change for rows in changed],
        )


class _ChangedRows:
    """The rows that one snapshot removed and added, before any cancel out."""

    def __init__(self, scan: ChangelogScan, change: SnapshotChanges, batch_rows: int) -> None:
        self._scan = scan.scan
        self._counters = scan.counters
        self._batch_rows = batch_rows
        self.change = change
        self._gone, self._back = self._compare_positions()

    @property
    def takes(self) -> bool:
        """Whether rows may have been removed."""
        return bool(len(self.change.removed) or self._gone)

    @property
    def brings(self) -> bool:
        """Whether rows may have been added."""
        return bool(len(self.change.added) or self._back)

    def deleted(self, schema: Schema) -> Iterator[pa.RecordBatch]:
        """The removed rows."""
        if self.change.before is not None:
            yield from self._live(self.change.before, self.change.removed, schema)
            yield from self._at(self.change.before, self._gone, schema)

    def inserted(self, schema: Schema) -> Iterator[pa.RecordBatch]:
        """The added rows, including those whose delete was undone."""
        yield from self._live(self.change.after, self.change.added, schema)
        yield from self._at(self.change.after, self._back, schema)

    def _live(self, plan: ScanPlan, rows: _Codes, schema: Schema) -> Iterator[pa.RecordBatch]:
        files = list(planned_files(plan, rows=rows)) if len(rows) else []
        if files:
            yield from self._read(plan, files, schema)

    def _read(self, plan: ScanPlan, files: Sequence[FileRead], schema: Schema) -> Iterator[pa.RecordBatch]:
        request = request_for(
            plan, self._scan.store, projection=schema, batch_rows=self._batch_rows, table_name=self._scan.table_name
        )
        yield from read_files(files, request, runner=self._scan.runner, counters=self._counters)

    def _at(
        self, plan: ScanPlan, files: Sequence[tuple[FileRead, Positions]], schema: Schema
    ) -> Iterator[pa.RecordBatch]:
        if files:
            request = request_for(
                plan, self._scan.store, projection=schema, batch_rows=self._batch_rows, table_name=self._scan.table_name
            )
            yield from read_rows_at(files, request, runner=self._scan.runner, counters=self._counters)

    def _compare_positions(self) -> tuple[list[tuple[FileRead, Positions]], list[tuple[FileRead, Positions]]]:
        """The positions that new deletes remove from kept files, and those that are no longer deleted."""
        change = self.change
        if change.before is None or not len(change.changed_before):
            return [], []
        before = list(planned_files(change.before, rows=change.changed_before))
        after = list(planned_files(change.after, rows=change.changed_after))
        by_key = [_has_keys(a) or _has_keys(b) for a, b in zip(before, after, strict=True)]
        gone, back = [], []
        lives = self._live_positions(change.before, before, by_key), self._live_positions(change.after, after, by_key)
        dead = self._dead_positions(change.before, before, by_key), self._dead_positions(change.after, after, by_key)
        for old, new, keyed in zip(before, after, by_key, strict=True):
            path = old.file_path
            was, now = (side.get(path, _NO_POSITIONS) for side in (lives if keyed else dead[::-1]))
            gone.append((old, np.setdiff1d(was, now, assume_unique=True)))
            back.append((new, np.setdiff1d(now, was, assume_unique=True)))
        return [each for each in gone if len(each[1])], [each for each in back if len(each[1])]

    def _dead_positions(
        self, plan: ScanPlan, files: Sequence[FileRead], by_key: Sequence[bool]
    ) -> dict[str, Positions]:
        """The deleted positions of files with position deletes only, from their delete files."""
        chosen = [file for file, keyed in zip(files, by_key, strict=True) if not keyed]
        if not chosen:
            return {}
        request = request_for(plan, self._scan.store, projection=Schema(()), table_name=self._scan.table_name)
        loaded = request.load_deletes(chosen, runner=self._scan.runner, counters=self._counters)
        found = {file.file_path: loaded.of(file).positions for file in chosen}
        return {path: positions for path, positions in found.items() if positions is not None}

    def _live_positions(
        self, plan: ScanPlan, files: Sequence[FileRead], by_key: Sequence[bool]
    ) -> dict[str, Positions]:
        """The positions of live rows of files with equality deletes, found by decoding the key columns."""
        chosen = [file for file, keyed in zip(files, by_key, strict=True) if keyed]
        found: dict[str, list[Positions]] = {}
        for batch in self._read(plan, chosen, Schema((FILE, POS))) if chosen else ():
            # A batch never crosses a row group, so all its rows are of one file.
            found.setdefault(batch.column(0)[0].as_py(), []).append(batch.column(1).to_numpy())
        return {path: np.concatenate(parts) for path, parts in found.items()}


def _has_keys(file: FileRead) -> bool:
    return any(delete.content is FileContent.EQUALITY_DELETES for delete in file.deletes)
