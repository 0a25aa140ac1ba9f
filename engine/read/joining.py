"""Joins small files that are alike, so that what is done for a file whatever its size is done once for several.

For files of some thousand rows that takes as long as decoding them: see docs/design/reading.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pyarrow as pa

from icebench.engine.deletes.loaded_deletes import NO_DELETES, FileDeletes
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.formats.source import RowGroup, slice_table, without_columns
from icebench.engine.read.request import ReadRequest
from icebench.engine.read.row_group import SharedSource, Work, row_bytes
from icebench.engine.spec.schema import Schema

_MOST_FILES, _MOST_ROWS, _MOST_BYTES = 16, 1 << 16, 4 << 20
"""Limits of what is joined: so little that threads still share the work, and that it fits into one piece."""


class JoinedFiles:
    """Open files of one row group and one schema each, as a file of one row group.

    Attributes:
        columns: The columns of each file.
    """

    def __init__(self, sources: Sequence[ParquetSource]) -> None:
        self._sources = sources
        self.columns = sources[0].columns
        for source in sources:
            source.columns = self.columns  # as they are alike, leaves are chosen once for all

    def batches(
        self, row_group: int, wanted: Schema, *, rows: int, narrow: bool = False, threads: bool = False
    ) -> Iterator[pa.Table]:
        del row_group, narrow, threads  # whether decimals come narrow depends on the file
        parts = (source.batches(0, wanted, rows=source.num_rows) for source in self._sources)
        tables = [table for part in parts for table in part]
        # Tables without columns would lose their rows.
        is_empty = not tables[0].num_columns
        whole = without_columns(sum(map(len, tables))) if is_empty else pa.concat_tables(tables)
        return slice_table(whole, rows)

    def close(self) -> None:
        """Release the files."""
        for source in self._sources:
            source.close()


def join_small(works: Iterable[Work], request: ReadRequest) -> Iterator[Work]:
    """The same row groups in the same order, with those of neighbouring small files that are alike joined."""
    if request.keeps_deleted or len(request.stored.fields) < len(request.projection.fields):
        yield from works  # metadata columns differ from file to file
        return
    waiting: list[Work] = []
    rows = size = 0
    for work in works:
        own_rows, own_size = work.group.num_rows, work.group.num_rows * row_bytes(work.group, request)
        is_full = len(waiting) == _MOST_FILES or rows + own_rows > _MOST_ROWS or size + own_size > _MOST_BYTES
        is_small = _is_small(work, request)
        if waiting and (is_full or not is_small or not _are_alike(waiting[0], work)):
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
        if not is_small:
            yield work
            continue
        waiting.append(work)
        rows, size = rows + own_rows, size + own_size
    if waiting:
        yield _joined(waiting)


def _is_small(work: Work, request: ReadRequest) -> bool:
    """Whether a file was fetched whole and has a single row group, with rows that can be left and no column whose value
    only the file's partition has."""
    source, deletes = work.source.source, work.deletes
    return (
        isinstance(source, ParquetSource)
        and source.in_memory
        and len(source.row_groups) == 1
        and not deletes.equality
        and (deletes.positions is None or len(deletes.positions) < source.num_rows)
        and all(
            source.columns.place_of(field_id, request.schema.name_of.get(field_id, "")) is not None
            for field_id in request.constants(work.file)
        )
    )


def _are_alike(one: Work, other: Work) -> bool:
    """Whether the columns of two small files mean the same, and so does their filter."""
    if one.file.residual is not other.file.residual:
        return False
    return bool(one.source.source.columns.schema.equals(other.source.source.columns.schema, check_metadata=True))


def _joined(works: Sequence[Work]) -> Work:
    if len(works) == 1:
        return works[0]
    groups = [work.group for work in works]
    starts = [0, *accumulate(group.num_rows for group in groups)]
    deleted = [
        work.deletes.positions + start
        for work, start in zip(works, starts, strict=False)
        if work.deletes.positions is not None
    ]
    sources = [source for work in works if isinstance(source := work.source.source, ParquetSource)]
    return replace(
        works[0],
        group=RowGroup(0, 0, starts[-1], sum(group.size_bytes for group in groups)),
        source=SharedSource(JoinedFiles(sources), users=1),
        deletes=FileDeletes(np.concatenate(deleted)) if deleted else NO_DELETES,
        files=len(works),
    )
