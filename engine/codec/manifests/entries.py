"""Manifest entries as objects, from decoded columns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

import pyarrow as pa

from icebench.engine.codec.array_views import offsets_of, valid_of
from icebench.engine.codec.manifests.decoded_entries import MAPS, ManifestReader
from icebench.engine.codec.manifests.partition_columns import partition_values
from icebench.engine.errors import Unsupported
from icebench.engine.spec.data_file import NO_METRICS, DataFile, FileContent, FileFormat
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.values import Value

_FORMATS = frozenset({"parquet", "avro", "orc", "puffin"})
_STATUSES = tuple(EntryStatus)
_CONTENTS = tuple(FileContent)


def entries_of(reader: ManifestReader, spec: PartitionSpec) -> list[ManifestEntry]:
    """The entries of a manifest that was decoded with all pairs of its metric maps.

    Raises:
        CorruptTable: A partition value is not one of its type.
        Unsupported: A file format that Iceberg does not use.
    """
    files = _data_files(reader, spec)
    numbers = (reader.number(name).to_pylist() for name in ("snapshot_id", "sequence_number", "file_sequence_number"))
    statuses = reader.code("status", EntryStatus).to_pylist()
    return [
        ManifestEntry(
            status=_STATUSES[status],
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            file_sequence_number=file_sequence_number,
            data_file=data_file,
        )
        for status, snapshot_id, sequence_number, file_sequence_number, data_file in zip(
            statuses, *numbers, files, strict=True
        )
    ]


def _data_files(reader: ManifestReader, spec: PartitionSpec) -> list[DataFile]:
    count = reader.count
    columns: dict[str, list[Any]] = {
        name: reader.number(name).to_pylist()
        for name in (
            "record_count",
            "file_size_in_bytes",
            "sort_order_id",
            "first_row_id",
            "content_offset",
            "content_size_in_bytes",
        )
    }
    columns["content"] = [_CONTENTS[code] for code in reader.code("content", FileContent).to_pylist()]
    columns["file_path"] = _texts(reader.text("file_path"))
    columns["referenced_data_file"] = _texts(reader.text("referenced_data_file"))
    columns["file_format"] = [file_format(name) for name in _texts(reader.text("file_format"))]
    columns["key_metadata"] = reader.text("key_metadata").to_pylist()
    for name in ("split_offsets", "equality_ids"):
        columns[name] = [None if value is None else tuple(value) for value in reader.list(name).to_pylist()]
    for name in MAPS:
        columns[name] = _maps(reader, name)
    columns["partition"] = _partitions(reader, spec)
    names = list(columns)
    rows = zip(*columns.values(), strict=True) if count else ()
    return [DataFile(spec_id=spec.spec_id, **dict(zip(names, row, strict=True))) for row in rows]


def _texts(column: pa.Array) -> list[str | None]:
    return [None if value is None else value.decode("utf-8") for value in column.to_pylist()]


def file_format(name: str | None) -> FileFormat:
    """The format of that name in any case; raises Unsupported where Iceberg uses none of that name."""
    lowered = (name or "").lower()
    if lowered not in _FORMATS:
        raise Unsupported(f"the file format {name!r}")
    return cast("FileFormat", lowered)


def _maps(reader: ManifestReader, name: str) -> list[Mapping[int, Any]]:
    pairs = reader.pairs(name, MAPS[name])
    if pairs is None:
        return [NO_METRICS] * reader.count
    lists, key_column, value_column = pairs
    ends, keys, values = offsets_of(lists).tolist(), key_column.to_pylist(), value_column.to_pylist()
    made: list[Mapping[int, Any]] = [dict(zip(keys[a:b], values[a:b], strict=True)) for a, b in pairwise(ends)]
    if value_column.null_count:
        made = [{key: value for key, value in one.items() if value is not None} for one in made]
    valid = valid_of(lists)
    return made if valid is None else [one if own else NO_METRICS for one, own in zip(made, valid, strict=True)]


def _partitions(reader: ManifestReader, spec: PartitionSpec) -> list[tuple[Value | None, ...]]:
    found = reader.partition()
    columns = [
        [None] * reader.count if column is None else partition_values(reader, f, column)
        for f, column in ((f, found.get(f.field_id)) for f in spec.fields)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * reader.count
