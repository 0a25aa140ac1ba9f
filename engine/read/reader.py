"""Data files to Arrow batches, in plan order (spec: "Scan Planning", "Column Projection", "Row-level Deletes").

Footers are read ahead of row groups, row groups ahead of the consumer, both by the runner, whose look-ahead bounds
memory: a few row groups at a time, never a whole table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from engine.columnar.parquet import ParquetSource, RowGroup
from engine.columnar.row_groups import RowGroupStatistics, matching_row_groups
from engine.deletes.planned import NO_DELETES, FileDeletes, PlannedDeletes, load_deletes
from engine.errors import Unsupported
from engine.expressions.bound import BoundConstant
from engine.read.request import FileRead, ReadRequest
from engine.read.row_group import Work, read_row_group
from engine.runtime.counters import (
    DELETE_POSITIONS_APPLIED,
    ROW_GROUPS_READ,
    ROW_GROUPS_SKIPPED,
    ROWS_DECODED,
    ROWS_DELETED,
    ROWS_RETURNED,
    Counters,
)
from engine.runtime.runner import Runner
from engine.spec.values import Value


def read_files(
    files: Iterable[FileRead], request: ReadRequest, *, runner: Runner, counters: Counters
) -> Iterator[pa.RecordBatch]:
    """The live rows of data files that match each file's residual, in file order.

    Args:
        files: What to read. All are looked at before the first row, since deletes are loaded once for all.
        request: Which columns, and what is known of the table.
        runner: Reads footers and row groups in parallel.
        counters: Count row groups, rows and deletes.

    Returns:
        Batches of `request.arrow_schema`, none empty, at most `request.batch_rows` long.

    Raises:
        FileNotFound: A data or delete file is missing; names it and `request.needed_by`.
        CorruptTable: A file is not what the metadata says.
        Unsupported: A file that is not Parquet.
    """
    ordered = list(files)
    for name in (
        ROW_GROUPS_READ,
        ROW_GROUPS_SKIPPED,
        ROWS_DECODED,
        ROWS_DELETED,
        ROWS_RETURNED,
        DELETE_POSITIONS_APPLIED,
    ):
        counters.add(name, 0)
    for file in ordered:
        if file.file_format != "parquet":
            raise Unsupported(f"{file.file_path}: reading {file.file_format} files is not supported, only parquet")
    deletes = load_deletes(
        (file.planned for file in ordered),
        request.schemas,
        store=request.store,
        runner=runner,
        counters=counters,
        needed_by=request.needed_by,
        name_mapping=request.name_mapping,
    )

    # Built ahead, so that threads do not build the same one at once.
    for _ in runner.map(lambda group: len(group.index), deletes.equality.groups.values()):
        pass

    def opened(file: FileRead) -> list[Work]:
        return _row_groups(file, deletes, request, counters)

    def read(work: Work) -> list[pa.RecordBatch]:
        return read_row_group(work, request, counters)

    works = (work for found in runner.map(opened, ordered) for work in found)
    for batches in runner.map(read, works):
        yield from batches


def _row_groups(file: FileRead, deletes: PlannedDeletes, request: ReadRequest, counters: Counters) -> list[Work]:
    """The row groups of a file that may hold a row to give."""
    own: FileDeletes = deletes.of(file.planned) if file.deletes else NO_DELETES
    with ParquetSource(
        request.store, file.file_path, name_mapping=request.name_mapping, needed_by=request.needed_by
    ) as source:
        groups = [group for group in source.row_groups if _begins_in(group, file.byte_range)]
        matching = _matching(source, file, request)
        kept = [group for group in groups if matching is None or group.index in matching]
        counters.add(ROW_GROUPS_SKIPPED, len(groups) - len(kept))
        return [Work(file, group, source.footer, own) for group in kept if group.num_rows]


def _begins_in(group: RowGroup, byte_range: tuple[int, int] | None) -> bool:
    return byte_range is None or byte_range[0] <= group.offset < byte_range[0] + byte_range[1]


def _matching(source: ParquetSource, file: FileRead, request: ReadRequest) -> frozenset[int] | None:
    """Row groups that the residual does not exclude; None for all."""
    if file.residual is None or isinstance(file.residual, BoundConstant):
        return None
    constants = request.constants(file)

    def missing(field_id: int) -> Value | None:
        default: Value | None = request.schema.by_id[field_id].initial_default
        return constants.get(field_id, default)

    statistics = RowGroupStatistics(source.footer, source.schema, request.schema, missing)
    return frozenset(matching_row_groups(statistics, file.residual))
