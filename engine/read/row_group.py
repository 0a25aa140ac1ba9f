"""Reads one row group to batches, a bounded number of rows at a time.

1. Positions are physical: the row group knows the position of its first row, whatever was skipped before it. A row
   group whose rows are all deleted is not decoded.
2. Of each piece, the filter's columns are decoded first, then those of equality deletes, then the rest. pyarrow cannot
   skip rows, so the rest of pieces without a row to return is decoded when a later piece has one, or never.
3. Rows are filtered and columns cast to the table's types afterwards, while the piece is in the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.codec.array_views import booleans_of
from icebench.engine.columnar.batch_columns import combined
from icebench.engine.columnar.decimals import is_narrow
from icebench.engine.columnar.filters import row_mask
from icebench.engine.columnar.lineage import last_updated, row_ids
from icebench.engine.columnar.projection import MissingValues, Projector
from icebench.engine.columnar.schemas import field_id_of
from icebench.engine.deletes.equality import EqualityGroup
from icebench.engine.deletes.files import FileRead, check_file
from icebench.engine.deletes.loaded_deletes import FileDeletes
from icebench.engine.errors import CorruptTable
from icebench.engine.expressions.bound import BoundConstant
from icebench.engine.formats.file_columns import FileColumns
from icebench.engine.formats.opening import open_source
from icebench.engine.formats.source import RowGroup, Source, keep_rows
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import (
    DELETE_POSITIONS_APPLIED,
    ROW_GROUPS_READ,
    ROW_GROUPS_SKIPPED,
    ROWS_DECODED,
    ROWS_DELETED,
    ROWS_RETURNED,
    Counters,
)
from icebench.engine.spec.metadata_columns import (
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
from icebench.engine.spec.schema import FIRST_METADATA_COLUMN_ID, Schema
from icebench.engine.spec.types import PrimitiveType

Mask = npt.NDArray[np.bool_]

_PIECE_BYTES = 12 << 20
"""Estimated memory of a piece, at most."""
_LEAST_ROWS, _MOST_ROWS = 1 << 10, 1 << 20
"""Limits of a piece's rows: enough to keep the share of Python, and of beginning a piece, small."""
_MOST_FILTERED_ROWS = 1 << 18
"""The limit where a filter may leave no row of a piece, so that its other columns need not be decoded, and where the
consumer takes few rows."""


class Batches(Protocol):
    """What is read of an open file; see `icebench.engine.formats.source.Source`."""

    @property
    def columns(self) -> FileColumns: ...

    def batches(
        self, row_group: int, wanted: Schema, *, rows: int, narrow: bool = False, threads: bool = False
    ) -> Iterator[pa.Table]: ...

    def close(self) -> None: ...


class SharedSource:
    """An open file that is closed after its last use.

    Args:
        source: The file.
        users: The number of calls of `use`; a file without users is closed at once.
    """

    def __init__(self, source: Batches, users: int) -> None:
        self.source = source
        self._left = users
        self._lock = Lock()
        if not users:
            source.close()

    @contextmanager
    def use(self) -> Iterator[Batches]:
        """Context of one use of the file."""
        try:
            yield self.source
        finally:
            self.give_up()

    def give_up(self) -> None:
        """Count down one use that is not needed."""
        with self._lock:
            self._left -= 1
            last = not self._left
        if last:
            self.source.close()


@dataclass(frozen=True, slots=True)
class Work:
    """A row group to read, of an open file, or those of several files: see `icebench.engine.read.joining`.

    Args:
        file: The file, or the first one.
        group: The row group.
        source: The open file.
        deletes: Those of the file.
        files: Of how many files it is.
    """

    file: FileRead
    group: RowGroup
    source: SharedSource
    deletes: FileDeletes
    files: int = 1

    @property
    def location(self) -> str:
        """The file, for errors."""
        if self.files == 1:
            return self.file.file_path
        return f"{self.file.file_path} or one of the {self.files - 1} files after it"


def works_of(
    file: FileRead,
    request: ReadRequest,
    choose: Callable[[Source], Iterable[tuple[RowGroup, FileDeletes]]],
    keys: Sequence[EqualityGroup] = (),
) -> list[Work]:
    """Open a file, and return work for the row groups that `choose` selects, with their deletes.

    Args:
        file: The file.
        request: What to read of it.
        choose: Called once, with the open file.
        keys: All equality deletes that it may return.

    Raises:
        FileNotFound: Naming the file and what refers to it.
        CorruptTable: The file is not of its format, or its number of rows is not that of its manifest entry.
    """
    with request.naming():
        source = open_file(file, request, keys)
        try:
            chosen = list(choose(source))
        except BaseException:
            source.close()
            raise
    shared = SharedSource(source, users=len(chosen))
    return [Work(file, group, shared, deletes) for group, deletes in chosen]


def open_file(file: FileRead, request: ReadRequest, keys: Sequence[EqualityGroup] = ()) -> Source:
    """Open a file for the columns of `request`, and check it; arguments and errors as `works_of`."""
    source = open_source(
        request.store,
        file.file_path,
        file_format=file.file_format,
        name_mapping=request.name_mapping,
        without_ids=request.without_ids,
        needed_by=request.needed_by,
        size_bytes=file.file_size_in_bytes,
        field_ids=_columns_for(file, request, keys),
    )
    try:
        check_file(file, source, request.store, request.schemas)
    except BaseException:
        source.close()
        raise
    return source


def _columns_for(file: FileRead, request: ReadRequest, keys: Sequence[EqualityGroup]) -> set[int]:
    """The top-level columns needed to read a file: those to return, and those of filter and keys."""
    schemas = [request.stored, *(group.schema for group in keys)]
    if file.residual is not None:
        schemas.append(request.filter_of(file.residual).columns)
    return {ROW_ID_ID, LAST_UPDATED_ID, *(f.field_id for schema in schemas for f in schema.fields)}


def _own_positions(work: Work) -> npt.NDArray[np.int64]:
    """Deleted positions relative to the row group's first row."""
    deleted = work.deletes.positions
    if deleted is None:
        return np.empty(0, np.int64)
    first = work.group.first_row
    low, high = np.searchsorted(deleted, [first, first + work.group.num_rows])
    return deleted[low:high] - first


def row_bytes(group: RowGroup, request: ReadRequest) -> int:
    """Estimated memory of a row of the result: at least 1."""
    bits, has_others = request.row_bits
    # For text and nested columns only the size of all columns together is known.
    return max(1, bits // 8 + (max(0, group.size_bytes) // group.num_rows if has_others else 0))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of a row group as stored, before rows are filtered.

    Args:
        columns: The stored columns to return, and others.
        wanted: The columns to return.
        first_row: The first row, relative to the row group.
        keep: The rows to return; None for all.
        deleted: Matching rows that are deleted; None for none.
    """

    columns: pa.Table
    wanted: Schema
    first_row: int
    keep: Mask | None
    deleted: Mask | None


class _Columns:
    """Columns of a row group, decoded piece by piece, and only as far as they are needed.

    Args:
        wanted: The columns that need them.
        batches: The columns that no other stage has, a table per piece.
    """

    def __init__(self, wanted: Schema, batches: Iterator[pa.Table]) -> None:
        self.wanted = wanted
        self._batches = batches
        self._taken = 0

    def beside(self, known: pa.Table | None, piece: int) -> pa.Table:
        """The columns of a piece, with those already decoded. Pieces are requested in order."""
        while self._taken <= piece:
            table = next(self._batches)
            self._taken += 1
        names = set(table.schema.names)
        for field, column in () if known is None else zip(known.schema, known.columns, strict=True):
            if field.name not in names:
                table = table.append_column(field, column)
        return table

    def finish(self, pieces: int) -> None:
        """Check that the source has nothing after the last piece, if that was requested."""
        if self._taken == pieces:
            next(self._batches, None)


class RowGroupReader:
    """Decodes one row group of an open file.

    Args:
        work: The row group.
        request: What to read.
        counters: Count the work.
        threads: See `icebench.engine.formats.source.Source.batches`.

    Attributes:
        pieces: How many there are.
        piece_bytes: Estimated memory of a piece.
    """

    def __init__(self, work: Work, request: ReadRequest, counters: Counters, *, threads: bool) -> None:
        self._work = work
        self._request = request
        self._counters = counters
        self._threads = threads
        size = row_bytes(work.group, request)
        is_filtered = work.file.residual is not None or request.limit is not None
        most = _MOST_FILTERED_ROWS if is_filtered else _MOST_ROWS
        self.pieces = -(-work.group.num_rows // max(_LEAST_ROWS, min(most, _PIECE_BYTES // size)))
        # All of a size: a last one that is small costs as much to begin.
        self._rows = -(-work.group.num_rows // self.pieces)
        self.piece_bytes = self._rows * size
        constants = request.constants(work.file)
        self._projector = Projector(missing=MissingValues(constants=constants, location=work.file.file_path))

    def batches(self) -> Iterator[list[pa.RecordBatch]]:
        """The rows to return, in order, a list for each piece that has any; decoded as they are consumed."""
        for piece in self._pieces():
            yield self._finish(piece)

    def _pieces(self) -> Iterator[_Piece]:
        """The pieces that have a row to return."""
        positions = _own_positions(self._work)
        rows = self._work.group.num_rows
        self._counters.add(DELETE_POSITIONS_APPLIED, len(positions))
        if len(positions) == rows and not self._request.keeps_deleted:
            self._counters.add(ROW_GROUPS_SKIPPED)
            self._counters.add(ROWS_DELETED, rows)
            self._work.source.give_up()
            return
        self._counters.add(ROW_GROUPS_READ, self._work.files)
        self._counters.add(ROWS_DECODED, rows)
        with self._request.naming(self._work.location), self._work.source.use() as source:
            stages = self._stages(source)
            for number in range(self.pieces):
                start = number * self._rows
                low, high = np.searchsorted(positions, [start, start + self._rows])
                piece = self._piece(stages, number, positions[low:high] - start)
                if piece is not None:
                    yield piece
            for columns in stages:
                columns.finish(self.pieces)

    def _stages(self, source: Batches) -> list[_Columns]:
        """The stages of decoding: columns of the filter, of each set of keys, and columns to return."""
        request = self._request
        schemas = [group.schema for group in self._work.deletes.equality]
        residual = self._work.file.residual
        if residual is not None and not isinstance(residual, BoundConstant):
            schemas.insert(0, request.filter_of(residual).columns)
        lineage = (f for f in (ROW_ID, LAST_UPDATED) if f.field_id in request.projection.by_id)
        stored = [f for f in lineage if source.columns.place_of(f.field_id, f.name) is not None]
        schemas.append(Schema(request.stored.fields + tuple(stored)))
        found: list[_Columns] = []
        done: set[int] = set()
        for number, wanted in enumerate(schemas, 1):
            missing = Schema(tuple(f for f in wanted.fields if f.field_id not in done))
            done.update(f.field_id for f in missing.fields if isinstance(f.type, PrimitiveType))
            batches = source.batches(
                self._work.group.index,
                missing,
                rows=self._rows,
                narrow=number < len(schemas) or request.narrow_decimals,
                threads=self._threads,
            )
            found.append(_Columns(wanted, batches))
        return found

    def _piece(self, stages: Sequence[_Columns], number: int, positions: npt.NDArray[np.int64]) -> _Piece | None:
        """A piece with deleted rows at `positions`, if it has a row to return."""
        request, file, groups = self._request, self._work.file, self._work.deletes.equality
        start = number * self._rows
        rows = min(self._rows, self._work.group.num_rows - start)
        columns = iter(stages)
        known: pa.Table | None = None
        keep = np.ones(rows, np.bool_)
        if isinstance(file.residual, BoundConstant):
            keep[:] = file.residual.value
        elif file.residual is not None:
            known, wanted = self._projected(known, next(columns), number, rows)
            keep = booleans_of(row_mask(wanted, file.residual, request.schema))
        deleted: Mask | None = None
        if (len(positions) or groups) and keep.any():
            deleted = np.zeros(rows, np.bool_)
            deleted[positions] = True
            deleted &= keep
            for group in groups:
                alive = np.flatnonzero(keep & ~deleted)
                if not len(alive) and not request.keeps_deleted:
                    break
                known, keys = self._projected(known, next(columns), number, rows)
                keys = keys if len(alive) == rows else keys.take(pa.array(alive))
                deleted[alive[group.deleted(keys, file.data_sequence_number)]] = True
            self._counters.add(ROWS_DELETED, int(np.count_nonzero(deleted)))
            if not request.keeps_deleted:
                keep = keep & ~deleted
        if not keep.any():
            return None
        known = self._beside(known, stages[-1], number, rows)
        return _Piece(known, stages[-1].wanted, start, None if keep.all() else keep, deleted)

    def _beside(self, known: pa.Table | None, columns: _Columns, piece: int, rows: int) -> pa.Table:
        """A piece with these columns added."""
        table = columns.beside(known, piece)
        if table.num_rows != rows:
            raise CorruptTable(f"row group {self._work.group.index} has other rows than the footer says")
        return table

    def _projected(self, known: pa.Table | None, columns: _Columns, piece: int, rows: int) -> tuple[pa.Table, pa.Table]:
        """A piece with these columns added, and these columns in the table's types, with decimals as narrow as they
        were decoded."""
        table = self._beside(known, columns, piece, rows)
        narrow = {field_id_of(f) for f in table.schema if is_narrow(f.type)}
        ids = [field_id for field_id in narrow if field_id is not None]
        return table, self._projector.table(table, columns.wanted, narrow=ids)

    def _finish(self, piece: _Piece) -> list[pa.RecordBatch]:
        """The rows of a piece to return."""
        request = self._request
        with request.naming(self._work.location):
            narrow = piece.wanted.by_id if request.narrow_decimals else ()
            body = self._projector.table(keep_rows(piece.columns, piece.keep), piece.wanted, narrow=narrow)
            if len(request.stored.fields) < len(request.projection.fields):
                at = np.arange(body.num_rows) if piece.keep is None else np.flatnonzero(piece.keep)
                marks = np.zeros(len(at), np.bool_) if piece.deleted is None else piece.deleted[at]
                body = self._complete(body, at + piece.first_row, marks)
            elif body.num_columns:
                body = pa.Table.from_arrays(body.columns, schema=request.arrow_schema)
        self._counters.add(ROWS_RETURNED, body.num_rows)
        return body.to_batches(max_chunksize=request.batch_rows)

    def _complete(self, part: pa.Table, at: npt.NDArray[np.int64], marks: Mask) -> pa.Table:
        """Stored columns and metadata columns, in the order of the projection."""
        request = self._request
        stored = dict(zip(part.schema.names, part.columns, strict=True))
        file = self._work.file
        positions = at + self._work.group.first_row
        columns: list[pa.Array | pa.ChunkedArray] = []
        for target in request.projection.fields:
            own = combined(stored[target.name]) if target.name in stored else None
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
        return pa.Table.from_arrays(columns, schema=request.arrow_schema)
