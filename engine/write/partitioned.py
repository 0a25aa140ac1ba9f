"""Distributes rows of many partitions to rolling writers: clustered input keeps one file open, fanout keeps many."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from icebench.engine.columnar.partitions import Groups, group_rows
from icebench.engine.errors import Invalid
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.partitioning import Partition, PartitionKey, PartitionSpec, partition_key
from icebench.engine.spec.schema import Schema
from icebench.engine.write.rolling import FileFormat, RollingWriter

MAX_OPEN_FILES = 200
MAX_WAITING_BYTES = 512 * 1024 * 1024

NextLocation = Callable[[Partition], str]
"""The location of a new file of a partition."""


class PartitionedWriter(Protocol):
    """Takes batches of any partition; `finish` returns the files, `abort` closes and removes open ones."""

    def write(self, batch: pa.RecordBatch) -> None: ...

    def finish(self) -> None: ...

    def abort(self) -> None: ...

    @property
    def files(self) -> list[DataFile]:
        """Closed files."""
        ...


class ClusteredWriter:
    """One open file at a time, for rows in order of partitions; if too much is buffered, a row group is written.

    Raises:
        Invalid: From `write`, when a partition recurs after another one.
    """

    def __init__(
        self,
        format: FileFormat,
        schema: Schema,
        spec: PartitionSpec,
        next_location: NextLocation,
        *,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._format = format
        self._max_waiting_bytes = max_waiting_bytes
        self._schema = schema
        self._spec = spec
        self._next_location = next_location
        self._current: RollingWriter | None = None
        self._partition: PartitionKey | None = None
        self._past: set[PartitionKey] = set()
        self.files: list[DataFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        groups = group_rows(batch, self._spec, self._schema)
        if groups.order is not None:
            raise Invalid("the rows are not clustered by partition: sort them, or write with fanout")
        for i, partition in enumerate(groups.partitions if batch.num_rows else ()):
            start, end = int(groups.starts[i]), int(groups.starts[i + 1])
            writer = self._writer_of(partition)
            writer.write(batch.slice(start, end - start))
            if writer.waiting_bytes > self._max_waiting_bytes:
                writer.flush()

    def _writer_of(self, partition: Partition) -> RollingWriter:
        key = partition_key(self._spec.spec_id, partition)
        if self._current is None or key != self._partition:
            self._end_partition()
            if key in self._past:
                raise Invalid(f"the rows are not clustered: partition {partition} comes again; write with fanout")
            self._past.add(key)
            self._partition = key
            self._current = RollingWriter(self._format, partition, lambda: self._next_location(partition))
        return self._current

    def _end_partition(self) -> None:
        if self._current is not None:
            self._current.end_file()
            self.files.extend(self._current.files)
            self._current = None

    def finish(self) -> None:
        self._end_partition()

    def abort(self) -> None:
        if self._current is not None:
            self.files.extend(self._current.files)
            self._current.abort()


class FanoutWriter:
    """An open file per partition, within bounds: if too much is buffered, the largest row group is written; if too many
    files are open, the least recently used one is closed. Buffered rows and the batches that they are of take up to
    twice `max_waiting_bytes`."""

    def __init__(
        self,
        format: FileFormat,
        schema: Schema,
        spec: PartitionSpec,
        next_location: NextLocation,
        *,
        max_open_files: int = MAX_OPEN_FILES,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._format = format
        self._schema = schema
        self._spec = spec
        self._next_location = next_location
        self._max_open_files = max_open_files
        self._max_waiting_bytes = max_waiting_bytes
        self._open: OrderedDict[PartitionKey, RollingWriter] = OrderedDict()
        self._waiting_bytes = 0
        self._given_bytes = 0  # since buffered rows were last copied
        self._done: list[DataFile] = []

    @property
    def files(self) -> list[DataFile]:
        return [*self._done, *(file for writer in self._open.values() for file in writer.files)]

    def write(self, batch: pa.RecordBatch) -> None:
        self._release_batches(batch.nbytes)
        groups = group_rows(batch, self._spec, self._schema)
        ordered = self._ordered(batch, groups)
        for i, partition in enumerate(groups.partitions if batch.num_rows else ()):
            start, end = int(groups.starts[i]), int(groups.starts[i + 1])
            writer = self._writer_of(partition)
            before = writer.waiting_bytes
            writer.write(ordered.slice(start, end - start))
            self._waiting_bytes += writer.waiting_bytes - before
            while self._waiting_bytes > self._max_waiting_bytes:
                self._flush_largest()

    def _ordered(self, batch: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        if groups.order is None:
            return batch
        order = pa.array(groups.order)
        columns = list(self._format.runner.map(lambda column: column.take(order), batch.columns))
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _writer_of(self, partition: Partition) -> RollingWriter:
        key = partition_key(self._spec.spec_id, partition)
        writer = self._open.get(key)
        if writer is not None:
            self._open.move_to_end(key)
            return writer
        if len(self._open) >= self._max_open_files:
            _, oldest = self._open.popitem(last=False)
            self._waiting_bytes -= oldest.waiting_bytes
            self._end(oldest)
        writer = RollingWriter(self._format, partition, lambda: self._next_location(partition))
        self._open[key] = writer
        return writer

    def _release_batches(self, given_bytes: int) -> None:
        """Copy the buffered rows each time that as many bytes were given as may be buffered: a row of a rare partition
        keeps its whole batch in memory, long after the other rows were written."""
        self._given_bytes += given_bytes
        if self._given_bytes > self._max_waiting_bytes:
            self._given_bytes = given_bytes
            for writer in self._open.values():
                writer.copy_waiting()

    def _flush_largest(self) -> None:
        largest = max(self._open.values(), key=lambda writer: writer.waiting_bytes)
        self._waiting_bytes -= largest.waiting_bytes
        largest.flush()

    def _end(self, writer: RollingWriter) -> None:
        try:
            writer.end_file()
        finally:
            self._done.extend(writer.files)

    def finish(self) -> None:
        for _ in self._format.runner.map(RollingWriter.end_file, self._open.values()):
            pass
        self._done = self.files
        self._open.clear()
        self._waiting_bytes = 0

    def abort(self) -> None:
        while self._open:
            _, writer = self._open.popitem()
            self._done.extend(writer.files)
            writer.abort()
