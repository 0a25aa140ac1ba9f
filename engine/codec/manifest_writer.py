"""Writes manifests (spec: "Manifests")."""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import fastavro

from engine.codec.avro_schema import decimal_width, record_schema
from engine.codec.manifest_schema import V1_BLOCK_SIZE, entry_type
from engine.codec.partitioning_json import partition_fields_to_json
from engine.codec.schema_json import encode_schema
from engine.errors import Invalid
from engine.spec.data_file import DataFile
from engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile, PartitionFieldSummary
from engine.spec.partitioning import PartitionSpec
from engine.spec.schema import Schema
from engine.spec.types import DecimalType, PrimitiveType
from engine.spec.values import Value, encode_value, unscaled

Compression: TypeAlias = Literal["gzip", "zstd", "snappy", "uncompressed"]
"""Values of the table property ``write.avro.compression-codec``."""

_CODECS: dict[Compression, str] = {
    "gzip": "deflate", "zstd": "zstandard", "snappy": "snappy", "uncompressed": "null",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedManifest:
    """A manifest's bytes and what its manifest-list entry says of them.

    `min_sequence_number` is the least data sequence number of the live entries, None when every live entry inherits it.
    """

    data: bytes
    spec_id: int
    content: ManifestContent
    snapshot_id: int
    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int
    min_sequence_number: int | None
    partitions: tuple[PartitionFieldSummary, ...]

    def manifest_file(
        self, path: str, *, sequence_number: int, first_row_id: int | None = None, key_metadata: bytes | None = None
    ) -> ManifestFile:
        """The manifest-list entry once the manifest is at `path` and its snapshot has this sequence number."""
        inherited = self.min_sequence_number is None
        return ManifestFile(
            manifest_path=path,
            manifest_length=len(self.data),
            partition_spec_id=self.spec_id,
            content=self.content,
            sequence_number=sequence_number,
            min_sequence_number=sequence_number if inherited else min(self.min_sequence_number or 0, sequence_number),
            added_snapshot_id=self.snapshot_id,
            added_files_count=self.added_files_count,
            existing_files_count=self.existing_files_count,
            deleted_files_count=self.deleted_files_count,
            added_rows_count=self.added_rows_count,
            existing_rows_count=self.existing_rows_count,
            deleted_rows_count=self.deleted_rows_count,
            partitions=self.partitions,
            key_metadata=key_metadata,
            first_row_id=first_row_id,
        )


def encode_manifest(
    entries: Iterable[ManifestEntry],
    *,
    schema: Schema,
    spec: PartitionSpec,
    format_version: int,
    content: ManifestContent,
    snapshot_id: int,
    compression: Compression = "gzip",
) -> EncodedManifest:
    """A manifest of these entries, in their order.

    Args:
        entries: All of partition spec `spec` and of the kind that `content` says. In v1 every snapshot id is set.
        schema: The table schema; gives the partition types and goes into the header.
        spec: The partition spec of every entry.
        format_version: 1, 2 or 3.
        content: Data files or delete files; v1 has no delete manifests.
        snapshot_id: The snapshot that adds the manifest.
        compression: Of the Avro blocks.

    Raises:
        Invalid: An entry cannot be written in this format version, or its partition does not fit the spec.
    """
    types = [f.type for f in spec.partition_type(schema).fields]
    rows = []
    counts: dict[EntryStatus, list[int]] = {status: [0, 0] for status in EntryStatus}
    sequence_numbers = []
    partitions: list[tuple[Value | None, ...]] = []
    for entry in entries:
        if len(entry.data_file.partition) != len(types):
            raise Invalid(f"the partition of {entry.data_file.file_path} does not fit spec {spec.spec_id}")
        counts[entry.status][0] += 1
        counts[entry.status][1] += entry.data_file.record_count
        if entry.status != EntryStatus.DELETED and entry.sequence_number is not None:
            sequence_numbers.append(entry.sequence_number)
        partitions.append(entry.data_file.partition)
        rows.append(_row(entry, spec, types))
    avro = record_schema(entry_type(spec.partition_type(schema), format_version), "manifest_entry")
    metadata = {
        "schema": encode_schema(schema).decode(),
        "schema-id": str(schema.schema_id),
        "partition-spec": json.dumps(partition_fields_to_json(spec)),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
    }
    if format_version > 1:
        metadata["content"] = "deletes" if content is ManifestContent.DELETES else "data"
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(avro), rows, codec=_CODECS[compression], metadata=metadata)
    return EncodedManifest(
        data=out.getvalue(),
        spec_id=spec.spec_id,
        content=content,
        snapshot_id=snapshot_id,
        added_files_count=counts[EntryStatus.ADDED][0],
        existing_files_count=counts[EntryStatus.EXISTING][0],
        deleted_files_count=counts[EntryStatus.DELETED][0],
        added_rows_count=counts[EntryStatus.ADDED][1],
        existing_rows_count=counts[EntryStatus.EXISTING][1],
        deleted_rows_count=counts[EntryStatus.DELETED][1],
        min_sequence_number=min(sequence_numbers, default=None),
        partitions=tuple(
            _summary(t, [p[i] for p in partitions]) for i, t in enumerate(types) if isinstance(t, PrimitiveType)
        ),
    )


def _summary(type_: PrimitiveType, values: list[Value | None]) -> PartitionFieldSummary:
    floating = type_.name in ("float", "double")
    present = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]

    def key(value: Value) -> Any:  # noqa: ANN401
        return (value, math.copysign(1, value)) if isinstance(value, float) else value

    return PartitionFieldSummary(
        contains_null=None in values,
        contains_nan=any(isinstance(v, float) and math.isnan(v) for v in values) if floating else False,
        lower_bound=encode_value(type_, min(present, key=key)) if present else None,
        upper_bound=encode_value(type_, max(present, key=key)) if present else None,
    )


def _row(entry: ManifestEntry, spec: PartitionSpec, types: list[Any]) -> dict[str, Any]:
    f: DataFile = entry.data_file

    def pairs(values: Any) -> Any:  # noqa: ANN401
        return [{"key": k, "value": v} for k, v in values.items()] if values else None

    def wire(type_: Any, value: Any) -> Any:  # noqa: ANN401
        if value is None:
            return None
        if isinstance(type_, DecimalType):
            return unscaled(value, type_.scale).to_bytes(decimal_width(type_.precision), "big", signed=True)
        if type_.name == "uuid":
            return value.bytes
        if type_.name == "float":
            return struct.unpack("<f", struct.pack("<f", value))[0]
        return value

    names = [field["name"] for field in record_schema_names(spec)]
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": {
            "content": int(f.content),
            "file_path": f.file_path,
            "file_format": f.file_format.upper(),
            "partition": {n: wire(t, v) for n, t, v in zip(names, types, f.partition, strict=True)},
            "record_count": f.record_count,
            "file_size_in_bytes": f.file_size_in_bytes,
            "block_size_in_bytes": V1_BLOCK_SIZE,
            "column_sizes": pairs(f.column_sizes),
            "value_counts": pairs(f.value_counts),
            "null_value_counts": pairs(f.null_value_counts),
            "nan_value_counts": pairs(f.nan_value_counts),
            "lower_bounds": pairs(f.lower_bounds),
            "upper_bounds": pairs(f.upper_bounds),
            "key_metadata": f.key_metadata,
            "split_offsets": None if f.split_offsets is None else list(f.split_offsets),
            "equality_ids": None if f.equality_ids is None else list(f.equality_ids),
            "sort_order_id": f.sort_order_id,
            "first_row_id": f.first_row_id,
            "referenced_data_file": f.referenced_data_file,
            "content_offset": f.content_offset,
            "content_size_in_bytes": f.content_size_in_bytes,
        },
    }


def record_schema_names(spec: PartitionSpec) -> list[dict[str, str]]:
    from engine.codec.avro_schema import avro_name

    return [{"name": avro_name(f.name)} for f in spec.fields]
