"""Tables with every kind of file, small, in memory: what a campaign of damage works on, and what reading must give."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from random import Random
from typing import Any, TypeAlias
from unittest.mock import patch

import pyarrow as pa

import icebench
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.codec.manifests.manifest_list import decode_manifest_list
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent, FileFormat
from icebench.engine.spec.manifest import ManifestContent
from icebench.engine.storage.contradictions import Verify
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.store import FileInfo, InputFile, OutputFile, Store
from icebench.errors import Contradiction
from tests.fault.foreign_files import append_foreign

Found: TypeAlias = dict[str, Any]
"""What was read, by the way in which it was read."""

WAREHOUSE = "memory://wh"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.int32()),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(7, 2)),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("ratio", pa.float64()),
        pa.field("tags", pa.list_(pa.string())),
    ]
)
RUNNER = LocalRunner(1)
"""Threads would only wait for each other at so few rows."""
FILTER = "id >= 20 and id < 90 and part = 1"
METADATA_KINDS = frozenset({"table metadata", "version hint", "manifest list", "data manifest", "delete manifest"})
_MIDNIGHT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)

OPTIONS: dict[str, tuple[dict[str, str], bool]] = {
    "v1": ({"format-version": "1", "write.manifest.compression-codec": "uncompressed",
            "write.parquet.compression-codec": "gzip", "commit.manifest-merge.enabled": "false"}, False),
    "v2": ({"format-version": "2", "write.manifest.compression-codec": "gzip",
            "write.parquet.compression-codec": "zstd"}, True),
    "v2-snappy": ({"format-version": "2", "write.manifest.compression-codec": "snappy",
                   "write.parquet.compression-codec": "uncompressed", "write.parquet.page-row-limit": "10"}, True),
    "v3": ({"format-version": "3", "write.manifest.compression-codec": "zstd",
            "write.parquet.compression-codec": "snappy"}, True),
}  # fmt: skip
"""Table -> properties, and whether rows are deleted by delete files."""
FOREIGN: dict[str, FileFormat] = {"orc": "orc", "avro": "avro"}
"""Table -> the format of its data files, which are as other engines write them."""


def rows(first: int, count: int) -> pa.Table:
    """Rows of two partitions, with nulls."""
    ids = range(first, first + count)
    columns = {
        "id": list(ids),
        "part": [i % 2 for i in ids],
        "name": [None if i % 7 == 0 else f"name-{i % 5}-é" for i in ids],
        "price": [Decimal(i * 37 - 500) / 100 for i in ids],
        "at": [_MIDNIGHT + dt.timedelta(minutes=i) for i in ids],
        "ratio": [None if i % 11 == 0 else i / 7 for i in ids],
        "tags": [[f"t{i % 4}", None] if i % 2 else [] for i in ids],
    }
    return pa.table(columns, SCHEMA)


class DamagedStore:
    """Another store, in which one file has other bytes."""

    def __init__(self, inner: Store, location: str, data: bytes) -> None:
        self._inner = inner
        self._location = location
        self._damaged = MemoryStore()
        self._damaged.write(location, data)

    @property
    def creates_atomically(self) -> bool:
        return self._inner.creates_atomically

    def _at(self, location: str) -> Store:
        return self._damaged if location == self._location else self._inner

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._at(location).read(location, offset, length)

    def size(self, location: str) -> int:
        return self._at(location).size(location)

    def exists(self, location: str) -> bool:
        return self._at(location).exists(location)

    def open_input(self, location: str) -> InputFile:
        return self._at(location).open_input(location)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        return self._inner.list(prefix)

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        raise AssertionError(f"reading wrote {location}")

    def open_output(self, location: str, *, overwrite: bool = False) -> OutputFile:
        raise AssertionError(f"reading wrote {location}")

    def delete(self, location: str) -> None:
        raise AssertionError(f"reading deleted {location}")

    def physical(self, location: str) -> str:
        return location

    def report(self, contradiction: Contradiction) -> None:
        self._inner.report(contradiction)


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """A file of a table.

    Args:
        kind: What is in it.
        table: Whose it is.
        location: Where it is.
        data: Its bytes.
        knows_length: Whether the table's metadata say how long it is.
        sealed: Byte ranges in which a checksum gives every change away.
    """

    kind: str
    table: str
    location: str
    data: bytes = field(repr=False)
    knows_length: bool = False
    sealed: tuple[range, ...] = ()


@dataclass(frozen=True)
class Zoo:
    """All tables and what reading them gives."""

    store: MemoryStore
    specimens: tuple[Specimen, ...]
    truth: dict[str, Found]

    def read_damaged(self, specimen: Specimen, data: bytes, verify: Verify = "warn") -> Found:
        """What reading gives when a file has other bytes; raises what reading raises."""
        store = DamagedStore(self.store, specimen.location, data)
        return read_table(store, specimen.table, deep=specimen.kind in METADATA_KINDS, verify=verify)


def read_table(store: Store, name: str, *, deep: bool = True, verify: Verify = "warn") -> Found:
    """Read a table from its catalog down; `deep` asks metadata tables and counts, too, which open no other files."""
    catalog = FileSystemCatalog(WAREHOUSE, store)
    identifier = ("db", name)
    table = icebench.Table(identifier, catalog.load_state(identifier), store, catalog, verify=verify)
    found: Found = {
        "rows": _counted(table.scan(runner=RUNNER).to_arrow()),
        "filtered": _counted(table.scan(filter=FILTER, columns=["id", "name"], runner=RUNNER).to_arrow()),
    }
    if not deep:
        return found
    return {
        **found,
        "count": table.scan(runner=RUNNER).count(),
        "files": table.inspect.files().num_rows,
        "entries": table.inspect.entries().num_rows,
    }


def _counted(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def make_zoo() -> Zoo:
    """Build the tables, the same to the byte each time: a case is to be known by its number."""
    store = MemoryStore()
    chance, now_ns = Random(0), count(1_700_000_000_000_000_000, 1_000_000)
    with ExitStack() as patches:
        patches.enter_context(patch("os.urandom", chance.randbytes))
        patches.enter_context(patch("secrets.randbelow", chance.randrange))
        patches.enter_context(patch("time.time_ns", lambda: next(now_ns)))
        for name, (properties, deletes) in OPTIONS.items():
            _build(store, name, properties, deletes=deletes)
        for name, file_format in FOREIGN.items():
            opened = icebench.Catalog(FileSystemCatalog(WAREHOUSE, store))
            append_foreign(opened.create_table(f"db.{name}", SCHEMA), file_format, [rows(0, 60), rows(60, 60)])
    specimens = [each for name in OPTIONS for each in _specimens(store, name)]
    specimens += [each for name in FOREIGN for each in _specimens(store, name) if each.kind.endswith("data file")]
    return Zoo(store, tuple(specimens), {name: read_table(store, name) for name in (*OPTIONS, *FOREIGN)})


def _build(store: MemoryStore, name: str, properties: dict[str, str], *, deletes: bool) -> None:
    opened = icebench.Catalog(FileSystemCatalog(WAREHOUSE, store))
    table = opened.create_table(f"db.{name}", SCHEMA, partition_spec=[("part", "identity")], properties=properties)
    table.append(rows(0, 60))
    table.append(rows(60, 60))
    if not deletes:
        table.delete("id = 33", "copy-on-write")
        return
    table.delete("id in (1, 4, 5, 40, 41, 66, 67, 68)", "merge-on-read")
    stream = table.keyed_stream(on=["id", "part"])
    stream.delete(rows(80, 3).select(["id", "part"]))
    stream.commit()


def _specimens(store: MemoryStore, name: str) -> Iterator[Specimen]:
    """The files that the current snapshot needs."""
    state = FileSystemCatalog(WAREHOUSE, store).load_state(("db", name))

    def specimen(kind: str, location: str, *, knows_length: bool, sealed: tuple[range, ...] = ()) -> Specimen:
        data = store.read(location)
        return Specimen(kind=kind, table=name, location=location, data=data, knows_length=knows_length, sealed=sealed)

    yield specimen("table metadata", state.metadata_location, knows_length=False)
    hint = f"{WAREHOUSE}/db/{name}/metadata/version-hint.text"
    yield specimen("version hint", hint, knows_length=False)
    snapshot = state.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    yield specimen("manifest list", snapshot.manifest_list, knows_length=False)
    for manifest in decode_manifest_list(store.read(snapshot.manifest_list)):
        kind = "data manifest" if manifest.content is ManifestContent.DATA else "delete manifest"
        yield specimen(kind, manifest.manifest_path, knows_length=True)
        for entry in decode_entries(store.read(manifest.manifest_path)):
            file = entry.data_file
            if file.file_format == "puffin":
                assert file.content_offset is not None
                assert file.content_size_in_bytes is not None
                blob = range(file.content_offset, file.content_offset + file.content_size_in_bytes)
                yield specimen("deletion vector", file.file_path, knows_length=True, sealed=(blob,))
            else:
                of_format = "" if file.file_format == "parquet" else f"{file.file_format} "
                yield specimen(of_format + _KINDS[file.content], file.file_path, knows_length=True)


_KINDS = {
    FileContent.DATA: "data file",
    FileContent.POSITION_DELETES: "position-delete file",
    FileContent.EQUALITY_DELETES: "equality-delete file",
}
