"""Sorts the rows of a rewrite within bounded memory.

A first pass reads the sort columns of the whole group and computes the position of each row. If all rows fit into
memory they are then sorted there. Otherwise a second pass partitions them by ranges of positions into temporary files
in the table's storage, each small enough, and reads these files in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.columnar.columns import column_by_id
from engine.columnar.partitions import group_rows
from engine.columnar.schemas import to_arrow_field, to_arrow_schema
from engine.columnar.sorting import sorted_table
from engine.deletes.files import FileRead
from engine.maintenance.hilbert import hilbert_values
from engine.maintenance.z_order import z_values
from engine.read.reader import read_files
from engine.read.request import ReadRequest
from engine.runtime.counters import Counters
from engine.runtime.runner import Runner
from engine.spec.data_file import DataFile
from engine.spec.metadata import TableMetadata
from engine.spec.metadata_columns import LAST_UPDATED, ROW_ID
from engine.spec.partitioning import PartitionField, PartitionSpec
from engine.spec.properties import (
    DATA_PATH,
    DEFAULT_FILE_FORMAT,
    METRICS_DEFAULT,
    PARQUET_COMPRESSION,
    PARQUET_ROW_GROUP_SIZE_BYTES,
    TARGET_FILE_SIZE_BYTES,
)
from engine.spec.schema import Schema
from engine.spec.sorting import SortOrder
from engine.spec.transforms import Identity
from engine.spec.types import INT, LONG, NestedField
from engine.storage.store import Store
from engine.write.data_files import remove_files, write_data_files
from engine.write.locations import DataLocations

Places = npt.NDArray[np.int64]

# Ids that no table has given to a column and that readers do not take for their own metadata columns.
_PLACE = NestedField(field_id=2147480001, name="_place", type=LONG, required=True)
_STRETCH = NestedField(field_id=2147480002, name="_stretch", type=INT, required=True)
_LINEAGE = {
    each.field_id: replace(each, field_id=field_id)
    for each, field_id in ((ROW_ID, 2147480003), (LAST_UPDATED, 2147480004))
}
"""In stretches these are columns like others: a reader would give a row without an id one of its file."""
_BY_STRETCH = PartitionSpec(
    (PartitionField(source_ids=(_STRETCH.field_id,), field_id=1000, name="_stretch", transform=Identity()),), spec_id=0
)
_TAKING = 3
"""Copies of a range of rows that are in memory at once: as read, as sorted, and waiting to be written."""
_LEAST_WAITING_BYTES = 1 << 18
"""Smaller row groups cost more than their memory is worth."""


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
        store: For stretches that do not fit into memory.
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
        """Yield the rows in order. Raises as `engine.read.reader.read_files`, and StorageFailed."""
        places = self._places()
        batches = self._read(self.files, self.request)
        first = next(batches, None)
        if first is None:
            return
        row_bytes = max(first.nbytes / first.num_rows, 1.0)
        stretch_rows = max(int(self.memory_bytes / _TAKING / row_bytes), 1)
        if len(places) <= stretch_rows:
            table = pa.Table.from_batches([first, *batches])
            yield from table.take(pa.array(np.argsort(places))).to_batches()
            return
        yield from self._by_stretches(_chain(first, batches), places, stretch_rows)

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

    def _by_stretches(
        self, batches: Iterator[pa.RecordBatch], places: Places, stretch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Sort through temporary files: write the rows by range of positions, then read and sort range by range."""
        own = [_LINEAGE.get(f.field_id, f) for f in self.request.projection.fields]
        fields = (*own, _PLACE, _STRETCH)
        schema = Schema(fields, self.metadata.schema.schema_id)
        written = write_data_files(
            _with_places(batches, places, stretch_rows, schema),
            metadata=self.metadata,
            store=self.store,
            schema=schema,
            spec=_BY_STRETCH,
            properties=_passing_properties(self.metadata, self.memory_bytes * stretch_rows // len(places)),
        )
        try:
            yield from self._stretches(written, schema)
        finally:
            remove_files(self.store, written)

    def _stretches(self, written: list[DataFile], schema: Schema) -> Iterator[pa.RecordBatch]:
        projection = Schema(schema.fields[:-1], schema.schema_id)
        request = replace(
            self.request,
            projection=projection,
            schemas=(schema,),
            specs={0: _BY_STRETCH},
            name_mapping=None,
            without_ids=None,
        )
        by_stretch: dict[int, list[FileRead]] = {}
        for file in written:
            read = FileRead(
                file_path=file.file_path,
                record_count=file.record_count,
                file_size_in_bytes=file.file_size_in_bytes,
                partition=file.partition,
            )
            number = file.partition[0]
            assert isinstance(number, int)
            by_stretch.setdefault(number, []).append(read)
        for stretch in sorted(by_stretch):
            table = pa.Table.from_batches(list(self._read(by_stretch[stretch], request)))
            order = np.argsort(table.column(_PLACE.name).to_numpy())
            yield from table.drop_columns([_PLACE.name]).take(pa.array(order)).to_batches()


def _order(keys: pa.Table, schema: Schema, spec: PartitionSpec, ordering: Ordering) -> Places:
    """The permutation that sorts rows by partition, then by the ordering; stable."""
    numbers = pa.array(np.arange(keys.num_rows))
    if ordering.sort_order is not None:
        numbered = keys.append_column(to_arrow_field(_PLACE), numbers)
        own = Schema((*schema.fields, _PLACE), schema.schema_id)
        ordered = sorted_table(numbered, spec, ordering.sort_order, own).column(_PLACE.name)
        return np.asarray(ordered.to_numpy(), np.int64)
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


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _with_places(
    batches: Iterator[pa.RecordBatch], places: Places, stretch_rows: int, schema: Schema
) -> pa.RecordBatchReader:
    """The rows with their position and range as two more columns."""
    arrow = to_arrow_schema(schema)

    def numbered() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in batches:
            own = places[start : start + batch.num_rows]
            start += batch.num_rows
            stretch = pa.array((own // stretch_rows).astype(np.int32))
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(own), stretch], schema=arrow)

    return pa.RecordBatchReader.from_batches(arrow, numbered())


def _passing_properties(metadata: TableMetadata, waiting_bytes: int) -> dict[str, str]:
    """Table properties for writing temporary files: outside the data directory, without metrics, and with row groups of
    this many bytes."""
    return {
        DATA_PATH.name: f"{DataLocations.of(metadata).root}/_sorting",
        DEFAULT_FILE_FORMAT.name: "parquet",
        TARGET_FILE_SIZE_BYTES.name: str(1 << 40),
        PARQUET_COMPRESSION.name: "lz4",
        PARQUET_ROW_GROUP_SIZE_BYTES.name: str(max(waiting_bytes, _LEAST_WAITING_BYTES)),
        METRICS_DEFAULT.name: "none",
    }
