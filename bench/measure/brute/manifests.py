"""Manifests read record by record, with fastavro."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro

from bench.measure.brute.metadata import TableJson, read_bytes

DELETED = 2
"""The status of a manifest entry whose file is gone."""

DATA = 0
"""The content of a manifest, and of a file, that holds rows."""


@dataclass(frozen=True)
class FileEntry:
    """A live file of the current snapshot. `path` is spelled as in the manifest; bounds by column id, serialised."""

    content: int
    path: str
    format: str
    records: int
    size_bytes: int
    partition: Mapping[str, Any]
    spec_id: int
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)


def live_files(table: TableJson) -> list[FileEntry]:
    """Every live data and delete file of the current snapshot, in the manifests' order."""
    return [_file(entry, spec_id) for spec_id, entry in _entries(table) if entry["status"] != DELETED]


def manifest_list(table: TableJson) -> list[dict[str, Any]]:
    """The records of the current snapshot's manifest list; a v1 snapshot's embedded manifests are given likewise."""
    snapshot = table.snapshot
    if snapshot is None:
        return []
    if "manifest-list" not in snapshot:
        return [{"manifest_path": path, "partition_spec_id": 0, "content": DATA} for path in snapshot["manifests"]]
    return read_avro(snapshot["manifest-list"])


def read_avro(location: str) -> list[dict[str, Any]]:
    """All records of an Avro file."""
    return [_record(value) for value in fastavro.reader(io.BytesIO(read_bytes(location)))]


def _record(value: object) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value


def _entries(table: TableJson) -> Iterator[tuple[int, dict[str, Any]]]:
    for manifest in manifest_list(table):
        for entry in read_avro(manifest["manifest_path"]):
            yield manifest["partition_spec_id"], entry


def _file(entry: Mapping[str, Any], spec_id: int) -> FileEntry:
    values = entry["data_file"]
    return FileEntry(
        content=values.get("content", DATA),
        path=values["file_path"],
        format=values["file_format"].lower(),
        records=values["record_count"],
        size_bytes=values["file_size_in_bytes"],
        partition=values["partition"],
        spec_id=spec_id,
        lower_bounds=_by_id(values.get("lower_bounds")),
        upper_bounds=_by_id(values.get("upper_bounds")),
    )


def _by_id(pairs: Any) -> dict[int, bytes]:  # noqa: ANN401 - an Avro map with whole-number keys, or null
    return {pair["key"]: pair["value"] for pair in pairs or ()}
