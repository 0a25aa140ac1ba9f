"""One row group to batches: what is deleted or does not match is left out as late as possible, as early as pays.

1. Positions are physical: the row group knows the position of its first row, whatever was skipped before it. A row
   group whose rows are all deleted is not decoded.
2. The filter's columns and those of equality deletes are decoded first; where no row matches, nothing else is.
3. Of the rest, the rows that are left are decoded, and cut into batches, which are slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.columnar.decimals import is_narrow
from engine.columnar.filters import row_mask
from engine.columnar.lineage import last_updated, row_ids
from engine.columnar.opening import open_source
from engine.columnar.projection import MissingValues, Projector
from engine.columnar.reserved import (
    DELETED_ID,
    FILE_ID,
    LAST_UPDATED,
    LAST_UPDATED_ID,
    PARTITION_ID,
    POS_ID,
    ROW_ID,
    ROW_ID_ID,
    SPEC_ID_ID,
)
from engine.columnar.schemas import child_fields, field_id_of
from engine.columnar.source import RowGroup, Source, only
from engine.deletes.equality import EqualityGroup
from engine.deletes.planned import FileDeletes
from engine.errors import CorruptTable
from engine.expressions.bound import BoundConstant
from engine.read.request import FileRead, ReadRequest
from engine.runtime.counters import (
    DELETE_POSITIONS_APPLIED,
    ROW_GROUPS_READ,
    ROW_GROUPS_SKIPPED,
    ROWS_DECODED,
    ROWS_DELETED,
    ROWS_RETURNED,
    Counters,
)
from engine.runtime.crew import Crew
from engine.spec.schema import FIRST_METADATA_COLUMN_ID, Schema
from engine.spec.types import NestedField

Mask = npt.NDArray[np.bool_]


class SharedSource:
    """An open file that is closed when the last of its users is done.

    Args:
        source: The file.
        users: How many times `use` will be called; a file without users is closed at once.
    """

    def __init__(self, source: Source, users: int) -> None:
        self._source = source
        self._left = users
        self._lock = Lock()
        if not users:
            source.close()

    @contextmanager
    def use(self) -> Iterator[Source]:
        """The file, for one user."""
        try:
            yield self._source
        finally:
            self.give_up()

    def give_up(self) -> None:
        """One user less, who did not need the file."""
        with self._lock:
            self._left -= 1
            last = not self._left
        if last:
            self._source.close()


@dataclass(frozen=True, slots=True)
class Work:
    """A row group to read, of a file that is open already."""

    file: FileRead
    group: RowGroup
    source: SharedSource
    deletes: FileDeletes


def works_of(
    file: FileRead,
    request: ReadRequest,
    choose: Callable[[Source], Iterable[tuple[RowGroup, FileDeletes]]],
    crew: Crew,
    keys: Sequence[EqualityGroup] = (),
) -> list[Work]:
    """Open a file, and give the row groups that `choose` takes, with the deletes that it says for each.

    Args:
        file: The file.
        request: What to read of it.
        choose: Called once, with the open file.
        crew: Who reads what is chosen.
        keys: All equality deletes that it may say.

    Raises:
        FileNotFound: Naming the file and what needs it.
        CorruptTable: The file is not of its format, or has another number of rows than its manifest entry says.
    """
    with request.naming():
        source = open_source(
            request.store,
            file.file_path,
            file_format=file.file_format,
            name_mapping=request.name_mapping,
            needed_by=request.needed_by,
            size_bytes=file.file_size_in_bytes,
            field_ids=_columns_for(file, request, keys),
            crew=crew,
        )
        try:
            if source.num_rows != file.record_count:
                raise CorruptTable(
                    f"a data file with {source.num_rows} rows, where its manifest entry says {file.record_count}",
                    location=file.file_path,
                )
            chosen = list(choose(source))
        except BaseException:
            source.close()
            raise
    shared = SharedSource(source, users=len(chosen))
    return [Work(file, group, shared, deletes) for group, deletes in chosen]


def _columns_for(file: FileRead, request: ReadRequest, keys: Sequence[EqualityGroup]) -> set[int]:
    """The top-level columns that reading a file takes: those to give, and those that decide."""
    schemas = [request.stored, *(group.schema for group in keys)]
    if file.residual is not None:
        schemas.append(request.schema.select(file.residual.field_ids))
    return {ROW_ID_ID, LAST_UPDATED_ID, *(f.field_id for schema in schemas for f in schema.fields)}


def read_row_group(work: Work, request: ReadRequest, counters: Counters) -> list[pa.RecordBatch]:
    """The live, matching rows of a row group, in order."""
    positions = _own_positions(work)
    rows = work.group.num_rows
    counters.add(DELETE_POSITIONS_APPLIED, len(positions))
    if len(positions) == rows and not request.keeps_deleted:
        counters.add(ROW_GROUPS_SKIPPED)
        counters.add(ROWS_DELETED, rows)
        work.source.give_up()
        return []
    with request.naming(work.file.file_path), work.source.use() as source:
        batches = list(_RowGroupReader(source, work, request, counters).batches(positions))
    counters.add(ROW_GROUPS_READ)
    counters.add(ROWS_DECODED, rows)
    counters.add(ROWS_RETURNED, sum(batch.num_rows for batch in batches))
    return batches


def _own_positions(work: Work) -> npt.NDArray[np.int64]:
    """Deleted rows counted from the row group's first."""
    deleted = work.deletes.positions
    if deleted is None:
        return np.empty(0, np.int64)
    first = work.group.first_row
    low, high = np.searchsorted(deleted, [first, first + work.group.num_rows])
    return deleted[low:high] - first


class _RowGroupReader:
    """Decodes one row group of an open file, in one or two steps."""

    def __init__(self, source: Source, work: Work, request: ReadRequest, counters: Counters) -> None:
        self._source = source
        self._work = work
        self._request = request
        self._counters = counters
        constants = request.constants(work.file)
        self._projector = Projector(missing=MissingValues(constants=constants, location=work.file.file_path))
        self._decoded = pa.schema([]).empty_table()

    def batches(self, positions: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """The rows to give."""
        keep = self._matching()
        if keep is not None and not keep.any():
            return
        deleted = self._deleted(positions, keep)
        if deleted is not None:
            self._counters.add(ROWS_DELETED, int(deleted.sum()))
            if not self._request.keeps_deleted:
                keep = ~deleted if keep is None else keep & ~deleted
                if not keep.any():
                    return
        if keep is not None and keep.all():
            keep = None
        body = self._output(keep)
        needs_places = len(self._request.stored.fields) < len(self._request.projection.fields)
        at = np.flatnonzero(keep) if keep is not None and needs_places else None
        for start in range(0, body.num_rows, self._request.batch_rows):
            # A table without columns does not clip a slice.
            part = body.slice(start, min(self._request.batch_rows, body.num_rows - start))
            yield from self._cut(part, start, at, deleted)

    def _matching(self) -> Mask | None:
        """Rows that the residual is true for; None for all."""
        residual = self._work.file.residual
        if residual is None:
            return None
        if isinstance(residual, BoundConstant):
            return None if residual.value else np.zeros(self._work.group.num_rows, np.bool_)
        table = self._columns(self._request.schema.select(residual.field_ids), narrow=True)
        return row_mask(table, residual, self._request.schema).to_numpy(zero_copy_only=False)

    def _deleted(self, positions: npt.NDArray[np.int64], matching: Mask | None) -> Mask | None:
        """Rows that match and are deleted; None for none. Keys are looked up for rows still alive only."""
        groups = self._work.deletes.equality
        if not len(positions) and not groups:
            return None
        deleted = np.zeros(self._work.group.num_rows, np.bool_)
        deleted[positions] = True
        if matching is not None:
            deleted &= matching
        for group in groups:
            keys = self._columns(group.schema, narrow=True)
            alive = ~deleted if matching is None else matching & ~deleted
            if alive.all():
                deleted = group.deleted(keys, self._work.file.data_sequence_number)
            else:
                found = group.deleted(keys.filter(pa.array(alive)), self._work.file.data_sequence_number)
                deleted[np.flatnonzero(alive)[found]] = True
        return deleted

    def _output(self, keep: Mask | None) -> pa.Table:
        """The stored columns of the projection, and those that row lineage may have stored: the rows to keep."""
        wanted = self._request.projection.by_id
        lineage = tuple(f for f in (ROW_ID, LAST_UPDATED) if f.field_id in wanted and self._stores(f))
        stored = Schema(self._request.stored.fields + lineage)
        return self._columns(stored, narrow=self._request.narrow_decimals, keep=keep)

    def _stores(self, field: NestedField) -> bool:
        return self._source.columns.place_of(field.field_id, field.name) is not None

    def _columns(self, wanted: Schema, *, narrow: bool, keep: Mask | None = None) -> pa.Table:
        """Columns of the row group in the table's types, decimals narrow as far as they were decoded so if they may be;
        top-level leaves that were decoded are not decoded again."""
        known = only(self._decoded, keep)
        done = {field_id_of(f) for f in known.schema if not child_fields(f.type)}
        missing = Schema(tuple(f for f in wanted.fields if f.field_id not in done))
        table = self._source.read(self._work.group.index, missing, narrow=narrow, keep=keep)
        names = set(table.schema.names)
        for place, field in enumerate(known.schema):
            if field.name not in names:
                table = table.append_column(field, known.column(place))
        if keep is None:
            self._decoded = table
        if self._request.narrow_decimals:
            return self._projector.table(table, wanted, narrow=wanted.by_id)
        as_read = {field_id_of(f) for f in table.schema if is_narrow(f.type)} if narrow else set()
        return self._projector.table(table, wanted, narrow={field_id for field_id in as_read if field_id is not None})

    def _cut(
        self, part: pa.Table, start: int, at: npt.NDArray[np.int64] | None, deleted: Mask | None
    ) -> Iterator[pa.RecordBatch]:
        """Rows from `start` on, of those whose positions in the row group are `at` (None: all), as batches of the
        projection."""
        request = self._request
        end = start + part.num_rows
        if len(request.stored.fields) < len(request.projection.fields):
            rows = np.arange(start, end, dtype=np.int64) if at is None else at[start:end]
            marks = np.zeros(len(rows), np.bool_) if deleted is None else deleted[rows]
            yield from self._completed(part, rows, marks)
        elif part.num_columns:
            yield from pa.Table.from_arrays(part.columns, schema=request.arrow_schema).to_batches()
        else:
            yield from part.to_batches()

    def _completed(self, part: pa.Table, at: npt.NDArray[np.int64], marks: Mask) -> Iterator[pa.RecordBatch]:
        """Stored columns with the metadata columns among them, as the projection orders them."""
        request = self._request
        stored = dict(zip(part.schema.names, part.columns, strict=True))
        file = self._work.file
        positions = at + self._work.group.first_row
        columns: list[pa.Array | pa.ChunkedArray] = []
        for target in request.projection.fields:
            own = stored[target.name].combine_chunks() if target.name in stored else None
            match target.field_id:
                case field_id if field_id == FILE_ID:
                    columns.append(pa.repeat(pa.scalar(file.file_path), len(at)))
                case field_id if field_id == POS_ID:
                    columns.append(pa.array(positions))
                case field_id if field_id == DELETED_ID:
                    columns.append(pa.array(marks))
                case field_id if field_id == SPEC_ID_ID:
                    columns.append(pa.repeat(pa.scalar(file.spec_id, pa.int32()), len(at)))
                case field_id if field_id == PARTITION_ID:
                    columns.append(request.partition_array(file, len(at)))
                case field_id if field_id == ROW_ID_ID:
                    columns.append(row_ids(own, file.first_row_id, positions))
                case field_id if field_id == LAST_UPDATED_ID:
                    sequence_number = file.data_sequence_number
                    columns.append(last_updated(own, file.first_row_id, sequence_number, len(at)))
                case _:
                    assert target.field_id < FIRST_METADATA_COLUMN_ID
                    columns.append(stored[target.name])
        yield from pa.Table.from_arrays(columns, schema=request.arrow_schema).to_batches()
