"""Copies of a table's metadata, changed so that every engine can read what none has an option for.

`without_deletes` is the current snapshot with its delete manifests left out: the same data files, nothing to apply.
`relocated` is the current snapshot of a table that was copied to another place without rewriting its metadata, as every
engine then finds it: metadata, manifests and position deletes with the new paths. Data files are never copied nor
changed.
"""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from icebench.bench.errors import DatasetFailed
from icebench.bench.truth.manifests import DATA, DELETED, POSITION_DELETES
from icebench.bench.truth.metadata import Read, TableJson

FILE_PATH_ID = 2147483546
"""The reserved id of the column `file_path` of position deletes."""

_BLOCK_BYTES = 64_000  # as Iceberg Java writes

Move = Callable[[str], str]


def without_deletes(table: TableJson, folder: Path, *, new_id: Callable[[], uuid.UUID] = uuid.uuid4) -> str:
    """Write a metadata file of the current snapshot without its deletes.

    Args:
        table: The table; it has a snapshot with a manifest list.
        folder: An existing directory for the new files.
        new_id: Makes names.

    Returns:
        The metadata file's location.
    """
    target = _Target(folder, new_id, table.read)
    snapshot = _snapshot(table)
    avro = _Avro(table.read(snapshot["manifest-list"]))
    kept = [record for record in avro.records if record.get("content", DATA) == DATA]
    listed = avro.write(target.path("snap-{}.avro"), kept)
    summary = {
        name: "0" if name in ("total-delete-files", "total-position-deletes", "total-equality-deletes") else value
        for name, value in snapshot.get("summary", {}).items()
    }
    return _write_metadata(table, target, {**snapshot, "manifest-list": listed, "summary": summary})


def relocated(table: TableJson, folder: Path, move: Move, *, new_id: Callable[[], uuid.UUID] = uuid.uuid4) -> str:
    """Write the current snapshot's metadata anew with other paths.

    Args:
        table: The table, whose own location may be its new one already.
        folder: An existing directory for the new files.
        move: The location of a file, by its location in the metadata.
        new_id: Makes names.

    Returns:
        The metadata file's location.

    Raises:
        DatasetFailed: A file is not where it should be, a position-delete file is not Parquet, or the footer of a
            Puffin file is compressed.
    """
    target = _Target(folder, new_id, table.read)
    snapshot = _snapshot(table)
    avro = _Avro(table.read(move(snapshot["manifest-list"])))
    records = []
    for record in avro.records:
        path, length = _relocate_manifest(move(record["manifest_path"]), target, move)
        records.append({**record, "manifest_path": path, "manifest_length": length})
    listed = avro.write(target.path("snap-{}.avro"), records)
    location = move(table.values["location"])
    return _write_metadata(table, target, {**snapshot, "manifest-list": listed}, location=location)


def _snapshot(table: TableJson) -> Mapping[str, Any]:
    snapshot = table.snapshot
    if snapshot is None or "manifest-list" not in snapshot:
        raise DatasetFailed(f"{table.location} has no snapshot with a manifest list")
    return snapshot


@dataclass(frozen=True)
class _Target:
    """Where copies go, and what reads their originals."""

    folder: Path
    new_id: Callable[[], uuid.UUID]
    read: Read

    def path(self, pattern: str) -> Path:
        return self.folder / pattern.format(self.new_id())


class _Avro:
    """An Avro file in memory, to be written again with other records: same schema, same key-value metadata."""

    def __init__(self, data: bytes) -> None:
        reader = fastavro.reader(io.BytesIO(data))
        self.records: list[dict[str, Any]] = [record for record in reader if isinstance(record, dict)]
        self._schema: Any = reader.writer_schema
        self._codec = reader.codec
        self._metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}

    def write(self, path: Path, records: Iterable[Mapping[str, Any]]) -> str:
        with path.open("wb") as file:
            fastavro.writer(
                file,
                self._schema,
                records,
                codec=self._codec,
                sync_interval=_BLOCK_BYTES,
                metadata=self._metadata,
            )
        return str(path)


def _relocate_manifest(location: str, target: _Target, move: Move) -> tuple[str, int]:
    avro = _Avro(target.read(location))
    entries = [
        {**entry, "data_file": _relocate_file(entry["data_file"], target, move)}
        for entry in avro.records
        if entry["status"] != DELETED
    ]
    path = target.path("{}-m0.avro")
    return avro.write(path, entries), path.stat().st_size


def _relocate_file(file: Mapping[str, Any], target: _Target, move: Move) -> dict[str, Any]:
    moved = {**file, "file_path": move(file["file_path"])}
    if file.get("referenced_data_file"):
        moved["referenced_data_file"] = move(file["referenced_data_file"])
    if file["file_format"].lower() == "puffin":
        return {**moved, **_relocate_vectors(moved["file_path"], target, move)}
    if file.get("content", DATA) != POSITION_DELETES:
        return moved
    for bounds in ("lower_bounds", "upper_bounds"):
        moved[bounds] = [
            {"key": b["key"], "value": move(b["value"].decode()).encode() if b["key"] == FILE_PATH_ID else b["value"]}
            for b in file.get(bounds) or ()
        ]
    return {**moved, **_relocate_positions(moved["file_path"], file["file_format"], target, move)}


def _relocate_positions(location: str, kind: str, target: _Target, move: Move) -> dict[str, Any]:
    """Position deletes name their data files in a column, so the file itself has to be written again."""
    if kind.lower() != "parquet":
        raise DatasetFailed(f"{location}: only position deletes in Parquet can be relocated, not in {kind}")
    rows = pq.read_table(io.BytesIO(target.read(location)))
    index = rows.schema.get_field_index("file_path")
    paths = pa.array([move(path) for path in rows.column(index).to_pylist()], rows.schema.field(index).type)
    path = target.path("{}-deletes.parquet")
    pq.write_table(rows.set_column(index, rows.schema.field(index), paths), path)
    return {"file_path": str(path), "file_size_in_bytes": path.stat().st_size}


def _relocate_vectors(location: str, target: _Target, move: Move) -> dict[str, Any]:
    """Deletion vectors name their data files in the footer of their Puffin file; its blobs stay where they are."""
    # Several entries share a file: its copy has a name that they all find.
    path = target.folder / f"{hashlib.sha256(location.encode()).hexdigest()[:32]}.puffin"
    if not path.exists():
        data = target.read(location)
        size = int.from_bytes(data[-12:-8], "little")
        start = len(data) - 12 - size
        if data[-8] & 1:
            raise DatasetFailed(f"{location}: a Puffin file with a compressed footer cannot be relocated")
        footer = json.loads(data[start:-12])
        for blob in footer["blobs"]:
            properties = blob.get("properties", {})
            if "referenced-data-file" in properties:
                properties["referenced-data-file"] = move(properties["referenced-data-file"])
        payload = json.dumps(footer, separators=(",", ":")).encode()
        path.write_bytes(data[:start] + payload + len(payload).to_bytes(4, "little") + data[-8:])
    return {"file_path": str(path), "file_size_in_bytes": path.stat().st_size}


def _write_metadata(
    table: TableJson, target: _Target, snapshot: Mapping[str, Any], *, location: str | None = None
) -> str:
    """A metadata file with this one snapshot, and nothing that would point at other files."""
    values = {
        **table.values,
        "location": location or table.values["location"],
        "snapshots": [{k: v for k, v in snapshot.items() if k != "parent-snapshot-id"}],
        "snapshot-log": [],
        "metadata-log": [],
        "statistics": [],
        "partition-statistics": [],
        "refs": {"main": {"snapshot-id": snapshot["snapshot-id"], "type": "branch"}},
    }
    path = target.path("00000-{}.metadata.json")
    path.write_text(json.dumps(values), encoding="utf-8")
    return str(path)
