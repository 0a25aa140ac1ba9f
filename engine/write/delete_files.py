"""Writes new delete files (spec: "Position Delete Files", "Equality Delete Files").

Position deletes belong to format version 2; version 3 tables take deletion vectors instead
(`icebench.engine.write.vectors`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.rows import table_rows
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.errors import Invalid
from icebench.engine.formats.file_writers import WriteOptions, write_options
from icebench.engine.formats.metrics_modes import FULL
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID, DELETE_POS_ID, POSITION_DELETES
from icebench.engine.spec.partitioning import Partition, PartitionKey, PartitionSpec, partition_key
from icebench.engine.spec.properties import (
    DEFAULT_FILE_FORMAT,
    DELETE_FILE_FORMAT,
    DELETE_GRANULARITY,
    DELETE_TARGET_FILE_SIZE_BYTES,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.store import Store
from icebench.engine.write.data_files import WriteTarget, remove_files
from icebench.engine.write.locations import FileNames
from icebench.engine.write.rolling import FileFormat, RollingWriter


@dataclass(frozen=True, kw_only=True)
class DeletedRows:
    """Rows of one data file to delete.

    Args:
        file_path: The data file, spelled as its manifest entry spells it.
        positions: Row positions from 0, in any order; repetitions count once.
        spec_id: The data file's partition spec.
        partition: Its partition tuple.
    """

    file_path: str
    positions: npt.NDArray[np.int64]
    spec_id: int = 0
    partition: Partition = ()


def write_position_deletes(
    deleted: Iterable[DeletedRows],
    *,
    metadata: TableMetadata,
    store: Store,
    names: FileNames | None = None,
    properties: Mapping[str, str] | None = None,
    counters: Counters | None = None,
) -> list[DataFile]:
    """Write position-delete files, sorted by file path and position.

    One file per data file (``write.delete.granularity=file``, the default: a reader of one data file then loads no
    deletes of others), or per partition (``partition``: fewer files). `referenced_data_file` and equal bounds of
    `file_path` identify the only data file of a delete file.

    Raises:
        Invalid: The format version is not 2, or a data file comes twice with different partitions.
        StorageFailed: The storage refused; what was written is removed as far as the storage lets.
    """
    if metadata.format_version != 2:
        hint = "write deletion vectors" if metadata.format_version >= 3 else "upgrade the table to version 2"
        raise Invalid(f"format version {metadata.format_version} takes no position-delete files; {hint}")
    target = WriteTarget.of(metadata, store, names=names, properties=properties, counters=counters)
    by_file = DELETE_GRANULARITY.of(target.properties) == "file"
    number = count(1)
    files: list[DataFile] = []
    try:
        for group in _groups(deleted, by_file=by_file):
            files.extend(_write_group(group, target, number))
    except BaseException:
        remove_files(store, files)
        raise
    target.counters.add(FILES_WRITTEN, len(files))
    return files


def merged_rows(deleted: Iterable[DeletedRows]) -> list[DeletedRows]:
    """One entry per data file with deleted rows, ordered by path; positions ascending and distinct.

    Raises:
        Invalid: A data file comes twice with different partitions, or a position is negative.
    """
    merged: dict[str, DeletedRows] = {}
    for rows in deleted:
        before = merged.get(rows.file_path)
        positions = rows.positions
        if before is not None:
            if _partition_of(before) != _partition_of(rows):
                raise Invalid(f"{rows.file_path} is given twice, in different partitions")
            positions = np.concatenate((before.positions, positions))
        merged[rows.file_path] = replace(rows, positions=positions)
    found = [
        replace(merged[path], positions=np.unique(merged[path].positions).astype(np.int64)) for path in sorted(merged)
    ]
    for rows in found:
        if len(rows.positions) and rows.positions[0] < 0:
            raise Invalid(f"{rows.file_path} has no row {rows.positions[0]}")
    return [rows for rows in found if len(rows.positions)]


def _partition_of(rows: DeletedRows) -> PartitionKey:
    return partition_key(rows.spec_id, rows.partition)


def _groups(deleted: Iterable[DeletedRows], *, by_file: bool) -> list[list[DeletedRows]]:
    """Groups of rows for each delete file, ordered by data file; one entry per data file."""
    ordered = merged_rows(deleted)
    if by_file:
        return [[rows] for rows in ordered]
    by_partition: dict[PartitionKey, list[DeletedRows]] = {}
    for rows in ordered:
        by_partition.setdefault(_partition_of(rows), []).append(rows)
    return list(by_partition.values())


def _write_group(group: Sequence[DeletedRows], target: WriteTarget, number: Iterator[int]) -> list[DataFile]:
    """Write the delete files of one partition, or of one data file."""
    partition = group[0].partition
    own = replace(target, spec=target.metadata.spec_by_id[group[0].spec_id])
    format = _position_format(own.store, own.properties, spec_id=own.spec.spec_id)
    writer = RollingWriter(
        format,
        partition,
        lambda: own.location(partition, next(number), format.options.file_format, suffix="-deletes"),
    )
    paths = pa.array([rows.file_path for rows in group])
    ordinals = np.repeat(np.arange(len(group), dtype=np.int32), [len(rows.positions) for rows in group])
    positions = np.concatenate([rows.positions for rows in group])
    column = pa.DictionaryArray.from_arrays(pa.array(ordinals), paths)
    batch = pa.RecordBatch.from_arrays([column, pa.array(positions)], names=["file_path", "pos"])
    return [_file_scoped(file) for file in _write_all(writer, [batch], target.store)]


def _write_all(writer: RollingWriter, batches: Iterable[pa.RecordBatch], store: Store) -> list[DataFile]:
    """Write all files of a writer, or none."""
    try:
        for batch in batches:
            writer.write(batch)
        writer.end_file()
    except BaseException:
        writer.abort()
        remove_files(store, writer.files)
        raise
    return writer.files


def copy_position_deletes(batches: Iterable[pa.RecordBatch], location: str, *, file_format: str, store: Store) -> None:
    """Write one position-delete file, with no table's properties: the same rows always become the same bytes.

    Args:
        batches: Rows of a dictionary of paths and of positions, ordered by both; at least one row.
        location: Where.
        file_format: Its format.
        store: The storage.

    Raises:
        StorageFailed: The storage refused; nothing is left.
    """
    format = _position_format(store, {DELETE_FILE_FORMAT.name: file_format}, spec_id=0)
    writer = RollingWriter(replace(format, target_size_bytes=1 << 62), (), lambda: location)
    _write_all(writer, (batch.rename_columns(["file_path", "pos"]) for batch in batches), store)


def _position_format(store: Store, properties: Mapping[str, str], *, spec_id: int) -> FileFormat:
    # Paths repeat: as a dictionary they take four bytes per row in memory. Readers see plain text.
    path, pos = to_arrow_schema(POSITION_DELETES)
    return FileFormat(
        store=store,
        arrow_schema=pa.schema([path.with_type(pa.dictionary(pa.int32(), pa.string())), pos]),
        schema=POSITION_DELETES,
        spec_id=spec_id,
        modes={DELETE_FILE_PATH_ID: FULL, DELETE_POS_ID: FULL},
        options=_delete_options(properties),
        target_size_bytes=DELETE_TARGET_FILE_SIZE_BYTES.of(properties),
        content=FileContent.POSITION_DELETES,
        key_values={"delete-type": "position"},
    )


def _delete_options(properties: Mapping[str, str]) -> WriteOptions:
    """The format of delete files and its options."""
    file_format = DELETE_FILE_FORMAT.of(properties) or DEFAULT_FILE_FORMAT.of(properties)
    return write_options(file_format, properties, for_deletes=True)


def _file_scoped(file: DataFile) -> DataFile:
    """Set the referenced data file if there is only one."""
    lower, upper = file.lower_bounds.get(DELETE_FILE_PATH_ID), file.upper_bounds.get(DELETE_FILE_PATH_ID)
    return replace(file, referenced_data_file=lower.decode()) if lower is not None and lower == upper else file


def write_equality_deletes(
    keys: pa.Table | pa.RecordBatchReader,
    *,
    columns: Sequence[str],
    metadata: TableMetadata,
    store: Store,
    spec: PartitionSpec | None = None,
    partition: Partition = (),
    names: FileNames | None = None,
    properties: Mapping[str, str] | None = None,
    counters: Counters | None = None,
) -> list[DataFile]:
    """Write equality-delete files: rows of older data files whose `columns` equal a row of `keys` are deleted.

    Args:
        keys: Rows with exactly `columns`; null equals null.
        columns: Names of the columns to compare: top-level columns of primitive types.
        metadata: The table.
        store: Its storage.
        spec: The partition spec of the deletes. By default the unpartitioned one, whose deletes are global; a
            partitioned spec limits them to `partition`.
        partition: The partition tuple, for a partitioned spec.
        names: Unique names for the files.
        properties: Override those of the table, for this write.
        counters: Count the files.

    Raises:
        Invalid: Format version 1, an unknown or nested column, or a spec that is not the table's.
        StorageFailed: The storage refused; what was written is removed as far as the storage lets.
    """
    if metadata.format_version < 2:
        raise Invalid("format version 1 takes no equality-delete files; upgrade the table to version 2")
    own_spec = spec or _unpartitioned(metadata)
    own_partition = partition or (None,) * len(own_spec.fields)
    if len(own_partition) != len(own_spec.fields):
        raise Invalid(f"the partition has {len(own_partition)} values, its spec has {len(own_spec.fields)} fields")
    fields = tuple(metadata.schema.find(name) for name in columns)
    for f in fields:
        metadata.schema.key_type(f.field_id)
        # A column of the file by itself would lack the struct that readers look for it in.
        if f not in metadata.schema.fields:
            raise Invalid(f"column {metadata.schema.name_of[f.field_id]!r} is nested; keys are top-level columns")
    key_schema = Schema(fields)
    target = WriteTarget.of(metadata, store, spec=own_spec, names=names, properties=properties, counters=counters)
    number = count(1)
    format = FileFormat(
        store=store,
        arrow_schema=to_arrow_schema(key_schema),
        schema=key_schema,
        spec_id=own_spec.spec_id,
        modes={f.field_id: FULL for f in fields},
        options=_delete_options(target.properties),
        target_size_bytes=DELETE_TARGET_FILE_SIZE_BYTES.of(target.properties),
        content=FileContent.EQUALITY_DELETES,
        equality_ids=tuple(f.field_id for f in fields),
        key_values={"delete-type": "equality", "delete-field-ids": ",".join(str(f.field_id) for f in fields)},
    )
    writer = RollingWriter(
        format,
        own_partition,
        lambda: target.location(own_partition, next(number), format.options.file_format, suffix="-deletes"),
    )
    files = _write_all(writer, table_rows(keys, key_schema), store)
    target.counters.add(FILES_WRITTEN, len(files))
    return files


def _unpartitioned(metadata: TableMetadata) -> PartitionSpec:
    for spec in metadata.partition_specs:
        if spec.has_global_deletes:
            return spec
    raise Invalid("global equality deletes need an unpartitioned spec in the table; give a spec and a partition")
