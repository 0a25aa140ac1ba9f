"""Sorts the rows of a rewrite within bounded memory.

A first pass reads the sort columns of the whole group and computes the position of each row. If all rows fit into
memory they are then sorted there. Otherwise a second pass partitions them by ranges of positions into temporary files
in the table's storage, each small enough, and reads these files in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.batch_columns import column_by_id
from icebench.engine.columnar.partitions import group_rows
from icebench.engine.columnar.sorting import sort_indices
from icebench.engine.deletes.files import FileRead
from icebench.engine.maintenance.hilbert import hilbert_values
from icebench.engine.maintenance.range_files import RangeFiles
from icebench.engine.maintenance.z_order import z_values
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.storage.store import Store
from icebench.engine.write.locations import DataLocations

Places = npt.NDArray[np.int64]

_COPIES = 3
"""Of a range of rows, in memory at once: as read, as sorted, and waiting to be written."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """How rows are sorted: by a sort order, or along a curve through columns.

    Args:
        sort_order: Its keys, for a sort.
        z_order: Column ids, for Z-order.
        hilbert: Column ids, for a Hilbert curve.
    """

    sort_order: SortOrder | None = None
    z_order: tuple[int, ...] = ()
    hilbert: tuple[int, ...] = ()

    @property
    def column_ids(self) -> tuple[int, ...]:
        """The columns to sort by."""
        if self.sort_order is None:
            return self.z_order or self.hilbert
        return tuple(source_id for key in self.sort_order.fields for source_id in key.source_ids)


@dataclass(frozen=True, kw_only=True)
class Sorter:
    """Brings the rows of one group into order.

    Args:
        ordering: Which.
        metadata: The table.
        spec: The partition spec of the new files: rows of a partition stay together.
        files: What to read.
        request: How; its projection is what comes out.
        store: For rows that do not fit into memory.
        memory_bytes: About how many bytes of rows may be in memory, as Arrow holds them.
        runner: Reads in parallel.
        counters: Count the reading.
    """

    ordering: Ordering
    metadata: TableMetadata
    spec: PartitionSpec
    files: list[FileRead]
    request: ReadRequest
    store: Store
    memory_bytes: int
    runner: Runner
    counters: Counters

    def sorted_rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order. Raises as `icebench.engine.read.reader.read_files`, and StorageFailed."""
        places = self._places()
        batches = self._read(self.files, self.request)
        first = next(batches, None)
        if first is None:
            return
        row_bytes = max(first.nbytes / first.num_rows, 1.0)
        rows = max(int(self.memory_bytes / _COPIES / row_bytes), 1)
        if len(places) <= rows:
            table = pa.Table.from_batches([first, *batches])
            yield from table.take(pa.array(np.argsort(places))).to_batches()
            return
        yield from self._by_ranges(chain([first], batches), places, rows)

    def _read(self, files: list[FileRead], request: ReadRequest) -> Iterator[pa.RecordBatch]:
        return read_files(files, request, runner=self.runner, counters=self.counters)

    def _places(self) -> Places:
        """The position of each row in the sorted result, in the order of reading."""
        partitioned_by = [source_id for f in self.spec.fields for source_id in f.source_ids]
        schema = self.metadata.schema.select([*self.ordering.column_ids, *partitioned_by])
        request = replace(self.request, projection=schema)
        batches = list(self._read(self.files, request))
        keys = pa.Table.from_batches(batches, schema=request.arrow_schema)
        order = _order(keys, schema, self.spec, self.ordering)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return places

    def _by_ranges(self, batches: Iterator[pa.RecordBatch], places: Places, rows: int) -> Iterator[pa.RecordBatch]:
        """Sort through temporary files: write the rows by range of positions, then read and sort range by range."""
        ranges = -(-len(places) // rows)
        directory = f"{DataLocations.of(self.metadata).root}/_sorting"
        files = RangeFiles(self.store, directory, ranges=ranges, waiting_bytes=self.memory_bytes // _COPIES)
        try:
            start = 0
            for batch in batches:
                own = places[start : start + batch.num_rows]
                start += batch.num_rows
                files.add(batch.append_column("place", pa.array(own)), own // rows)
            files.finish()
            for number in range(ranges):
                table = files.read(number)
                # By number: the table may have a column of that name.
                last = table.num_columns - 1
                order = np.argsort(table.column(last).to_numpy())
                yield from table.remove_column(last).take(pa.array(order)).to_batches()
        finally:
            files.remove()


def _order(keys: pa.Table, schema: Schema, spec: PartitionSpec, ordering: Ordering) -> Places:
    """The permutation that sorts rows by partition, then by the ordering; stable."""
    if ordering.sort_order is not None:
        found = sort_indices(keys, spec, ordering.sort_order, schema)
        return np.arange(keys.num_rows) if found is None else found.to_numpy().astype(np.int64)
    columns = [column_by_id(keys, schema, column_id) for column_id in ordering.column_ids]
    values = z_values(columns) if ordering.z_order else hilbert_values(columns)
    if not spec.fields:
        return np.argsort(values, kind="stable")
    groups = group_rows(keys, spec, schema)
    partitions = np.repeat(np.arange(len(groups.partitions)), np.diff(groups.starts))
    if groups.order is not None:
        by_row = np.empty_like(partitions)
        by_row[groups.order] = partitions
        partitions = by_row
    return np.lexsort((values, partitions))
