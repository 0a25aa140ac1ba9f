"""Writes new data files from Arrow data (spec: "Writing Data Files").

Nothing refers to the files until a commit does. If anything fails, the files written so far are removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from icebench.engine.columnar.rows import table_rows
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.columnar.sorting import sorted_table
from icebench.engine.errors import EngineError
from icebench.engine.formats.file_writers import write_options
from icebench.engine.formats.metrics_modes import metrics_modes
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.runtime.local import ONE_THREAD
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.encryption import check_not_encrypted
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import LAST_UPDATED, ROW_ID, check_lineage_names
from icebench.engine.spec.partition_paths import partition_path
from icebench.engine.spec.partitioning import Partition, PartitionSpec
from icebench.engine.spec.properties import DEFAULT_FILE_FORMAT, READ_BACK, TARGET_FILE_SIZE_BYTES
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.storage.store import Store
from icebench.engine.write.locations import DataLocations, FileNames
from icebench.engine.write.partitioned import (
    MAX_OPEN_FILES,
    MAX_WAITING_BYTES,
    ClusteredWriter,
    FanoutWriter,
    PartitionedWriter,
)
from icebench.engine.write.read_back import compared_columns
from icebench.engine.write.rolling import FileFormat

_BATCH_ROWS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class WriteTarget:
    """How and where to write rows of a table.

    Args:
        metadata: The table; its properties control how to write.
        store: Its storage.
        schema: The schema to write; the current one by default.
        spec: The partition spec to write; the default one by default.
        names: Unique names for the files.
        properties: Override those of the table, for this write.
        counters: Count the files.
    """

    metadata: TableMetadata
    store: Store
    schema: Schema
    spec: PartitionSpec
    names: FileNames
    properties: Mapping[str, str] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)

    @classmethod
    def of(
        cls,
        metadata: TableMetadata,
        store: Store,
        *,
        schema: Schema | None = None,
        spec: PartitionSpec | None = None,
        names: FileNames | None = None,
        properties: Mapping[str, str] | None = None,
        counters: Counters | None = None,
    ) -> WriteTarget:
        """A target with the table's own schema, spec and properties by default; raises Unsupported for a table whose
        files are to be encrypted."""
        check_not_encrypted(metadata)
        return cls(
            metadata=metadata,
            store=store,
            schema=schema or metadata.schema,
            spec=spec or metadata.spec,
            names=names or FileNames(),
            properties={**metadata.properties, **(properties or {})},
            counters=counters or Counters(),
        )

    def format(self, *, sorted_by: SortOrder | None) -> FileFormat:
        """The format that the data files of this write share."""
        order = self.metadata.sort_order
        options = write_options(DEFAULT_FILE_FORMAT.of(self.properties), self.properties)
        return FileFormat(
            store=self.store,
            arrow_schema=to_arrow_schema(self.schema),
            schema=self.schema,
            spec_id=self.spec.spec_id,
            modes=metrics_modes(self.properties, self.schema, order),
            options=options,
            target_size_bytes=TARGET_FILE_SIZE_BYTES.of(self.properties),
            sort_order=sorted_by,
            compared=compared_columns(self.schema, options.file_format, READ_BACK.of(self.properties)),
        )

    def location(self, partition: Partition, count: int, extension: str, *, suffix: str = "") -> str:
        """The location of the `count`-th file of this write."""
        directory = partition_path(self.spec, self.schema, partition)
        return self._locations.location(directory, self.names.name(count, suffix=suffix, extension=extension))

    def unpartitioned_location(self, count: int, extension: str, *, suffix: str = "") -> str:
        """The location of a file without a partition."""
        return self._locations.location("", self.names.name(count, suffix=suffix, extension=extension))

    @property
    def _locations(self) -> DataLocations:
        return DataLocations.of(replace(self.metadata, properties=self.properties))


def write_data_files(
    data: pa.Table | pa.RecordBatchReader,
    *,
    metadata: TableMetadata,
    store: Store,
    schema: Schema | None = None,
    spec: PartitionSpec | None = None,
    names: FileNames | None = None,
    properties: Mapping[str, str] | None = None,
    counters: Counters | None = None,
    mode: Literal["auto", "clustered", "fanout"] = "auto",
    sorted_by: SortOrder | None = None,
    max_open_files: int = MAX_OPEN_FILES,
    memory_bytes: int | None = None,
    runner: Runner = ONE_THREAD,
) -> list[DataFile]:
    """Write rows as new data files.

    Args:
        data: Rows by column name; see `icebench.engine.columnar.rows.table_rows` for what is cast. A table is sorted by
            the table's sort order; a stream keeps its order.
        metadata: The table; its location and properties control where and how to write.
        store: Its storage.
        schema: The schema to write; the current one by default.
        spec: The partition spec to write; the default one by default.
        names: Unique names for the files; by default from a random id.
        properties: Override those of the table, for this write.
        counters: Count the files.
        mode: ``clustered`` for rows in order of partitions (one open file; `Invalid` for others), ``fanout`` for any
            order, ``auto`` to choose.
        sorted_by: The existing sort order of `data`, which is recorded and not checked.
        max_open_files: The number of partitions that fanout writes at a time.
        memory_bytes: Row groups are written early when that many bytes of rows are buffered; None for the default.
        runner: Encodes columns, and completes files of several partitions, at the same time; on the caller's thread by
            default. The files are the same.

    Returns:
        The files, in the order they were closed; none for no rows.

    Raises:
        Invalid: Rows that do not fit the table; nothing stays behind.
        Unsupported: The table's file format (``write.format.default``) has no form for a column.
        WriteMismatch: A file, read back, holds other rows.
        StorageFailed: The storage failed; written files are removed if possible.
    """
    target = WriteTarget.of(
        metadata, store, schema=schema, spec=spec, names=names, properties=properties, counters=counters
    )
    batches, order = table_rows(data, target.schema), metadata.sort_order
    if isinstance(data, pa.Table) and sorted_by is None and not order.is_unsorted:
        table = pa.Table.from_batches(batches, schema=to_arrow_schema(target.schema))
        batches = iter(sorted_table(table, target.spec, order, target.schema).to_batches())
        sorted_by = order
    writer = _partitioned(
        target, replace(target.format(sorted_by=sorted_by), runner=runner), mode, max_open_files, memory_bytes
    )
    try:
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                writer.write(batch.slice(start, _BATCH_ROWS))
        writer.finish()
    except BaseException:
        writer.abort()
        remove_files(target.store, writer.files)
        raise
    target.counters.add(FILES_WRITTEN, len(writer.files))
    return writer.files


def _partitioned(
    target: WriteTarget,
    format: FileFormat,
    mode: Literal["auto", "clustered", "fanout"],
    max_open_files: int,
    memory_bytes: int | None,
) -> PartitionedWriter:
    counter = iter(range(1, 1_000_000_000))

    def next_location(partition: Partition) -> str:
        return target.location(partition, next(counter), format.options.file_format)

    waiting = MAX_WAITING_BYTES if memory_bytes is None else min(memory_bytes, MAX_WAITING_BYTES)
    if mode == "clustered":
        return ClusteredWriter(format, target.schema, target.spec, next_location, max_waiting_bytes=waiting)
    return FanoutWriter(
        format,
        target.schema,
        target.spec,
        next_location,
        max_open_files=max_open_files,
        max_waiting_bytes=waiting,
    )


def written_schema(metadata: TableMetadata) -> Schema:
    """The schema of rewritten files: in format version 3 rows keep their ids (spec: "Row Lineage").

    Raises:
        Unsupported: A column of the table has the name of one of theirs.
    """
    if metadata.format_version < 3:
        return metadata.schema
    check_lineage_names(metadata.schema)
    return Schema((*metadata.schema.fields, ROW_ID, LAST_UPDATED), metadata.schema.schema_id)


def remove_files(store: Store, files: list[DataFile]) -> None:
    """Remove files that nothing refers to; files that cannot be removed are left to orphan removal."""
    for file in files:
        with suppress(EngineError):
            store.delete(file.file_path)


def remove_files_of(
    store: Store, metadata: TableMetadata, names: FileNames, *, partitions: Collection[int] | None = None
) -> None:
    """Remove the files of one write operation, however many tasks wrote them, if possible.

    Args:
        store: Of the files.
        metadata: Of their table.
        names: Of the operation.
        partitions: Only those of these parallel writers; others may be committed already.
    """
    with suppress(EngineError):
        for info in store.list(DataLocations.of(metadata).root):
            written_by = names.writer_of(info.location)
            if written_by is not None and (partitions is None or written_by in partitions):
                with suppress(EngineError):
                    store.delete(info.location)
