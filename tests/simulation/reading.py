"""What a table's files say, read without the engine: metadata by `json`, manifests by fastavro, data by pyarrow.

An oracle for what the engine wrote and read. Files never change, so what was decoded once is kept by its bytes.
"""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tests.simulation.world import Violation

Json = Any
Files = Mapping[str, tuple[bytes, int]]

_ROW_ID, _UPDATED = 2147483540, 2147483539
_PATH, _POS = 2147483546, 2147483545


class Row(NamedTuple):
    """A live row: its id and the number of its last update (version 3), its partition, and its values by field id."""

    row_id: int | None
    updated: int | None
    partition: tuple[object, ...]
    values: frozenset[tuple[int, object]]


class _DataFile(NamedTuple):
    path: str
    sequence_number: int
    partition: tuple[object, ...]
    first_row_id: int | None
    entry: Json


@lru_cache(2_000)
def decoded_metadata(data: bytes) -> Json:
    """A metadata file."""
    return json.loads(data)


@lru_cache(2_000)
def _avro(data: bytes) -> tuple[Json, ...]:
    return tuple(fastavro.reader(io.BytesIO(data)))


@lru_cache(2_000)
def _columns(data: bytes) -> tuple[tuple[int, tuple[object, ...]], ...]:
    """A Parquet file's columns: field id and values."""
    table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
    ids = [int((field.metadata or {})[b"PARQUET:field_id"]) for field in table.schema]
    return tuple((i, tuple(map(_plain, column.to_pylist()))) for i, column in zip(ids, table.columns, strict=True))


@lru_cache(2_000)
def _vector(data: bytes) -> frozenset[int]:
    return frozenset(BitMap64.deserialize(data[8:-4]))


def _plain(value: object) -> object:
    """NaN equals itself here."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@dataclass(eq=False)
class Reader:
    """Reads tables in a world's files."""

    files: Files
    _rows: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    _reach: dict[str, frozenset[str]] = field(default_factory=dict)

    def metadata(self, location: str) -> Json:
        """A metadata file."""
        return decoded_metadata(self.data(location))

    def rows(self, snapshot: Json) -> tuple[Row, ...]:
        """The live rows of a snapshot."""
        location = snapshot["manifest-list"]
        if location not in self._rows:
            self._rows[location] = tuple(self._live_rows(snapshot))
        return self._rows[location]

    def reach(self, snapshot: Json) -> frozenset[str]:
        """Every file that a snapshot needs."""
        location = snapshot["manifest-list"]
        if location not in self._reach:
            found = {location}
            for manifest in _avro(self.data(location)):
                found.add(manifest["manifest_path"])
                found.update(e["data_file"]["file_path"] for e in self._entries(manifest) if e["status"] != 2)
            self._reach[location] = frozenset(found)
        return self._reach[location]

    def distinct(self, snapshot: Json, field_id: int) -> int:
        """How many values other than null a column has."""
        return len({dict(row.values).get(field_id) for row in self.rows(snapshot)} - {None})

    def partition_counts(self, location: str) -> dict[tuple[int, frozenset[object]], Counter[str]]:
        """The counts of files and rows in a partition statistics file, by `partition_of`; without those of nothing."""
        table = pq.ParquetFile(pa.BufferReader(self.data(location))).read(use_threads=False)
        counted = {}
        for row in table.to_pylist():
            key = (row["spec_id"], frozenset(map(_plain, row["partition"].values())) - {None})
            assert key not in counted, f"{location} has {key} twice"
            counted[key] = Counter(
                {n: v for n, v in row.items() if n.endswith("_count") and v and not n.startswith("t")}
            )
        return {key: counts for key, counts in counted.items() if counts}

    @staticmethod
    def partition_of(manifest: Json, file: Json) -> tuple[int, frozenset[object]]:
        """The spec and the values other than null of a file's partition."""
        return manifest["partition_spec_id"], frozenset(map(_plain, file["partition"].values())) - {None}

    def entries(self, snapshot: Json) -> Iterator[tuple[Json, Json]]:
        """Each manifest of a snapshot with each of its live entries."""
        for manifest in _avro(self.data(snapshot["manifest-list"])):
            for entry in self._entries(manifest):
                if entry["status"] != 2:
                    yield manifest, entry

    def data(self, location: str) -> bytes:
        """A file's content."""
        found = self.files.get(location)
        if found is None:
            raise Violation("missing file", location)
        return found[0]

    def _entries(self, manifest: Json) -> tuple[Json, ...]:
        return _avro(self.data(manifest["manifest_path"]))

    def _live_rows(self, snapshot: Json) -> Iterator[Row]:
        data, deletes = self._content(snapshot)
        positions: dict[str, list[tuple[int, frozenset[int]]]] = {}
        keys: list[tuple[int, tuple[object, ...], tuple[int, ...], frozenset[tuple[object, ...]]]] = []
        for number, partition, content in deletes:
            if content["content"] == 2:
                ids = tuple(content["equality_ids"])
                columns = dict(_columns(self.data(content["file_path"])))
                keys.append((number, partition, ids, frozenset(zip(*(columns[i] for i in ids), strict=True))))
            elif content["file_format"].lower() == "puffin":
                start, length = content["content_offset"], content["content_size_in_bytes"]
                at = _vector(self.data(content["file_path"])[start : start + length])
                positions.setdefault(content["referenced_data_file"], []).append((number, at))
            else:
                columns = dict(_columns(self.data(content["file_path"])))
                for path, position in zip(columns[_PATH], columns[_POS], strict=True):
                    assert isinstance(path, str)
                    assert isinstance(position, int)
                    positions.setdefault(path, []).append((number, frozenset([position])))
        for file in data:
            gone = {p for number, at in positions.get(file.path, ()) if number >= file.sequence_number for p in at}
            columns = dict(_columns(self.data(file.path)))
            own = [i for i in columns if i not in (_ROW_ID, _UPDATED)]
            mine = [
                (wanted, found)
                for number, partition, wanted, found in keys
                if number > file.sequence_number and (len(partition) == 1 or partition == file.partition)
            ]
            for position in range(file.entry["record_count"]):
                values = {i: columns[i][position] for i in own}
                if position in gone or any(tuple(values.get(i) for i in w) in found for w, found in mine):
                    continue
                yield Row(
                    _known(columns.get(_ROW_ID), position, file.first_row_id, position),
                    _known(
                        columns.get(_UPDATED), position, None if file.first_row_id is None else file.sequence_number
                    ),
                    file.partition,
                    frozenset((i, value) for i, value in values.items() if value is not None),
                )

    def _content(self, snapshot: Json) -> tuple[list[_DataFile], list[tuple[int, tuple[object, ...], Json]]]:
        data, deletes = [], []
        for manifest in _avro(self.data(snapshot["manifest-list"])):
            next_row_id = manifest.get("first_row_id")
            for entry in self._entries(manifest):
                if entry["status"] == 2:
                    continue
                file = entry["data_file"]
                number = entry.get("sequence_number")
                if number is None:
                    number = manifest.get("sequence_number") or 0
                partition = (manifest["partition_spec_id"], *map(_plain, file["partition"].values()))
                if manifest.get("content"):
                    deletes.append((number, partition, file))
                    continue
                first = file.get("first_row_id")
                if first is None and next_row_id is not None:
                    first, next_row_id = next_row_id, next_row_id + file["record_count"]
                data.append(_DataFile(file["file_path"], number, partition, first, file))
        return data, deletes


def _known(column: tuple[object, ...] | None, position: int, inherited: int | None, offset: int = 0) -> int | None:
    own = None if column is None else column[position]
    assert own is None or isinstance(own, int)
    return own if own is not None else None if inherited is None else inherited + offset


def plain_rows(rows: list[tuple[int, int, float | None]]) -> pa.Table:
    """Rows of k, v, p."""
    k, v, p = zip(*rows, strict=True)
    return pa.table({"k": pa.array(k, pa.int64()), "v": pa.array(v, pa.int64()), "p": pa.array(p, pa.float64())})
