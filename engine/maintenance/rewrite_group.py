"""Rewrites one group of data files, in a thread or on an executor."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa

from icebench.engine.columnar.partitions import group_rows
from icebench.engine.deletes.files import FileRead
from icebench.engine.errors import EngineError
from icebench.engine.maintenance.file_groups import FileGroup
from icebench.engine.maintenance.row_order import Ordering, Sorter
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionKey, PartitionSpec, partition_key
from icebench.engine.spec.properties import TARGET_FILE_SIZE_BYTES
from icebench.engine.spec.sorting import UNSORTED, SortOrder
from icebench.engine.storage.store import Store
from icebench.engine.write.data_files import write_data_files
from icebench.engine.write.locations import FileNames
from icebench.engine.write.partitioned import MAX_OPEN_FILES

_LEAST_WAITING_BYTES = 16 << 20
"""Row groups are not smaller, however little memory sorts get."""


@dataclass(frozen=True, kw_only=True)
class RewrittenGroup:
    """The result of rewriting a group: its new files, not yet committed, or the error.

    A group whose rows are all deleted has no new files and no error.
    """

    group: FileGroup
    files: Sequence[DataFile] = ()
    error: EngineError | None = None


@dataclass(frozen=True, kw_only=True)
class GroupRewrite:
    """Writes the live rows of a group to new files with the table's current schema. Can be pickled if the store can.

    Args:
        metadata: The table.
        store: Its storage.
        request: How to read. Its projection is the schema of the new files, with row lineage in format version 3.
        spec: The partition spec of the new files.
        ordering: How to sort; None keeps the order of the rows of a partition.
        sort_order: The table's sort order that `ordering` is, recorded in the files' entries; None if it is not one.
        memory_bytes: Memory for sorting, and for rows that wait to be written.
        threads: Threads for reading.
        operation_id: Becomes part of the names of the new files.
        task_id: Distinguishes attempts at the same group in file names.
        counters: Where work is counted; None counts nothing.
    """

    metadata: TableMetadata
    store: Store
    request: ReadRequest
    spec: PartitionSpec
    ordering: Ordering | None
    sort_order: SortOrder | None
    memory_bytes: int
    threads: int
    operation_id: uuid.UUID
    task_id: int = 0
    counters: Counters | None = None

    def __call__(self, group: FileGroup) -> RewrittenGroup:
        """Rewrite a group. Errors of the engine are returned in the result, after new files were deleted."""
        counters = self.counters or Counters()
        try:
            # What a sort has left on storage goes when its rows are closed.
            with closing(self._rows(group, counters)) as rows:
                files = write_data_files(
                    pa.RecordBatchReader.from_batches(self.request.arrow_schema, rows),
                    metadata=self.metadata,
                    store=self.store,
                    schema=self.request.projection,
                    spec=self.spec,
                    names=FileNames(operation_id=self.operation_id, partition_id=group.number, task_id=self.task_id),
                    properties={TARGET_FILE_SIZE_BYTES.name: str(group.file_size_bytes)},
                    counters=counters,
                    sorted_by=self.sort_order,
                    memory_bytes=max(self.memory_bytes, _LEAST_WAITING_BYTES),
                    runner=LocalRunner(self.threads),
                )
        except EngineError as error:
            return RewrittenGroup(group=group, error=error)
        return RewrittenGroup(group=group, files=files)

    def _rows(self, group: FileGroup, counters: Counters) -> Generator[pa.RecordBatch, None, None]:
        files = [replace(file, residual=None) for file in group.files]
        runner = LocalRunner(self.threads)
        ordering = self.ordering
        if ordering is None and group.partition is None and self._exceed_fanout(files, runner, counters):
            # Sorts by partition alone, and keeps the order of the rows of each.
            ordering = Ordering(sort_order=UNSORTED)
        if ordering is None:
            yield from read_files(files, self.request, runner=runner, counters=counters)
            return
        yield from Sorter(
            ordering=ordering,
            metadata=self.metadata,
            spec=self.spec,
            files=files,
            request=self.request,
            store=self.store,
            memory_bytes=self.memory_bytes,
            runner=runner,
            counters=counters,
        ).sorted_rows()

    def _exceed_fanout(self, files: list[FileRead], runner: Runner, counters: Counters) -> bool:
        """Whether the rows have more partitions than fanout keeps open: it would close files to open others, and leave
        a file for each time that a partition recurs."""
        if self.spec.is_unpartitioned:
            return False
        sources = self.metadata.schema.select([source_id for f in self.spec.fields for source_id in f.source_ids])
        request = replace(self.request, projection=sources)
        found: set[PartitionKey] = set()
        for batch in read_files(files, request, runner=runner, counters=counters):
            partitions = group_rows(batch, self.spec, sources).partitions
            found.update(partition_key(self.spec.spec_id, partition) for partition in partitions)
            if len(found) > MAX_OPEN_FILES:
                return True
        return False
