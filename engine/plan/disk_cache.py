"""Decoded manifests and manifest lists on disk, as Arrow IPC files that are mapped into memory.

Opening a manifest that is there costs neither a request to storage, nor inflating, nor decoding: its arrays are the
file's pages, and only those that a plan touches are read. A file has one column of one value, the bytes of all arrays
behind each other. Its metadata names the manifest and lists the arrays with their types, places and checksums; whatever
does not agree makes the file as good as absent, and it is written anew.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.codec.columns import BytesColumn, FixedColumn, ListColumn, ManifestColumns
from engine.runtime.counters import Counters
from engine.storage.directory_cache import DirectoryCache

DISK_CACHE_HITS = "disk_cache_hits"
"""Counter: manifests and lists that were opened from disk."""
DISK_CACHE_MISSES = "disk_cache_misses"
"""Counter: those that were not there, or not with all the metrics that were wanted."""
DISK_CACHE_DAMAGED = "disk_cache_damaged"
"""Counter: files that were not what they should be, and were taken for absent."""
DISK_CACHE_FAILURES = "disk_cache_failures"
"""Counter: files that could not be written, as on a full disk."""

Array = NDArray[Any]
Metrics = frozenset[int] | None
_Column = FixedColumn | BytesColumn | ListColumn

_METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
_PARTS: Mapping[type[_Column], tuple[str, ...]] = {
    FixedColumn: ("values",),
    BytesColumn: ("offsets", "data"),
    ListColumn: ("offsets", "values"),
}
_KINDS = {kind.__name__: kind for kind in _PARTS}
_FORMAT = "1 " + " ".join(f.name for f in fields(ManifestColumns))
"""Part of every name, so that no version of this code reads what another with other columns wrote."""


_ALIGNMENT = 64


class _DamagedError(Exception):
    """The bytes are not those that were written."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A file as opened: what it says of itself, and where its arrays are. None is checked before it is asked for."""

    about: Mapping[str, Any]
    index: Mapping[str, tuple[str, int, int, int]]
    data: memoryview

    def array(self, name: str) -> Array:
        dtype, start, end, checksum = self.index[name]
        own = self.data[start:end]
        if len(own) != end - start or zlib.crc32(own) != checksum:
            raise _DamagedError(name)
        return np.frombuffer(own, dtype)


class DiskCache:
    """Manifests and manifest lists in a directory. Safe among threads and processes.

    What is kept is named by location and length (a list by location and snapshot), since such files never change.
    Tables in memory are not kept: their locations mean something in one process only.

    Args:
        directory: Where.
        counters: Count hits, misses and what went wrong.
    """

    def __init__(self, directory: DirectoryCache, counters: Counters) -> None:
        self._directory = directory
        self._counters = counters
        for name in (DISK_CACHE_HITS, DISK_CACHE_MISSES, DISK_CACHE_DAMAGED, DISK_CACHE_FAILURES):
            counters.add(name, 0)

    def columns(
        self, key: tuple[str, int], metrics: Metrics, decode: Callable[[Metrics], ManifestColumns]
    ) -> ManifestColumns:
        """The columns of a manifest with at least these metrics: from disk, or else decoded and kept.

        What is decoded because some metrics are missing has those that were there as well.
        """
        location, length = key
        if _only_here(location):
            return decode(metrics)
        about = {"location": location, "length": length}
        name = _name("manifest", location, str(length))
        wanted = metrics
        stored = self._opened(name, about)
        if stored is not None:
            known = stored.about["metrics"]
            if known is None or (metrics is not None and metrics <= set(known)):
                try:
                    found = _columns_of(stored, metrics)
                    self._counters.add(DISK_CACHE_HITS)
                    return found
                except (_DamagedError, KeyError, TypeError, ValueError):
                    self._counters.add(DISK_CACHE_DAMAGED)
            elif metrics is not None:
                wanted = metrics | frozenset(known)
            else:
                wanted = None
        self._counters.add(DISK_CACHE_MISSES)
        columns = decode(wanted)
        told = None if wanted is None else sorted(wanted)
        self._keep(name, {**about, "metrics": told, "count": columns.count}, dict(_arrays_of(columns)))
        return columns

    def manifest_list(self, location: str, identity: str, read: Callable[[], bytes]) -> bytes:
        """The bytes of a manifest list.

        Args:
            location: Where it is.
            identity: What tells its snapshot from others.
            read: Reads it from storage.
        """
        if _only_here(location):
            return read()
        about = {"location": location, "identity": identity}
        name = _name("list", location, identity)
        stored = self._opened(name, about)
        if stored is not None:
            try:
                found = stored.array("list").tobytes()
                self._counters.add(DISK_CACHE_HITS)
                return found
            except (_DamagedError, KeyError, TypeError, ValueError):
                self._counters.add(DISK_CACHE_DAMAGED)
        self._counters.add(DISK_CACHE_MISSES)
        data = read()
        self._keep(name, about, {"list": np.frombuffer(data, np.uint8)})
        return data

    def _opened(self, name: str, about: Mapping[str, object]) -> _Stored | None:
        """The file of that name, if it is whole and is about what it should be."""
        data = self._directory.load(name)
        if data is None:
            return None
        try:
            stored = _decoded(data)
            if any(stored.about[key] != value for key, value in about.items()):
                raise _DamagedError(name)
        except (_DamagedError, pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            self._counters.add(DISK_CACHE_DAMAGED)
            return None
        return stored

    def _keep(self, name: str, about: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
        if not self._directory.store(name, _encoded(about, arrays)):
            self._counters.add(DISK_CACHE_FAILURES)


def _name(*parts: str) -> str:
    return hashlib.sha256("\0".join((_FORMAT, *parts)).encode()).hexdigest()


def _only_here(location: str) -> bool:
    return location.startswith("memory:")


def _encoded(about: Mapping[str, object], arrays: Mapping[str, Array]) -> pa.Buffer:
    parts: list[memoryview | bytes] = []
    index: dict[str, tuple[str, int, int, int]] = {}
    end = 0
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).view(np.uint8).reshape(-1).data
        index[name] = (array.dtype.str, end, end + len(raw), zlib.crc32(raw))
        padding = -len(raw) % _ALIGNMENT
        parts += [raw, bytes(padding)]
        end += len(raw) + padding
    text = json.dumps({"about": about, "arrays": index}).encode()
    field = pa.field("arrays", pa.large_binary(), nullable=False)
    schema = pa.schema([field], metadata={"index": text, "checksum": str(zlib.crc32(text))})
    data = [None, pa.py_buffer(np.array([0, end], np.int64)), pa.py_buffer(b"".join(parts))]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([pa.Array.from_buffers(field.type, 1, data)], schema=schema))
    return sink.getvalue()


def _decoded(data: pa.Buffer) -> _Stored:
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        metadata = reader.schema.metadata or {}
        if str(zlib.crc32(metadata[b"index"])) != metadata[b"checksum"].decode():
            raise _DamagedError("index")
        told = json.loads(metadata[b"index"])
        column = reader.get_batch(0).column(0)
        return _Stored(told["about"], told["arrays"], memoryview(column.buffers()[2]))


def _arrays_of(columns: ManifestColumns) -> Iterator[tuple[str, Array]]:
    """Every array with the name ``field/column id/kind/part``; the id is empty for a column of all manifests."""
    for field in fields(columns):
        value = getattr(columns, field.name)
        if isinstance(value, Mapping):
            for column_id, column in value.items():
                yield from _arrays_of_column(f"{field.name}/{column_id}", column)
        elif not isinstance(value, int):
            yield from _arrays_of_column(f"{field.name}/", value)


def _arrays_of_column(name: str, column: _Column) -> Iterator[tuple[str, Array]]:
    kind = type(column)
    for part in _PARTS[kind]:
        yield f"{name}/{kind.__name__}/{part}", getattr(column, part)
    if column.valid is not None:
        yield f"{name}/{kind.__name__}/valid", column.valid


def _columns_of(stored: _Stored, metrics: Metrics) -> ManifestColumns:
    """The columns of a file, of its metrics only those that are wanted."""
    parts: dict[tuple[str, str, str], dict[str, Array]] = {}
    for name in stored.index:
        field, column_id, kind, part = name.split("/")
        if metrics is None or field not in _METRICS or int(column_id) in metrics:
            parts.setdefault((field, column_id, kind), {})[part] = stored.array(name)
    found: dict[str, Any] = {f.name: {} for f in fields(ManifestColumns) if f.default_factory is dict}
    for (field, column_id, kind), arrays in parts.items():
        column = _KINDS[kind](**arrays)
        if column_id:
            found[field][int(column_id)] = column
        else:
            found[field] = column
    return ManifestColumns(count=stored.about["count"], **found)
