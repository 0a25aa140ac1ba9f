"""Reads rows at given positions of data files, decoding only the row groups that have one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from icebench.engine.deletes.files import FileRead
from icebench.engine.deletes.loaded_deletes import FileDeletes
from icebench.engine.deletes.positions import Positions
from icebench.engine.formats.source import RowGroup, Source
from icebench.engine.read.request import ReadRequest
from icebench.engine.read.row_group import Work, works_of
from icebench.engine.read.row_group_stream import row_group_batches
from icebench.engine.runtime.counters import ROW_GROUPS_READ, ROW_GROUPS_SKIPPED, ROWS_DECODED, ROWS_RETURNED, Counters
from icebench.engine.runtime.runner import Runner


def read_rows_at(
    files: Sequence[tuple[FileRead, Positions]], request: ReadRequest, *, runner: Runner, counters: Counters
) -> Iterator[pa.RecordBatch]:
    """Read the rows at these positions that match each file's residual, in file order. Deletes of the files are
    ignored.

    Args:
        files: Data files, and positions in them, ascending.
        request: Which columns.
        runner: Reads in parallel.
        counters: Count row groups and rows.

    Raises:
        As `icebench.engine.read.reader.read_files`.
    """

    def opened(chosen: tuple[FileRead, Positions]) -> list[Work]:
        file, positions = chosen

        def with_rows(source: Source) -> Iterator[tuple[RowGroup, FileDeletes]]:
            for group in source.row_groups:
                end = group.first_row + group.num_rows
                low, high = np.searchsorted(positions, [group.first_row, end])
                if low == high:
                    counters.add(ROW_GROUPS_SKIPPED)
                    continue
                # The reader skips positions, so all others of the row group are listed.
                others = np.setdiff1d(np.arange(group.first_row, end), positions[low:high], assume_unique=True)
                yield group, FileDeletes(others)

        return works_of(replace(file, deletes=()), request, with_rows)

    works = (work for found in runner.map(opened, files) for work in found)
    own = Counters()
    yield from row_group_batches(works, request, runner=runner, counters=own)
    for name in (ROW_GROUPS_READ, ROWS_DECODED, ROWS_RETURNED):
        counters.add(name, own[name])
