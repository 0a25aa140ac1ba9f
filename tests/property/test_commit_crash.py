"""Every storage request of a change fails in turn: the table holds the old rows or all of the new ones, whole.

A failure is replayed by its three parameters: request number, moment, and whether everything after it fails too.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.catalog.catalog import Catalog
from engine.catalog.filesystem import FileSystemCatalog
from engine.catalog.sql import SqlCatalog
from engine.codec.manifest import decode_entries
from engine.codec.metadata_json import decode_metadata
from engine.columnar.schemas import from_arrow_schema
from engine.commit.manifests import load_manifests
from engine.commit.retry import Waiting
from engine.errors import CommitStateUnknown, EngineError
from engine.operations.append import append
from engine.operations.delete import delete
from engine.operations.row_changes import Mode
from engine.operations.target import Target
from engine.plan.scan import table_scan
from engine.read.plans import read_plan
from engine.spec.creation import new_table_metadata
from engine.spec.partitioning import partition_spec
from engine.spec.transforms import Identity
from engine.storage.faulty import Fault, FaultyStore, Moment
from engine.storage.local import LocalStore
from engine.storage.memory import MemoryStore
from engine.storage.store import Store
from engine.write.data_files import write_data_files

NAME = ("db", "t")
ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.int32())])
OLD = pa.table({"id": range(6), "day": [0, 0, 1, 1, 2, 2]}, schema=ROWS)
NEW = pa.table({"id": range(100, 104), "day": [0, 1, 2, 3]}, schema=ROWS)
QUICK = Waiting(sleep=lambda _: None, random=lambda: 0.5)
MAX_REQUESTS = 100


@dataclass
class Warehouse:
    """One table, and catalogs on it over any store."""

    store: Store
    root: str
    open: Callable[[Store], Catalog]

    def append(self, rows: pa.Table, store: Store) -> None:
        catalog = self.open(store)
        try:
            target = Target(committer=catalog, identifier=NAME, store=store, waiting=QUICK)
            append(target, lambda metadata: write_data_files(rows, metadata=metadata, store=store))
        finally:
            catalog.close()

    def delete(self, mode: Mode, store: Store) -> None:
        catalog = self.open(store)
        try:
            target = Target(committer=catalog, identifier=NAME, store=store, waiting=QUICK)
            delete(target, lambda metadata: table_scan(metadata, store, filter="id >= 2 and id < 5"), mode=mode)
        finally:
            catalog.close()

    def live_ids(self) -> list[int]:
        """The ids of the rows that are not deleted."""
        catalog = self.open(self.store)
        metadata = catalog.load_state(NAME).metadata
        catalog.close()
        plan = table_scan(metadata, self.store, columns=["id"]).plan()
        return sorted(read_plan(plan, self.store).read_all()["id"].to_pylist())

    def create(self) -> None:
        catalog = self.open(self.store)
        schema = from_arrow_schema(ROWS)
        metadata = new_table_metadata(
            schema,
            partition_spec(schema, [("day", Identity())]),
            location=catalog.default_location(NAME),
            uuid=uuid.uuid4(),
            now_ms=1_000,
        )
        catalog.create_table(NAME, metadata)
        catalog.close()

    def ids(self) -> list[int]:
        """All ids in the table, read from the catalog down without any help of the writer."""
        catalog = self.open(self.store)
        state = catalog.load_state(NAME)
        catalog.close()
        stored = self.store.read(state.metadata_location)
        assert decode_metadata(stored, location=state.metadata_location) == state.metadata
        found: list[int] = []
        for snapshot in state.metadata.snapshots:
            found = []
            for manifest in load_manifests(snapshot, self.store):
                data = self.store.read(manifest.manifest_path)
                assert len(data) == manifest.manifest_length
                for entry in decode_entries(data, location=manifest.manifest_path):
                    file = entry.data_file
                    assert self.store.size(file.file_path) == file.file_size_in_bytes
                    with pq.ParquetFile(self.store.open_input(file.file_path)) as parquet:
                        ids = parquet.read()["id"].to_pylist()
                    assert len(ids) == file.record_count
                    found += ids
        return sorted(found)

    def referenced(self) -> set[str]:
        """Every file that some snapshot of the table needs."""
        catalog = self.open(self.store)
        state = catalog.load_state(NAME)
        catalog.close()
        found = {state.metadata_location, *(entry.metadata_file for entry in state.metadata.metadata_log)}
        for snapshot in state.metadata.snapshots:
            found.add(snapshot.manifest_list or "")
            for manifest in load_manifests(snapshot, self.store):
                found.add(manifest.manifest_path)
                found |= {e.data_file.file_path for e in decode_entries(self.store.read(manifest.manifest_path))}
        return found

    def stored(self) -> set[str]:
        """Every file of the table but the hint, which nothing depends on."""
        listed = {info.location for info in self.store.list(self.root)}
        return {location for location in listed if not location.endswith("version-hint.text")}


_DATABASES = count()


def sql(root: Path) -> Warehouse:
    # The database file is small and durable; the table's files are in memory, where a thousand crashes are quick.
    url = f"sqlite:///{root}/catalog-{next(_DATABASES)}.db"
    return Warehouse(
        MemoryStore(),
        "memory://wh",
        lambda store: SqlCatalog(url, warehouse="memory://wh", store_at=lambda _: store),
    )


def directory(root: Path) -> Warehouse:
    return Warehouse(MemoryStore(), "memory://wh", lambda store: FileSystemCatalog("memory://wh", store))


def local_directory(root: Path) -> Warehouse:
    place = f"{root}/wh-{next(_DATABASES)}"
    return Warehouse(LocalStore(durable=False), place, lambda store: FileSystemCatalog(place, store))


def crashes(moment: Moment, *, forever: bool) -> Iterator[Fault]:
    for at in range(MAX_REQUESTS):
        yield Fault(at, moment, forever)


@pytest.mark.parametrize("forever", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", [sql, directory, local_directory])
def test_an_append_is_whole_or_not_at_all(
    tmp_path: Path, kind: Callable[[Path], Warehouse], moment: Moment, *, forever: bool
) -> None:
    old, both = OLD["id"].to_pylist(), sorted([*OLD["id"].to_pylist(), *NEW["id"].to_pylist()])
    seen = set()
    for fault in crashes(moment, forever=forever):
        warehouse = kind(tmp_path)
        warehouse.create()
        warehouse.append(OLD, warehouse.store)
        faulty = FaultyStore(warehouse.store, fault)
        outcome = "acknowledged"
        try:
            warehouse.append(NEW, faulty)
        except CommitStateUnknown:
            outcome = "unknown"
        except EngineError:
            outcome = "failed"
        where = f"{fault} {faulty.requests[fault.at : fault.at + 1]}: {outcome}"
        found = warehouse.ids()
        expected = {"acknowledged": [both], "failed": [old], "unknown": [old, both]}[outcome]
        assert found in expected, where
        assert warehouse.referenced() <= warehouse.stored(), where
        # The table is not stuck: the same rows can still be appended.
        warehouse.append(NEW, warehouse.store)
        assert warehouse.ids() == sorted([*found, *NEW["id"].to_pylist()]), where
        seen.add(outcome)
        if len(faulty.requests) <= fault.at:
            # The append was over before the fault.
            assert outcome == "acknowledged"
            break
    else:
        pytest.fail(f"more than {MAX_REQUESTS} requests in one append")
    assert {"acknowledged", "failed"} <= seen


@pytest.mark.parametrize("forever", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_delete_is_whole_or_not_at_all(tmp_path: Path, mode: Mode, moment: Moment, *, forever: bool) -> None:
    old, left = [0, 1, 2, 3, 4, 5], [0, 1, 5]
    for fault in crashes(moment, forever=forever):
        warehouse = directory(tmp_path)
        warehouse.create()
        warehouse.append(OLD, warehouse.store)
        faulty = FaultyStore(warehouse.store, fault)
        outcome = "acknowledged"
        try:
            warehouse.delete(mode, faulty)
        except CommitStateUnknown:
            outcome = "unknown"
        except EngineError:
            outcome = "failed"
        where = f"{fault} {faulty.requests[fault.at : fault.at + 1]}: {outcome}"
        expected = {"acknowledged": [left], "failed": [old], "unknown": [old, left]}[outcome]
        assert warehouse.live_ids() in expected, where
        assert warehouse.referenced() <= warehouse.stored(), where
        warehouse.delete(mode, warehouse.store)
        assert warehouse.live_ids() == left, where
        if len(faulty.requests) <= fault.at:
            assert outcome == "acknowledged"
            break
    else:
        pytest.fail(f"more than {MAX_REQUESTS} requests in one delete")


@pytest.mark.parametrize("kind", [sql, directory])
def test_a_single_failed_request_leaves_no_garbage(tmp_path: Path, kind: Callable[[Path], Warehouse]) -> None:
    for fault in crashes("before", forever=False):
        warehouse = kind(tmp_path)
        warehouse.create()
        faulty = FaultyStore(warehouse.store, fault)
        try:
            warehouse.append(NEW, faulty)
        except CommitStateUnknown:
            continue
        except EngineError:
            pass
        request = faulty.requests[fault.at : fault.at + 1]
        if not any(name.startswith("delete ") for name in request):
            assert warehouse.stored() == warehouse.referenced(), f"{fault} {request}"
        if len(faulty.requests) <= fault.at:
            break
