"""Looks up secondary indexes for a plan: finds data files that hold none of the values that a filter requires.

An index is a blob of a statistics file (`icebench.engine.file_indexes.blob`), and a table property says of which:
engines that check the types of blobs, such as PyIceberg, load no table whose metadata lists one of another type. It
identifies data files by path and size. Data files never change, so an entry is valid in every snapshot that has the
file; files without an entry are kept. An index serves ``=`` and ``in`` on its column, provided that values are hashed
as they were when it was built.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import Int64Array, data_of, offsets_of
from icebench.engine.errors import Contradiction, CorruptTable, FileNotFound, Invalid, StorageFailed, Unsupported
from icebench.engine.expressions.bound import BoundCompare, BoundIn, BoundLeaf
from icebench.engine.expressions.bounds import PreparedLeaf
from icebench.engine.expressions.literal_intervals import FALSE, NULL, TRUE, Outcomes
from icebench.engine.file_indexes.blob import FILE_INDEX, FileIndex, Hashes, decode_index
from icebench.engine.lazy_module import LazyModule
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import INDEX_OF_COLUMN, NAME_MAPPING
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.statistics import StatisticsFile
from icebench.engine.spec.values import Value
from icebench.engine.storage.store import Store

if TYPE_CHECKING:
    from icebench.engine.codec.puffin import file as puffin
    from icebench.engine.file_indexes import value_hashes
else:  # most tables have no index, and the hashes bring Arrow's Parquet and compute libraries
    puffin = LazyModule("icebench.engine.codec.puffin.file")
    value_hashes = LazyModule("icebench.engine.file_indexes.value_hashes")

INDEXES_UNUSABLE = "indexes_unusable"
"""Counter: indexes that are named in the metadata but missing or damaged; the plan ignores them."""


@dataclass(frozen=True)
class LoadedIndex:
    """A loaded index, with its files sorted by the hashes of their paths."""

    index: FileIndex
    hashes: Hashes
    order: Int64Array

    @property
    def size_bytes(self) -> int:
        """Memory held by the arrays."""
        return self.index.size_bytes + self.hashes.nbytes + self.order.nbytes

    @classmethod
    def of(cls, index: FileIndex) -> LoadedIndex:
        """Prepare an index for look-ups."""
        hashes = value_hashes.bytes_hashes(offsets_of(index.paths), data_of(index.paths))
        order = np.argsort(hashes, kind="stable")
        return cls(index, hashes[order], order)

    def files(self, paths: pa.Array, sizes: Int64Array) -> Int64Array:
        """The number of each file in the index, -1 for one that is not in it. Paths are compared, not just hashes."""
        if not self.index.count:
            return np.full(len(sizes), -1, np.int64)
        ends, data = offsets_of(paths), data_of(paths)
        wanted = value_hashes.bytes_hashes(ends, data)
        place = np.minimum(np.searchsorted(self.hashes, wanted), self.index.count - 1)
        found = self.order[place]
        own_ends, own_data = offsets_of(self.index.paths), data_of(self.index.paths)
        lengths = np.diff(ends)
        same = (self.index.sizes[found] == sizes) & (np.diff(own_ends)[found] == lengths)
        chosen = np.flatnonzero(same)
        owner = np.repeat(chosen, lengths[chosen])
        within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths[chosen]) - lengths[chosen], lengths[chosen])
        differs = own_data[own_ends[found[owner]] + within] != data[ends[owner] + within]
        same[owner[differs]] = False
        return np.where(same, found, -1)


@dataclass(frozen=True, kw_only=True)
class Hashing:
    """How the values of a column were, or would be, hashed.

    Args:
        family: Of types whose equal values have equal hashes.
        names: A digest of the table's name mapping, by which columns of files without field ids are found.
    """

    family: str
    names: str

    def as_properties(self) -> dict[str, str]:
        """The properties of the blob: the table property, which can be set back, may be of a former one."""
        return {"hashed-as": self.family, "name-mapping": self.names}

    @classmethod
    def now(cls, metadata: TableMetadata, schema: Schema, field_id: int) -> Hashing | None:
        """How a scan of this schema hashes a column; None for a column that cannot have an index."""
        family = value_hashes.hash_family(schema.by_id[field_id].type)
        if family is None:
            return None
        names = NAME_MAPPING.of(metadata.properties) or ""
        return cls(family=family, names=str(zlib.crc32(names.encode())))


def listed_index(field_id: int, snapshot_id: int, kind: str, hashing: Hashing) -> dict[str, str]:
    """The table property that names the index of a column."""
    return {f"{INDEX_OF_COLUMN.prefix}{field_id}": f"{snapshot_id} {kind} {hashing.names} {hashing.family}"}


def index_of(
    metadata: TableMetadata, schema: Schema, field_id: int, kind: str | None = None
) -> tuple[StatisticsFile, Hashing] | None:
    """The statistics file with the index of a column, if it is of this kind, and valid for the schema and the table as
    they are; and how its values are hashed."""
    listed = INDEX_OF_COLUMN.of(metadata.properties, str(field_id))
    if listed is None:
        return None
    snapshot_id, own_kind, names, family = listed
    hashing = Hashing(family=family, names=names)
    file = next((file for file in metadata.statistics if file.snapshot_id == snapshot_id), None)
    if file is None or kind not in (None, own_kind) or Hashing.now(metadata, schema, field_id) != hashing:
        return None
    return file, hashing


def load_index(file: StatisticsFile, field_id: int, hashing: Hashing, store: Store) -> FileIndex:
    """Load the index of a column, of values that were hashed in this way, from a statistics file.

    Raises:
        FileNotFound: The statistics file is gone.
        CorruptTable: It does not hold what the metadata says, or is damaged.
    """
    location, size = file.statistics_path, file.file_size_in_bytes
    footer_bytes = file.file_footer_size_in_bytes
    tail = store.read(location, size - footer_bytes, footer_bytes)
    footer = puffin.read_footer(tail, location=location, file_size=size)
    for blob in footer.blobs:
        if (blob.type, blob.fields, blob.properties) == (FILE_INDEX, (field_id,), hashing.as_properties()):
            data = puffin.decode_blob(store.read(location, blob.offset, blob.length), blob, location=location)
            return decode_index(data, location=location)
    raise CorruptTable(f"no index of column {field_id}, which the metadata says is there", location=location)


class IndexCache(Protocol):
    """Keeps loaded indexes from one plan to the next."""

    def other(self, location: str, identity: str, load: Callable[[], LoadedIndex], /) -> object:
        """The index made of an immutable file, loaded by `load` unless it is kept."""


class FileIndexes:
    """The indexes that serve a filter, each loaded at its first use. Thread-safe.

    Args:
        metadata: The table.
        schema: What the filter is bound to.
        tests: The leaves of the filter.
        store: The table's storage.
        cache: Keeps loaded indexes.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        schema: Schema,
        tests: Sequence[PreparedLeaf],
        store: Store,
        cache: IndexCache | None,
    ) -> None:
        self._store = store
        self._cache = cache
        self._lock = Lock()
        self._loaded: dict[int, LoadedIndex | None] = {}
        self._tests: list[tuple[int, int, Hashes]] = []
        self._files: dict[int, tuple[StatisticsFile, Hashing]] = {}
        for place, test in enumerate(tests if metadata.statistics else ()):
            field_id, values = test.leaf.column.field_id, _sought(test.leaf)
            try:
                found = index_of(metadata, schema, field_id) if values else None
            except Invalid as error:  # another writer set the property; a plan is correct without an index
                store.report(Contradiction("file index", metadata.location, str(error)))
                continue
            if found is not None:
                self._tests.append((place, field_id, value_hashes.literal_hashes(test.leaf.column.primitive, values)))
                self._files[field_id] = found

    @property
    def is_empty(self) -> bool:
        """Whether no leaf has an index."""
        return not self._tests

    def restrict(
        self, outcomes: Sequence[Outcomes], paths: pa.Array, sizes: Int64Array, counters: Counters
    ) -> list[Outcomes]:
        """Remove TRUE from the outcomes of each leaf for files that hold none of its values. Loads indexes."""
        found = list(outcomes)
        for place, field_id, hashes in self._tests:
            loaded = self._index(field_id, counters)
            if loaded is not None:
                files = loaded.files(paths, sizes)
                held = np.append(loaded.index.may_hold(hashes), True)  # -1: not in the index
                found[place] = found[place] & np.where(held[files], TRUE | FALSE | NULL, FALSE | NULL).astype(np.uint8)
        return found

    def _index(self, field_id: int, counters: Counters) -> LoadedIndex | None:
        with self._lock:
            if field_id not in self._loaded:
                self._loaded[field_id] = self._load(field_id, counters)
            return self._loaded[field_id]

    def _load(self, field_id: int, counters: Counters) -> LoadedIndex | None:
        file, hashing = self._files[field_id]

        def load() -> LoadedIndex:
            return LoadedIndex.of(load_index(file, field_id, hashing, self._store))

        try:
            if self._cache is None:
                return load()
            kept = self._cache.other(file.statistics_path, f"{file.file_size_in_bytes} {field_id} {hashing}", load)
            assert isinstance(kept, LoadedIndex)
            return kept
        except (FileNotFound, StorageFailed, CorruptTable, Unsupported):
            # Statistics are not part of the table's state: a plan is correct without them (spec: "Table Statistics").
            counters.add(INDEXES_UNUSABLE)
            return None


def _sought(leaf: BoundLeaf) -> tuple[Value, ...]:
    """The values of which a matching row must have one; empty if the leaf is of another form."""
    match leaf:
        case BoundCompare(_, "=", value):
            return (value,)
        case BoundIn(_, values, False):
            return values
    return ()
