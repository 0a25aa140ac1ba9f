"""Sorts the rows of a rewrite within bounded memory.

If all rows of the group fit into memory they are sorted there. Otherwise a first pass reads the sort columns and keeps
a sample of them, whose rows are the bounds of ranges; a second pass puts all rows by range into temporary files, each
small enough to be sorted in memory, and reads these files in order. Neither keys nor positions of all rows are in
memory at a time. Ranges that are too large for that are not sorted where partitions are the only keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.batch_columns import column_by_id
from icebench.engine.columnar.partitions import group_rows
from icebench.engine.columnar.sorting import SortKeys, order_of, sort_indices, sort_keys, take_rows
from icebench.engine.deletes.files import FileRead
from icebench.engine.maintenance.hilbert import hilbert_indexes, hilbert_values
from icebench.engine.maintenance.range_files import MOST_RANGES, RangeFiles
from icebench.engine.maintenance.z_order import SampledShares, bits_of_each, interleave_bits, z_values
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import UNSORTED, SortOrder
from icebench.engine.storage.scratch import scratch_space
from icebench.engine.storage.store import Store
from icebench.engine.write.locations import DataLocations

Numbers = npt.NDArray[np.int64]
Keys: TypeAlias = tuple[pa.Table, SortKeys]
"""The columns that rows are sorted by, and how."""
Places: TypeAlias = list[pa.Array]
"""Of rows along a curve: one array, or none where they are sorted by an order."""

_COPIES = 3
"""Of a range of rows, in memory at once: as read, as sorted, and waiting to be written."""
_SAMPLE_ROWS = 1 << 15
"""Of a group, at least, where it has as many."""
_PIECE_ROWS = 1 << 17
"""Rows that are put by range at a time."""
_FILLED = 0.8
"""Of what fits: ranges of a sample are not equally large."""
_NUMBER, _PLACE = "number", "place"


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
        ordering: Which. With the unsorted order, rows keep their order within each partition; those of several
            partitions alternate where the rows are too many for ranges that fit into memory.
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
        batches = self._read(self.request)
        most, size = self.memory_bytes // _COPIES, 0
        gathered: list[pa.RecordBatch] = []
        for batch in batches:
            gathered.append(batch)
            size += batch.nbytes
            if size > most:
                rows = sum(each.num_rows for each in gathered) * most // size
                yield from self._by_ranges(chain(_released(gathered), batches), max(int(rows * _FILLED), 1))
                return
        if gathered:
            table = pa.Table.from_batches(gathered)
            order = _order(table, self.request.projection, self.spec, self.ordering)
            yield from take_rows(table, pa.array(order)).to_batches()

    def _read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        return read_files(self.files, request, runner=self.runner, counters=self.counters)

    def _by_ranges(self, batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
        """Sort through temporary files: write the rows by range, then read and sort range by range."""
        partitioned_by = [source_id for f in self.spec.fields for source_id in f.source_ids]
        own = self.metadata.schema.select([*self.ordering.column_ids, *partitioned_by])
        request = replace(self.request, projection=own)
        sample = Sample.of(self._read(request), request.arrow_schema)
        places_of = self._places(sample.rows, own)
        ranges = min(-(-sample.count // rows), MOST_RANGES)
        bounds = _Bounds.of(self._keys(sample.rows, own, places_of(sample.rows, own)), sample.numbers, ranges)
        # A writer then has the partitions of one range at a time, and any order of them will do.
        keeps_order = not self.ordering.column_ids and sample.count > rows * MOST_RANGES
        schema, width = self.request.projection, len(self.request.arrow_schema)
        with scratch_space(self.store, f"{DataLocations.of(self.metadata).root}/_sorting") as (store, directory):
            files = RangeFiles(store, directory, ranges=ranges, waiting_bytes=self.memory_bytes // _COPIES)
            try:
                start = 0
                for piece in _pieces(batches):
                    # Places are looked up once and kept with the rows.
                    places = places_of(piece, schema)
                    keys = self._keys(pa.Table.from_batches([piece]), schema, places)
                    ranges_of_rows = bounds.ranges_of(keys, start)
                    start += piece.num_rows
                    for place in places:
                        piece = piece.append_column(_PLACE, place)  # noqa: PLW2901
                    files.add(piece, ranges_of_rows)
                files.finish()
                for number in np.flatnonzero(files.rows).tolist():
                    if keeps_order:
                        yield from files.batches(number)
                        continue
                    kept = files.read(number)
                    table, places = kept.select(range(width)), kept.columns[width:]
                    # Rows of a range are in the order of reading, which equal keys keep.
                    yield from take_rows(table, order_of(*self._keys(table, schema, places))).to_batches()
            finally:
                files.remove()

    def _keys(self, rows: pa.Table, schema: Schema, places: Places) -> Keys:
        """The keys of rows, with their places along a curve."""
        columns, options = sort_keys(rows, self.spec, self.ordering.sort_order or UNSORTED, schema)
        if not places:
            return columns, options
        names = [*columns.column_names, _PLACE]
        # Of no partition field there is no column, and so no row.
        columns = pa.Table.from_arrays([*columns.columns, *places], names)
        return columns, [*options, (_PLACE, "ascending", "at_start")]

    def _places(self, sample: pa.Table, schema: Schema) -> Callable[[pa.Table | pa.RecordBatch, Schema], Places]:
        """What gives the places of any rows of the group: a value counts by its share of the sample."""
        if self.ordering.sort_order is not None:
            return lambda _rows, _schema: []
        ids = self.ordering.column_ids
        bits = bits_of_each(len(ids), "z-order" if self.ordering.z_order else "a Hilbert curve")
        shares = [SampledShares.of(column_by_id(sample, schema, column_id), bits) for column_id in ids]
        join = interleave_bits if self.ordering.z_order else hilbert_indexes

        def places(rows: pa.Table | pa.RecordBatch, own: Schema) -> Places:
            return [
                pa.array(join([each(column_by_id(rows, own, i)) for each, i in zip(shares, ids, strict=True)], bits))
            ]

        return places


def _released(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take the batches out of a list, which would keep them in memory."""
    batches.reverse()
    while batches:
        yield batches.pop()


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, _PIECE_ROWS):
            yield batch.slice(start, _PIECE_ROWS)


@dataclass(frozen=True)
class Sample:
    """Every so manieth of the rows that are read.

    Args:
        rows: In the order of reading.
        numbers: How many rows are read before each.
        count: How many rows there are.
    """

    rows: pa.Table
    numbers: Numbers
    count: int

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, least: int = _SAMPLE_ROWS) -> Sample:
        """A sample of `least` to twice as many rows, or of all where there are fewer."""
        stride, count = 1, 0
        kept, numbers = [], np.zeros(0, np.int64)
        for batch in batches:
            own = np.arange(-count % stride, batch.num_rows, stride)
            kept.append(batch.take(pa.array(own)))
            numbers = np.concatenate([numbers, own + count])
            count += batch.num_rows
            if len(numbers) >= 2 * least:
                stride *= len(numbers) // least
                chosen = np.flatnonzero(numbers % stride == 0)
                kept = pa.Table.from_batches(kept, schema).take(pa.array(chosen)).to_batches()
                numbers = numbers[chosen]
        return cls(pa.Table.from_batches(kept, schema), numbers, count)


@dataclass(frozen=True)
class _Bounds:
    """The first row of each range but the first: rows with equal keys differ in their numbers, so that ranges are
    small whatever the keys.

    Args:
        keys: And ``number``.
    """

    keys: pa.Table

    @classmethod
    def of(cls, keys: Keys, numbers: Numbers, ranges: int) -> _Bounds:
        """Bounds of that many ranges, as far as the sample has rows for them."""
        order = order_of(*keys).to_numpy()
        places = np.unique(np.arange(1, ranges) * len(order) // ranges)
        chosen = order[places[places > 0]]
        return cls(keys[0].take(pa.array(chosen)).append_column(_NUMBER, pa.array(numbers[chosen])))

    def ranges_of(self, keys: Keys, start: int) -> Numbers:
        """The range of each of consecutive rows, before which `start` rows are read."""
        columns, options = keys
        count = len(self.keys)
        numbers = np.arange(start, start + columns.num_rows)
        both = pa.concat_tables([self.keys, columns.append_column(_NUMBER, pa.array(numbers))])
        order = order_of(both, [*options, (_NUMBER, "ascending", "at_start")]).to_numpy().astype(np.int64)
        passed = np.cumsum(order < count)
        found = np.empty(columns.num_rows, np.int64)
        rows = order >= count
        found[order[rows] - count] = passed[rows]
        return found


def _order(keys: pa.Table, schema: Schema, spec: PartitionSpec, ordering: Ordering) -> Numbers:
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
