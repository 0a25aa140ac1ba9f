"""Describes data files that exist already, by opening them, so that they can be added to a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from icebench.engine.columnar.partitions import group_rows
from icebench.engine.commit.target import Target
from icebench.engine.deletes.files import FileRead
from icebench.engine.errors import Invalid
from icebench.engine.formats.opening import open_source
from icebench.engine.formats.readability import check_readable
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile, FileFormat
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.name_mapping import mapping_of, misplaced_id, name_mapping_text, parse_name_mapping
from icebench.engine.spec.partitioning import UNPARTITIONED, Partition, PartitionKey, partition_key
from icebench.engine.spec.properties import NAME_MAPPING
from icebench.engine.storage.resolve import absolute_location

_FORMATS: dict[str, FileFormat] = {".orc": "orc", ".avro": "avro"}


def describe_files(locations: Sequence[str], target: Target) -> tuple[list[DataFile], str | None]:
    """Descriptions of data files in Parquet, ORC (if the name ends in ``.orc``) or Avro (``.avro``).

    Files need field ids, or the names of the table's columns. The source columns of partition fields are read: all rows
    of a file must belong to one partition. What the table could not read is refused, by the types in the file. Where
    only values tell, the column is read, such as nanoseconds for a column of microseconds; pyarrow reads all timestamps
    of ORC as nanoseconds. The descriptions have no column metrics, so plans cannot skip by them.

    Args:
        locations: The files.
        target: The table.

    Returns:
        The descriptions, and the name mapping that the table needs; None if it has one, or if all files have ids.

    Raises:
        Invalid: A file has no column of the table, lacks a required one or has nulls of it according to its footer, or
            has rows of several partitions; the message names it.
        FileNotFound, CorruptTable: A file is missing, or not of its format.
        Unsupported: A column cannot be read as the table's type; the message names the file, the column and both types.
            So are moments for local times and the reverse, unless the file does not say which they are (INT96).
    """
    metadata = target.load().metadata
    text = NAME_MAPPING.of(metadata.properties)
    if text is not None and (misplaced := misplaced_id(parse_name_mapping(text), metadata.schemas)) is not None:
        raise Invalid(f"{NAME_MAPPING.name} has id {misplaced} in another place than the table's schemas: replace it")
    needed = name_mapping_text(mapping_of(metadata.schema)) if text is None else text
    places = [absolute_location(location) for location in locations]
    found = list(target.runner.map(lambda place: _describe(place, needed, metadata, target), places))
    is_needed = text is None and not all(has_ids for _, has_ids in found)
    return [file for file, _ in found], needed if is_needed else None


def _describe(location: str, mapping: str, metadata: TableMetadata, target: Target) -> tuple[DataFile, bool]:
    """A file, and whether it has field ids."""
    named = (f for end, f in _FORMATS.items() if location.lower().endswith(end))
    file_format: FileFormat = next(named, "parquet")
    names, needed_by = parse_name_mapping(mapping), "the files to be added"
    size_bytes = target.store.size(location)
    with open_source(
        target.store, location, file_format=file_format, name_mapping=names, needed_by=needed_by, size_bytes=size_bytes
    ) as source:
        columns = [f for f in metadata.schema.fields if source.columns.place_of(f.field_id, f.name) is not None]
        if not columns:
            raise Invalid(f"{location} has no column of the table; those are {', '.join(metadata.schema.id_of)}")
        check_readable(source, metadata.schema)
        rows = sum(group.num_rows for group in source.row_groups)
        has_ids = bool(getattr(source, "has_field_ids", False))
    file = FileRead(file_path=location, record_count=rows, file_format=file_format, file_size_in_bytes=size_bytes)
    request = ReadRequest(
        store=target.store,
        projection=metadata.schema.select([f.field_id for f in columns]),
        schemas=(metadata.schema,),
        specs={0: UNPARTITIONED},
        name_mapping=names,
        needed_by=needed_by,
    )
    described = DataFile(
        file_path=location,
        file_format=file_format,
        spec_id=metadata.spec.spec_id,
        record_count=rows,
        file_size_in_bytes=size_bytes,
        partition=_partition(file, request, metadata, target),
    )
    return described, has_ids


def _partition(file: FileRead, request: ReadRequest, metadata: TableMetadata, target: Target) -> Partition:
    """The partition of all rows of a file."""
    sources = {field_id for field in metadata.spec.fields for field_id in field.source_ids}
    if not sources:
        return ()
    own = replace(request, projection=metadata.schema.select(sources))
    found: dict[PartitionKey, Partition] = {}
    for batch in read_files([file], own, runner=LocalRunner(1), counters=target.counters):
        for partition in group_rows(batch, metadata.spec, metadata.schema).partitions:
            found.setdefault(partition_key(metadata.spec.spec_id, partition), partition)
        if len(found) > 1:
            such = " and ".join(map(str, found.values()))
            raise Invalid(f"{file.file_path} has rows of several partitions, such as {such}")
    if not found:
        raise Invalid(f"{file.file_path} has no rows, so its partition is unknown")
    return next(iter(found.values()))
