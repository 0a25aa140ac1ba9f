"""Merges rows by key: rows with an existing key replace the table's, others are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.batch_columns import combined
from icebench.engine.columnar.key_index import KeyIndex
from icebench.engine.columnar.rows import table_rows
from icebench.engine.columnar.scalars import shown_value
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.columnar.value_summary import ValueSummary
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.errors import Invalid
from icebench.engine.expressions.predicate import Predicate, all_of
from icebench.engine.operations.row_changes import Mode, RowChange, chosen_mode
from icebench.engine.operations.row_writer import Matches
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.read.matches import rows_at
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import FILE, LAST_UPDATED, POS, ROW_ID
from icebench.engine.spec.properties import MERGE_ISOLATION, MERGE_MODE
from icebench.engine.spec.schema import Schema, list_of_names
from icebench.engine.spec.snapshots import MAIN, Snapshot
from icebench.engine.spec.types import NestedField, PrimitiveType

_SEARCHABLE = frozenset({"int", "long", "date", "string", "decimal", "timestamp", "timestamptz"})
"""Types whose Arrow values can be used as literals of a filter."""


def upsert(
    target: Target,
    scan_of: Callable[[TableMetadata, Predicate], TableScan],
    data: pa.Table | pa.RecordBatchReader,
    on: Sequence[str] | None,
    *,
    mode: Mode | None = None,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableState, Snapshot | None]:
    """Merge rows into the table by key, in one snapshot.

    Each given row replaces all rows of the table with its key (in format version 3 with the row id of one of them), or
    is added if there are none. With ``write.merge.isolation-level=serializable`` (the default) the commit fails if a
    concurrent one added rows that may have one of the keys; it always fails if one deleted or changed rows of the same
    data files.

    Args:
        target: The table.
        scan_of: Creates the scan of the branch with a filter.
        data: All columns of the table, by name; held in memory.
        on: The key: top-level columns of primitive types; None means the identifier columns of the schema.
        mode: How rows are deleted; None means the table property ``write.merge.mode``, ``copy-on-write`` by default.
        branch: The branch to change.
        properties: Entries for the snapshot summary.

    Returns:
        The table, and the snapshot; None for no rows.

    Raises:
        Invalid: No such mode, a missing or unknown column, a null in a key, or a key that is given twice.
        Unsupported: The mode is not possible in the table's format version.
        ValidationFailed: A concurrent commit conflicts with this one.
        CommitFailed: See `Target.commit`.
    """
    state = target.load()
    metadata = state.metadata
    chosen = chosen_mode(mode, metadata, MERGE_MODE)
    source = _Source.of(data, on, metadata.schema)
    if not source.rows.num_rows:
        return state, None
    scan = scan_of(metadata, source.filter())
    change = RowChange.of(target, scan, mode=chosen, isolation=MERGE_ISOLATION, branch=branch, properties=properties)
    matches, row_ids = source.find(scan, change.plan, target)
    return change.commit(change.writer().changed(matches, _with_lineage(source.rows, row_ids, metadata)))


@dataclass(frozen=True, slots=True)
class _Source:
    """The given rows, in the table's types, and an index of their keys: key -> row."""

    rows: pa.Table
    keys: tuple[NestedField, ...]
    index: KeyIndex | None

    @classmethod
    def of(cls, data: pa.Table | pa.RecordBatchReader, on: Sequence[str] | None, schema: Schema) -> _Source:
        keys = key_columns(on, schema)
        check_complete(data.schema.names, schema)
        rows = pa.Table.from_batches(table_rows(data, schema), schema=to_arrow_schema(schema)).combine_chunks()
        columns = [_column(rows, key) for key in keys]
        for key, column in zip(keys, columns, strict=True):
            refuse_null(key.name, column.null_count)
        if not rows.num_rows:
            return cls(rows, keys, None)
        numbers = np.arange(rows.num_rows)
        index = KeyIndex.build(columns, numbers)
        twice = np.flatnonzero(index.greatest(columns) != numbers)
        if len(twice):
            row = int(twice[0])
            refuse_repeated({key.name: shown_value(column[row]) for key, column in zip(keys, columns, strict=True)})
        return cls(rows, keys, index)

    def filter(self) -> Predicate:
        """A filter that is true for every row with one of the keys, and perhaps for others."""
        columns = {key.name: _column(self.rows, key) for key in self.keys if is_searchable(key)}
        return all_of([ValueSummary.of(column).filter(name) for name, column in columns.items()])

    def find(self, scan: TableScan, plan: ScanPlan, target: Target) -> tuple[Matches, npt.NDArray[np.int64]]:
        """The table's rows that have one of the keys, and for each given row the id of such a row, or -1."""
        assert self.index is not None
        lineage = plan.metadata.format_version >= 3
        projection = Schema((*self.keys, FILE, POS, *([ROW_ID] if lineage else [])))
        request = request_for(plan, target.store, projection=projection)
        files = {file.file_path: file for file in planned_files(plan)}
        row_ids = np.full(self.rows.num_rows, -1, np.int64)
        found: dict[str, list[npt.NDArray[np.int64]]] = {}
        for batch in read_files(files.values(), request, runner=scan.runner, counters=target.counters):
            numbers = self.index.greatest([batch.column(place) for place in range(len(self.keys))])
            hits = numbers >= 0
            if not hits.any():
                continue
            path = batch.column(len(self.keys))[0].as_py()  # all rows of a batch are from one file
            found.setdefault(path, []).append(batch.column(len(self.keys) + 1).to_numpy()[hits])
            if lineage:
                row_ids[numbers[hits]] = batch.column(len(self.keys) + 2).fill_null(-1).to_numpy()[hits]
        positions = {path: np.concatenate(parts) for path, parts in found.items()}
        own = [files[path] for path in positions]
        rows = rows_at(own, positions, request, runner=scan.runner, counters=target.counters)
        return Matches.of(list(rows)), row_ids


def key_columns(on: Sequence[str] | None, schema: Schema) -> tuple[NestedField, ...]:
    """The columns of a key, for None the identifier columns of the schema; raises Invalid for none, for duplicates, and
    for nested or unknown ones."""
    if on is None:
        on = [schema.name_of[f.field_id] for f in schema.walk() if f.field_id in schema.identifier_field_ids]
        if not on:
            raise Invalid("the schema has no identifier columns; name the columns of the key")
    if not on or len(set(list_of_names(on, "on"))) != len(on):
        raise Invalid("a key is one or more columns, each once")
    keys = tuple(schema.find(name) for name in on)
    for key in keys:
        schema.key_type(key.field_id)
        if key not in schema.fields:
            raise Invalid(f"key column {key.name!r} is nested; keys are top-level columns")
    return keys


def check_complete(given: Sequence[str], schema: Schema) -> None:
    """Raise Invalid unless all columns of the table are given."""
    missing = [f.name for f in schema.fields if f.name not in given]
    if missing:
        raise Invalid(f"an upsert replaces whole rows, and column {missing[0]!r} is not given")


def refuse_null(key: str, nulls: int) -> None:
    """Raise Invalid for a key column with nulls."""
    if nulls:
        raise Invalid(f"key column {key!r} holds a null, which no key equals")


def refuse_repeated(key: Mapping[str, object] | None) -> None:
    """Raise Invalid for a key that several rows have; None if there is no such key."""
    if key is not None:
        raise Invalid(f"the key {key} is given twice")


def is_searchable(key: NestedField) -> bool:
    """Whether a filter can have the values of a key column."""
    return isinstance(key.type, PrimitiveType) and key.type.name in _SEARCHABLE


def _column(rows: pa.Table, key: NestedField) -> pa.Array:
    column = rows.column(key.name)
    return column.chunk(0) if column.num_chunks == 1 else combined(column)


def _with_lineage(rows: pa.Table, row_ids: npt.NDArray[np.int64], metadata: TableMetadata) -> pa.Table:
    """The rows with the row ids of those they replace; the commit assigns ids to new rows."""
    if metadata.format_version < 3:
        return rows
    ids = pa.array(row_ids, mask=row_ids < 0)
    return rows.append_column(ROW_ID.name, ids).append_column(LAST_UPDATED.name, pa.nulls(len(ids), pa.int64()))
