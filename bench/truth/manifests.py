"""Manifests read record by record, with fastavro."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro

from icebench.bench.truth.metadata import Read, TableJson, read_bytes

DELETED = 2
"""The status of a manifest entry whose file is gone."""

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
"""The content of a file; manifests have 0 for rows and 1 for deletes of either kind."""


@dataclass(frozen=True)
class FileEntry:
    """A live file of the current snapshot. `path` is spelled as in the manifest; bounds by column id, serialised.

    `sequence_number` is the data sequence number. `referenced`, `offset` and `length` are those of a deletion vector.
    """

    content: int
    path: str
    format: str
    records: int
    size_bytes: int
    partition: Mapping[str, Any]
    spec_id: int
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    sequence_number: int = 0
    equality_ids: tuple[int, ...] = ()
    referenced: str | None = None
    offset: int | None = None
    length: int | None = None


def live_files(table: TableJson) -> list[FileEntry]:
    """Every live data and delete file of the current snapshot, in the manifests' order."""
    return [_file(entry, manifest) for manifest, entry in _entries(table) if entry["status"] != DELETED]


def manifest_list(table: TableJson) -> list[dict[str, Any]]:
    """The records of the current snapshot's manifest list; a v1 snapshot's embedded manifests are given likewise."""
    snapshot = table.snapshot
    if snapshot is None:
        return []
    if "manifest-list" not in snapshot:
        return [{"manifest_path": path, "partition_spec_id": 0, "content": DATA} for path in snapshot["manifests"]]
    return read_avro(snapshot["manifest-list"], table.read)


def leftover_manifests(table: TableJson) -> list[str]:
    """Paths of the manifests that the current snapshot lists and that have no live file. The specification has a
    snapshot list the entries of the files that it deletes; the next snapshot leaves such a manifest out."""
    return [
        manifest["manifest_path"]
        for manifest in manifest_list(table)
        if all(entry["status"] == DELETED for entry in read_avro(manifest["manifest_path"], table.read))
    ]


def read_avro(location: str, read: Read = read_bytes) -> list[dict[str, Any]]:
    """All records of an Avro file."""
    return [_record(value) for value in fastavro.reader(io.BytesIO(read(location)))]


def _record(value: object) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value


def _entries(table: TableJson) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for manifest in manifest_list(table):
        for entry in read_avro(manifest["manifest_path"], table.read):
            yield manifest, entry


def _file(entry: Mapping[str, Any], manifest: Mapping[str, Any]) -> FileEntry:
    values = entry["data_file"]
    sequence_number = entry.get("sequence_number")
    return FileEntry(
        content=values.get("content", DATA),
        path=values["file_path"],
        format=values["file_format"].lower(),
        records=values["record_count"],
        size_bytes=values["file_size_in_bytes"],
        partition=values["partition"],
        spec_id=manifest["partition_spec_id"],
        lower_bounds=_by_id(values.get("lower_bounds")),
        upper_bounds=_by_id(values.get("upper_bounds")),
        # An entry without one inherits its manifest's; those of format version 1 have none, which is 0.
        sequence_number=manifest.get("sequence_number", 0) if sequence_number is None else sequence_number,
        equality_ids=tuple(values.get("equality_ids") or ()),
        referenced=values.get("referenced_data_file"),
        offset=values.get("content_offset"),
        length=values.get("content_size_in_bytes"),
    )


def _by_id(pairs: Any) -> dict[int, bytes]:  # noqa: ANN401 - an Avro map with whole-number keys, or null
    return {pair["key"]: pair["value"] for pair in pairs or ()}
