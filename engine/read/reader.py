"""Reads data files to Arrow batches, in plan order (spec: "Scan Planning", "Column Projection", "Row-level Deletes").

The runner reads footers ahead of row groups, and rows ahead of the consumer. Its look-ahead bounds memory: a few pieces
of row groups at a time, whatever the size of row groups, files and tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.files import FileRead
from icebench.engine.deletes.loaded_deletes import FileDeletes, LoadedDeletes
from icebench.engine.expressions.bound import BoundConstant
from icebench.engine.formats.opening import check_format
from icebench.engine.formats.parquet.row_groups import RowGroupStatistics, matching_row_groups
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.formats.source import RowGroup, Source
from icebench.engine.read.joining import join_small
from icebench.engine.read.request import ReadRequest
from icebench.engine.read.row_group import Work, open_file, works_of
from icebench.engine.read.row_group_stream import row_group_batches
from icebench.engine.runtime.counters import (
    DELETE_POSITIONS_APPLIED,
    ROW_GROUPS_READ,
    ROW_GROUPS_SKIPPED,
    ROWS_DECODED,
    ROWS_DELETED,
    ROWS_RETURNED,
    Counters,
)
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.values import Value


def read_files(
    files: Iterable[FileRead],
    request: ReadRequest,
    *,
    runner: Runner,
    counters: Counters,
    delete_cache: DeleteCache | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read the live rows of data files that match each file's residual, in file order.

    Args:
        files: The files. All are inspected before the first row, since deletes are loaded once for all.
        request: The columns to read, and properties of the table.
        runner: Reads footers and row groups in parallel.
        counters: Count row groups, rows and deletes.
        delete_cache: Keeps decoded deletes between calls, for callers that read a plan in parts.

    Returns:
        Batches of `request.arrow_schema`, none empty, at most `request.batch_rows` long.

    Raises:
        FileNotFound: A data or delete file is missing; names it and `request.needed_by`.
        CorruptTable: A file contradicts the metadata.
        Unsupported: A file of another format.
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
        check_format(file.file_format, file.file_path)
    with request.naming():
        deletes = request.load_deletes(ordered, runner=runner, counters=counters, cache=delete_cache)

    # Computed ahead, so that threads do not compute it several times.
    for _ in runner.map(lambda group: len(group.index), deletes.equality.groups):
        pass

    def opened(file: FileRead) -> list[Work]:
        return _row_groups(file, deletes, request, counters)

    works = (work for found in runner.map(opened, ordered) for work in found)
    yield from row_group_batches(join_small(works, request), request, runner=runner, counters=counters)


def list_row_groups(
    files: Iterable[FileRead], request: ReadRequest, *, runner: Runner
) -> Iterator[tuple[FileRead, RowGroup, bool]]:
    """The row groups of data files, in file order, and whether their statistics let `read_files` skip them. Only
    footers are read; errors as `read_files`."""

    def listed(file: FileRead) -> list[tuple[FileRead, RowGroup, bool]]:
        with request.naming(), open_file(file, request) as source:
            matching = _matching(source, file, request)
            return [(file, each, matching is not None and each.index not in matching) for each in source.row_groups]

    for found in runner.map(listed, files):
        yield from found


def _row_groups(file: FileRead, deletes: LoadedDeletes, request: ReadRequest, counters: Counters) -> list[Work]:
    """The row groups of a file that may have rows to return."""
    own: FileDeletes = deletes.of(file)

    def kept(source: Source) -> Iterator[tuple[RowGroup, FileDeletes]]:
        if request.schema.ids_of_nanoseconds and isinstance(source, ParquetSource):
            source.check_nanoseconds(request.schema.ids_of_nanoseconds)
        matching = _matching(source, file, request)
        for group in source.row_groups:
            if not _begins_in(source, group, file):
                continue
            if matching is not None and group.index not in matching:
                counters.add(ROW_GROUPS_SKIPPED)
            elif group.num_rows:
                yield group, own

    return works_of(file, request, kept, own.equality)


def _begins_in(source: Source, group: RowGroup, file: FileRead) -> bool:
    """Whether a row group begins in a file's range; the last range has all that follows, as the file may be longer
    than its entry states."""
    if file.byte_range is None:
        return True
    start, end = file.byte_range[0], sum(file.byte_range)
    offset = source.offset(group.index)
    is_last = file.file_size_in_bytes is not None and end >= file.file_size_in_bytes
    return start <= offset and (offset < end or is_last)


def _matching(source: Source, file: FileRead, request: ReadRequest) -> frozenset[int] | None:
    """Row groups that the residual does not exclude; None for all."""
    if file.residual is None or isinstance(file.residual, BoundConstant) or not isinstance(source, ParquetSource):
        return None
    if source.in_memory and len(source.row_groups) == 1:
        # Planning used the same bounds, and decoding the filter's columns takes less than a second look at them.
        return None
    constants = request.constants(file)

    def missing(field_id: int) -> Value | None:
        default: Value | None = request.schema.by_id[field_id].initial_default
        return constants.get(field_id, default)

    statistics = RowGroupStatistics(source.footer, source.chunks, source.columns, request.schema, missing)
    return frozenset(matching_row_groups(statistics, request.filter_of(file.residual).evaluator))
