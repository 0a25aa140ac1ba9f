"""Manifest lists (spec: "Manifest Lists")."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, cast

import fastavro

from engine.codec.avro_schema import record_schema
from engine.codec.manifest_schema import manifest_file_type
from engine.errors import CorruptTable
from engine.spec.manifest import ManifestContent, ManifestFile, PartitionFieldSummary


def decode_manifest_list(data: bytes, *, location: str | None = None) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot, in the order of the file.

    Raises:
        CorruptTable: The bytes contradict the Avro or the Iceberg specification.
        Unsupported: An Avro codec that the Iceberg specification does not list.
    """
    try:
        rows = [cast("dict[str, Any]", row) for row in fastavro.reader(io.BytesIO(data))]
    except Exception as error:
        raise CorruptTable(f"not a manifest list: {error}", location=location) from error
    made = []
    for row in rows:
        partitions = row.get("partitions")
        made.append(
            ManifestFile(
                manifest_path=row["manifest_path"],
                manifest_length=row["manifest_length"],
                partition_spec_id=row["partition_spec_id"],
                content=ManifestContent(row.get("content") or 0),
                sequence_number=row.get("sequence_number") or 0,
                min_sequence_number=row.get("min_sequence_number") or 0,
                added_snapshot_id=row["added_snapshot_id"],
                added_files_count=row.get("added_files_count"),
                existing_files_count=row.get("existing_files_count"),
                deleted_files_count=row.get("deleted_files_count"),
                added_rows_count=row.get("added_rows_count"),
                existing_rows_count=row.get("existing_rows_count"),
                deleted_rows_count=row.get("deleted_rows_count"),
                partitions=None if partitions is None else tuple(PartitionFieldSummary(**p) for p in partitions),
                key_metadata=row.get("key_metadata"),
                first_row_id=row.get("first_row_id"),
            )
        )
    return tuple(made)


def encode_manifest_list(
    manifests: Iterable[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None = None,
    sequence_number: int = 0,
    first_row_id: int | None = None,
) -> bytes:
    """A manifest list of these manifests, in their order. Every sequence number and, in v3, every data manifest's
    first row id is assigned already.

    Raises:
        Invalid: A manifest cannot be listed in this format version.
    """
    names = [f.name for f in manifest_file_type(format_version).fields]
    summary = ("contains_null", "contains_nan", "lower_bound", "upper_bound")
    rows = []
    for manifest in manifests:
        row: dict[str, Any] = {name: getattr(manifest, name) for name in names}
        if manifest.partitions is not None:
            row["partitions"] = [{name: getattr(p, name) for name in summary} for p in manifest.partitions]
        rows.append(row)
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
    }
    if format_version > 1:
        metadata["sequence-number"] = str(sequence_number)
    if format_version > 2:
        metadata["first-row-id"] = str(first_row_id or 0)
    out = io.BytesIO()
    schema = fastavro.parse_schema(record_schema(manifest_file_type(format_version), "manifest_file"))
    fastavro.writer(out, schema, rows, codec="deflate", metadata=metadata)
    return out.getvalue()
