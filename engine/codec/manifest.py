# mypy: ignore-errors
"""Manifests: columns for planning, entries for rewriting and inspection (spec: "Manifests")."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import fastavro
import numpy as np

from engine.codec.columns import BytesColumn, FixedColumn, ListColumn, ManifestColumns, PartitionColumn
from engine.codec.json_object import JsonObject, parse_json
from engine.codec.manifest_writer import EncodedManifest, encode_manifest
from engine.codec.partitioning_json import partition_fields_from_json
from engine.codec.schema_json import schema_from_json
from engine.errors import CorruptTable
from engine.spec.data_file import DataFile, FileContent, FileFormat
from engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from engine.spec.partitioning import PartitionSpec
from engine.spec.schema import Schema

__all__ = [
    "EncodedManifest",
    "ManifestHeader",
    "decode_columns",
    "decode_entries",
    "decode_header",
    "encode_manifest",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestHeader:
    """The key-value metadata of a manifest. `schema` is the table schema at the time of writing."""

    schema: Schema
    spec: PartitionSpec
    format_version: int
    content: ManifestContent


def decode_header(data: bytes, *, location: str | None = None) -> ManifestHeader:
    """The header of a manifest; only the first bytes of the file are needed.

    Raises:
        CorruptTable: The bytes are not an Avro file, or a required key is missing or malformed.
    """
    try:
        metadata = fastavro.reader(io.BytesIO(data)).metadata
    except Exception as error:
        raise CorruptTable(f"not an Avro file: {error}", location=location) from error
    schema = schema_from_json(json.loads(metadata["schema"]), path="schema", location=location)
    fields = parse_json(metadata["partition-spec"].encode(), location=location)
    nodes = JsonObject({"partition-spec": fields}, location=location).children("partition-spec")
    spec = PartitionSpec(partition_fields_from_json(nodes), int(metadata.get("partition-spec-id", "0")))
    content = ManifestContent.DELETES if metadata.get("content") == "deletes" else ManifestContent.DATA
    return ManifestHeader(
        schema=schema, spec=spec, format_version=int(metadata.get("format-version", "1")), content=content
    )


def _rows(data: bytes, location: str | None) -> list[dict[str, Any]]:
    try:
        return [cast("dict[str, Any]", row) for row in fastavro.reader(io.BytesIO(data))]
    except Exception as error:
        raise CorruptTable(f"not a manifest: {error}", location=location) from error


def decode_columns(
    data: bytes,
    *,
    location: str | None = None,
    metrics: Collection[int] | None = (),
    map: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]] = map,  # noqa: A002 - as the built-in
) -> ManifestColumns:
    """The entries of a manifest as columns.

    Args:
        data: The whole file.
        location: For messages.
        metrics: The column ids whose counts, sizes and bounds are wanted; None means all that occur.
        map: Runs independent parts, such as a thread pool's `map`; results are in order.

    Raises:
        CorruptTable: The bytes contradict the Avro or the Iceberg specification.
        Unsupported: An Avro codec that the Iceberg specification does not list.
    """
    rows = _rows(data, location)
    files = [row["data_file"] for row in rows]
    spec = decode_header(data, location=location).spec

    def fixed(values: list[Any]) -> FixedColumn:
        valid = np.array([v is not None for v in values], dtype=bool)
        return FixedColumn(np.array([0 if v is None else v for v in values], np.int64), None if valid.all() else valid)

    def binary(values: list[Any]) -> BytesColumn:
        valid = np.array([v is not None for v in values], dtype=bool)
        raw = [v.encode() if isinstance(v, str) else (v or b"") for v in values]
        offsets = np.zeros(len(raw) + 1, np.int64)
        np.cumsum([len(r) for r in raw], out=offsets[1:])
        return BytesColumn(offsets, np.frombuffer(b"".join(raw), np.uint8), None if valid.all() else valid)

    def lists(values: list[Any]) -> ListColumn:
        valid = np.array([v is not None for v in values], dtype=bool)
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(v or ()) for v in values], out=offsets[1:])
        flat = np.array([x for v in values for x in (v or ())], np.int64)
        return ListColumn(offsets, flat, None if valid.all() else valid)

    def metric(name: str, make: Callable[[list[Any]], Any]) -> dict[int, Any]:
        maps = [{pair["key"]: pair["value"] for pair in f.get(name) or ()} for f in files]
        present = {i for m in maps for i in m}
        return {
            i: make([m.get(i) for m in maps]) for i in sorted(present if metrics is None else present & set(metrics))
        }

    def partition(index: int) -> PartitionColumn:
        values = [list(f["partition"].values())[index] for f in files]
        some = next((v for v in values if v is not None), 0)
        if isinstance(some, (str, bytes)):
            return binary(values)
        if isinstance(some, uuid.UUID):
            return binary([v and v.bytes for v in values])
        if isinstance(some, float):
            column = fixed([0 if v is None else 1 for v in values])
            return FixedColumn(np.array([v or 0.0 for v in values]), column.valid)
        return fixed(
            [getattr(v, "toordinal", lambda v=v: v + 719163)() - 719163 if v is not None else v for v in values]
        )

    return ManifestColumns(
        count=len(rows),
        **{n: fixed([r.get(n) for r in rows]) for n in ("status", "snapshot_id", "sequence_number", "file_sequence_number")},
        content=fixed([f.get("content") or 0 for f in files]),
        **{n: binary([f.get(n) for f in files]) for n in ("file_path", "file_format", "referenced_data_file", "key_metadata")},
        **{
            n: fixed([f.get(n) for f in files])
            for n in (
                "record_count", "file_size_in_bytes", "sort_order_id", "first_row_id", "content_offset",
                "content_size_in_bytes",
            )
        },
        **{n: lists([f.get(n) for f in files]) for n in ("split_offsets", "equality_ids")},
        partition={f.field_id: partition(i) for i, f in enumerate(spec.fields)},
        **{n: metric(n, fixed) for n in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")},
        **{n: metric(n, binary) for n in ("lower_bounds", "upper_bounds")},
    )  # fmt: skip


def decode_entries(data: bytes, *, location: str | None = None) -> list[ManifestEntry]:
    """The entries of a manifest with everything in them, for rewriting and inspection; errors as `decode_columns`.

    Partition tuples are in the order of the manifest's own partition spec.
    """
    spec_id = decode_header(data, location=location).spec.spec_id

    def pairs(value: Iterable[Mapping[str, Any]] | None) -> dict[int, Any]:
        return {pair["key"]: pair["value"] for pair in value or ()}

    made = []
    for row in _rows(data, location):
        f = row["data_file"]
        data_file = DataFile(
            content=FileContent(f.get("content") or 0),
            file_path=f["file_path"],
            file_format=cast("FileFormat", f["file_format"].lower()),
            spec_id=spec_id,
            partition=tuple(v.toordinal() - 719163 if hasattr(v, "toordinal") else v for v in f["partition"].values()),
            record_count=f["record_count"],
            file_size_in_bytes=f["file_size_in_bytes"],
            **{
                n: pairs(f.get(n))
                for n in (
                    "column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds",
                    "upper_bounds",
                )
            },
            **{n: None if f.get(n) is None else tuple(f[n]) for n in ("split_offsets", "equality_ids")},
            **{
                n: f.get(n)
                for n in (
                    "key_metadata", "sort_order_id", "first_row_id", "referenced_data_file", "content_offset",
                    "content_size_in_bytes",
                )
            },
        )  # fmt: skip
        made.append(
            ManifestEntry(
                status=EntryStatus(row["status"]),
                snapshot_id=row.get("snapshot_id"),
                sequence_number=row.get("sequence_number"),
                file_sequence_number=row.get("file_sequence_number"),
                data_file=data_file,
            )
        )
    return made
