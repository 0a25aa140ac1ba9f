"""Each request of every kind of change fails once, to storage and to the catalog's database: before it is carried
out, or after, when only its answer is lost; once, or with all that follow, as after a crash. Or it is carried out
twice, as by a proxy that sends it again. The table is as before the change or as after it, whole; what was acknowledged
is there, what failed is not, and the next writer is not stuck.

A failure is replayed by its parameters: the change, the kind of catalog, and the fault that the message names.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import pyarrow as pa
import pytest
from sqlalchemy import Connection

import icebench
from icebench.engine.catalog.catalog import Catalog
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.catalog.sql import SqlCatalog
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.spec.types import LONG
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.store import Store
from icebench.errors import CommitStateUnknown, EngineError
from tests.fault.campaign import Figures, sizes
from tests.services.faulty_store import Fault, FaultyStore, Moment

NAME = ("db", "t")
ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.int32()), pa.field("n", pa.int64())])
PROPERTIES = {
    "format-version": "2",
    # Each append merges what the ones before it left.
    "commit.manifest.min-count-to-merge": "2",
    "commit.retry.num-retries": "3",
    "commit.retry.min-wait-ms": "0",
    "commit.retry.max-wait-ms": "0",
    "commit.status-check.min-wait-ms": "0",
    "commit.status-check.max-wait-ms": "0",
}
MAX_REQUESTS = 150
MOMENTS: tuple[Moment, ...] = ("before", "after")


def rows(first: int, count: int, n: int = 0) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": ids, "day": [i % 3 for i in ids], "n": [n] * count}, schema=ROWS)


def stream(table: icebench.Table) -> None:
    changes = table.keyed_stream(on=["id", "day"])
    changes.delete(rows(1, 2).select(["id", "day"]))
    changes.insert(rows(100, 2))
    changes.commit()


def transaction(table: icebench.Table) -> None:
    with table.transaction() as changes:
        changes.append(rows(100, 4))
        changes.delete("id = 2", "merge-on-read")
        changes.set_properties({"owner": "somebody"})


CHANGES: dict[str, Callable[[icebench.Table], object]] = {
    "append": lambda table: table.append(rows(100, 4)),
    "delete-merge-on-read": lambda table: table.delete("id >= 2 and id < 5", "merge-on-read"),
    "delete-copy-on-write": lambda table: table.delete("id >= 2 and id < 5", "copy-on-write"),
    "delete-whole-files": lambda table: table.delete("day = 1", "copy-on-write"),
    "update-merge-on-read": lambda table: table.update("id >= 2 and id < 5", {"n": 7}, "merge-on-read"),
    "update-copy-on-write": lambda table: table.update("id >= 2 and id < 5", {"n": 7}, "copy-on-write"),
    "upsert": lambda table: table.upsert(rows(4, 6, n=7), ["id"], "merge-on-read"),
    "overwrite": lambda table: table.overwrite(rows(100, 3), "id < 4"),
    "overwrite-partitions": lambda table: table.overwrite_partitions(rows(99, 1)),
    "stream": stream,
    "batch": lambda table: table.append_batch(rows(100, 4), stream_id="s", batch_id=1),
    "transaction": transaction,
    "add-column": lambda table: table.update_schema(lambda schema: schema.add_column("extra", LONG)),
    "set-properties": lambda table: table.set_properties({"owner": "somebody"}),
    "create-branch": lambda table: table.create_branch("b"),
    "rewrite-data-files": lambda table: table.maintenance.rewrite_data_files(min_input_files=2),
    "rewrite-sorted": lambda table: table.maintenance.rewrite_data_files(
        "sort", sort_order=["n", "id"], rewrite_all=True, sort_memory_bytes=10
    ),
    "expire-snapshots": lambda table: table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z"),
    "rollback": lambda table: table.rollback(snapshot_id=table.snapshots[0].snapshot_id),
}


@dataclass
class Warehouse:
    """One table, and catalogs on it over any store.

    Args:
        store: Where the table is.
        open: A catalog on the table, through another store.
        reset: Brings everything back to where it was when it was called first.
    """

    store: Store
    open: Callable[[Store], Catalog]
    reset: Callable[[], None]

    @contextmanager
    def table(self, store: Store | None = None) -> Iterator[icebench.Table]:
        """The table, opened anew."""
        used = self.store if store is None else store
        catalog = self.open(used)
        try:
            yield icebench.Table(NAME, catalog.load_state(NAME), used, catalog)
        finally:
            catalog.close()

    def create(self) -> None:
        catalog = self.open(self.store)
        icebench.Catalog(catalog).create_table(
            ".".join(NAME), ROWS, partition_spec=[("day", "identity")], properties=PROPERTIES
        )
        catalog.close()
        with self.table() as table:
            table.append(rows(0, 6))
            table.append(rows(6, 3))

    def state(self) -> dict[str, Any]:
        """What of the table the changes change, read without their help."""
        with self.table() as table:
            stored = self.store.read(table.metadata_location)
            assert decode_metadata(stored, location=table.metadata_location) == table.metadata
            found = table.scan().to_arrow()
            return {
                "rows": sorted(map(repr, found.to_pylist())),
                "names": found.schema.names,
                # A batch is kept with the id of its snapshot.
                "properties": {k: "" if k.startswith("icebench.stream-") else v for k, v in table.properties.items()},
                "refs": sorted(table.refs),
                "operations": [snapshot.operation for snapshot in table.snapshots],
            }

    def referenced(self) -> set[str]:
        """Every file that some snapshot of the table needs."""
        with self.table() as table:
            metadata = table.metadata
            found = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
        for snapshot in metadata.snapshots:
            found.add(snapshot.manifest_list or "")
            for manifest in load_manifests(snapshot, self.store):
                found.add(manifest.manifest_path)
                found |= {e.data_file.file_path for e in decode_entries(self.store.read(manifest.manifest_path))}
        return found

    def stored(self) -> set[str]:
        """Every file of the table but the hint, which nothing depends on."""
        with self.table() as table:
            listed = {info.location for info in self.store.list(table.location)}
        return {location for location in listed if not location.endswith("version-hint.text")}


def in_memory(open_catalog: Callable[[Store], Catalog], also: Callable[[], None] = lambda: None) -> Warehouse:
    store = MemoryStore()
    kept: list[dict[str, tuple[bytes, int]]] = []

    def reset() -> None:
        if not kept:
            kept.append(dict(store._files))
        store._files = dict(kept[0])
        also()

    return Warehouse(store, open_catalog, reset)


def sql(root: Path) -> Warehouse:
    # The database is a file; the table's files are in memory, where a thousand crashes are quick.
    database, backup = root / "catalog.db", root / "backup.db"

    def reset() -> None:
        if not backup.exists():
            shutil.copy(database, backup)
        shutil.copy(backup, database)

    url = f"sqlite:///{database}"
    return in_memory(lambda store: SqlCatalog(url, warehouse="memory://wh", store_at=lambda _: store), reset)


def directory(root: Path) -> Warehouse:
    return in_memory(lambda store: FileSystemCatalog("memory://wh", store))


def local_directory(root: Path) -> Warehouse:
    place, backup = root / "wh", root / "backup"

    def reset() -> None:
        if not backup.exists():
            shutil.copytree(place, backup)
        shutil.rmtree(place)
        shutil.copytree(backup, place)

    return Warehouse(LocalStore(durable=False), lambda store: FileSystemCatalog(str(place), store), reset)


KINDS = [sql, directory, local_directory]


@contextmanager
def database_of(faulty: FaultyStore) -> Iterator[None]:
    """The database's commits are requests that fail as those to storage do."""
    # Where SQLAlchemy does not notice, as it does where the driver raises.
    commit = Connection._commit_impl

    def failing(connection: Connection) -> None:
        faulty.run("commit", "the database", lambda: commit(connection))

    with patch.object(Connection, "_commit_impl", failing):
        yield


def attempt(warehouse: Warehouse, change: Callable[[icebench.Table], object], faulty: FaultyStore) -> str:
    """Make a change while requests fail; what the writer gets back."""
    try:
        with database_of(faulty), warehouse.table(faulty) as table:
            change(table)
    except CommitStateUnknown:
        return "unknown"
    except EngineError:
        return "failed"
    return "acknowledged"


def faults(name: str, stride: int) -> Iterator[Fault]:
    """One fault after the other, without end; every `stride`-th of all five kinds."""
    kinds: list[tuple[Moment, bool]] = [(moment, forever) for moment in MOMENTS for forever in (False, True)]
    for at in range(MAX_REQUESTS):
        for place, (moment, forever) in enumerate([*kinds, ("twice", False)]):
            if (crc32(name.encode()) + at * 5 + place) % stride == 0:
                yield Fault(at, moment, forever)


@dataclass(frozen=True)
class CarriedOut:
    """A change of a new table without a fault: the states before and after it, and its requests."""

    warehouse: Warehouse
    old: dict[str, Any]
    new: dict[str, Any]
    requests: list[str]


Kind = Callable[[Path], Warehouse]
CarryOut = Callable[[Kind, str], CarriedOut]


@pytest.fixture(scope="module")
def carry_out(tmp_path_factory: pytest.TempPathFactory) -> CarryOut:
    """Carries out a change once for all tests; all changes share one warehouse of each kind."""

    @cache
    def warehouse_of(kind: Kind) -> Warehouse:
        warehouse = kind(tmp_path_factory.mktemp("warehouse"))
        warehouse.create()
        return warehouse

    @cache
    def carried_out(kind: Kind, name: str) -> CarriedOut:
        warehouse = warehouse_of(kind)
        warehouse.reset()
        old = warehouse.state()
        counting = FaultyStore(warehouse.store)
        assert attempt(warehouse, CHANGES[name], counting) == "acknowledged"
        new = warehouse.state()
        assert new != old
        return CarriedOut(warehouse, old, new, counting.requests)

    return carried_out


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
@sizes(61, 1)
def test_a_change_is_whole_or_not_at_all(
    carry_out: CarryOut, kind: Kind, name: str, figures: Figures, size: int
) -> None:
    change, undisturbed = CHANGES[name], carry_out(kind, name)
    warehouse, old, new = undisturbed.warehouse, undisturbed.old, undisturbed.new
    requests = len(undisturbed.requests)
    assert requests < MAX_REQUESTS
    outcomes: dict[str, int] = {}
    for fault in faults(name + kind.__name__, stride=size):
        if fault.at >= requests:
            break
        warehouse.reset()
        faulty = FaultyStore(warehouse.store, fault)
        outcome = attempt(warehouse, change, faulty)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        where = f"{fault} {faulty.requests[fault.at : fault.at + 1]}: {outcome}"
        found = warehouse.state()
        expected = {"acknowledged": [new], "failed": [old], "unknown": [old, new]}[outcome]
        assert found in expected, where
        needed, there = warehouse.referenced(), warehouse.stored()
        assert needed <= there, where
        # What could not be deleted stays, and so does the metadata file of a commit whose answer was lost.
        # An expiry that is committed and cannot read what remains deletes nothing.
        keeps = faulty.requests[fault.at].startswith(("delete ", "commit "))
        keeps |= name == "expire-snapshots" and outcome == "acknowledged"
        if outcome != "unknown" and not fault.forever and fault.moment == "before" and not keeps:
            assert needed == there, f"{where} left files that nobody needs"
        # The table is not stuck.
        with warehouse.table() as table:
            table.append(rows(1000, 1))
        assert len(warehouse.state()["rows"]) == len(found["rows"]) + 1, where
    figures(requests=requests, faults=sum(outcomes.values()), **outcomes)


@pytest.mark.parametrize("name", ["append", "batch", "stream"])
def test_what_is_sent_twice_is_acknowledged_if_it_is_there(carry_out: CarryOut, name: str) -> None:
    undisturbed = carry_out(directory, name)
    warehouse, outcomes = undisturbed.warehouse, dict[str, str]()
    for at, request in enumerate(undisturbed.requests):
        if request.startswith("write "):
            warehouse.reset()
            faulty = FaultyStore(warehouse.store, Fault(at, "twice"))
            outcome = attempt(warehouse, CHANGES[name], faulty)
            assert warehouse.state() == (undisturbed.new if outcome == "acknowledged" else undisturbed.old), request
            outcomes[request.rpartition("/")[2]] = outcome
    assert outcomes["v4.metadata.json"] == "acknowledged"


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
@sizes(29, 1)
def test_an_interrupted_change_leaves_its_catalog_usable(
    carry_out: CarryOut, kind: Kind, name: str, figures: Figures, size: int
) -> None:
    change, undisturbed = CHANGES[name], carry_out(kind, name)
    warehouse, old, new = undisturbed.warehouse, undisturbed.old, undisturbed.new
    interrupts = 0
    for at, request in enumerate(undisturbed.requests):
        for place, moment in enumerate(MOMENTS):
            drawn = (crc32((name + kind.__name__).encode()) + at * 3 + place) % size
            if drawn and not request.startswith("commit "):
                continue
            warehouse.reset()
            faulty = FaultyStore(warehouse.store)
            with database_of(faulty), warehouse.table(faulty) as table:
                if len(faulty.requests) > at:
                    continue
                faulty.fault = Fault(at, moment, is_interrupt=True)
                with suppress(KeyboardInterrupt):
                    change(table)
                interrupts += 1
                where = f"{moment} request {at}: {faulty.requests[at]}"
                # What others see is what the writer sees, who goes on with the same handles.
                found = warehouse.state()
                assert found in (old, new), where
                assert warehouse.referenced() <= warehouse.stored(), where
                table.refresh()
                assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == found["rows"], where
                with warehouse.table() as other:
                    other.append(rows(1000, 1))
                table.append(rows(1001, 1))
            assert len(warehouse.state()["rows"]) == len(found["rows"]) + 2, where
    figures(interrupts=interrupts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moment", [*MOMENTS, "twice"])
def test_creating_a_table_happens_or_not(tmp_path: Path, kind: Kind, moment: Moment) -> None:
    for at in range(MAX_REQUESTS):
        home = tmp_path / str(at)
        home.mkdir()
        warehouse = kind(home)
        faulty = FaultyStore(warehouse.store, Fault(at, moment))
        outcome = "acknowledged"
        opened = warehouse.open(warehouse.store)
        location = opened.default_location(NAME)
        opened.close()
        catalog = warehouse.open(faulty)
        try:
            with database_of(faulty):
                icebench.Catalog(catalog).create_table(".".join(NAME), ROWS)
        except CommitStateUnknown:
            outcome = "unknown"
        except EngineError:
            outcome = "failed"
        finally:
            catalog.close()
        opened = warehouse.open(warehouse.store)
        exists = opened.table_exists(NAME)
        opened.close()
        where = f"request {at} {faulty.requests[at : at + 1]}: {outcome}"
        assert exists in {"acknowledged": [True], "failed": [False], "unknown": [False, True]}[outcome], where
        if exists:
            with warehouse.table() as table:
                assert table.scan().count() == 0
        elif outcome == "failed":
            assert not list(warehouse.store.list(location)), where
        if len(faulty.requests) <= at:
            assert outcome == "acknowledged"
            return
    pytest.fail(f"more than {MAX_REQUESTS} requests")
