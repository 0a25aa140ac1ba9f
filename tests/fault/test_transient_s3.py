"""Each request to S3 of each operation fails once, in each way in which S3 and networks fail for the moment: all
succeed, as if nothing had been.

A failure is replayed by its parameters: the kind of catalog, the operation, and the request and fault that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from zlib import crc32

import pytest
from moto.s3.models import s3_backends

import icebench
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.catalog.rest import RestCatalog
from icebench.engine.catalog.rest_session import open_session
from icebench.engine.catalog.sql import SqlCatalog
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.relocated import RelocatedStore
from icebench.engine.storage.resolve import store_for
from icebench.engine.storage.store import Store
from tests.fault.campaign import Figures, sizes
from tests.fault.test_failing_requests import CHANGES, NAME, ROWS, Warehouse, rows
from tests.services.rest_over_catalog import RestOverCatalog
from tests.services.s3_server import TRANSIENT, S3Server, Transient
from tests.services.scripted_http import scripted_server

ACCOUNT, PARTITION = "123456789012", "aws"
AT_ONCE = 4
"""Tables that are worked on at the same time: most of it is waiting."""
KINDS = ("directory", "sql", "rest")
ORPHAN = "data/orphan.parquet"
ALWAYS = "2999-01-01T00:00:00Z"


def read(table: icebench.Table) -> None:
    assert table.scan(filter="n = 0").to_arrow().num_rows == 9
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == list(range(9))


def remove_orphans(table: icebench.Table) -> None:
    found = table.maintenance.remove_orphan_files(older_than=ALWAYS, dry_run=False).locations
    assert f"{table.location}/{ORPHAN}" in found


def expire(table: icebench.Table) -> None:
    assert table.maintenance.expire_snapshots(older_than=ALWAYS, dry_run=False).snapshot_ids


OPERATIONS: dict[str, Callable[[icebench.Table], object]] = {
    "read": read,
    **CHANGES,
    "remove-orphans": remove_orphans,
    "expire-and-delete": expire,
    "rewrite-manifests": lambda table: table.maintenance.rewrite_manifests(),
}


class Held(RelocatedStore):
    """The files of a bucket as they were at a time."""

    creates_atomically = True


class Bench:
    """A bucket with one table, which is brought back to where it was after each operation."""

    def __init__(self, server: S3Server, name: str, kind: str, home: Path) -> None:
        self.server, self.kind = server, kind
        self.bucket = f"transient-{len(server.buckets)}"
        server.buckets.append(self.bucket)
        self._backend = s3_backends[ACCOUNT][PARTITION]
        self._backend.create_bucket(self.bucket, "us-east-1")
        own = {**server.properties, "s3.request-timeout": str(server.patience_seconds), "s3.connect-timeout": "20"}
        self._place = f"s3://{self.bucket}/wh"
        self._database = home / f"{name}.db"
        self.store = store_for(self._place, own, is_catalog=kind != "sql")
        self._kept: dict[str, bytes] = {}
        self._row = b""
        # What is left is looked at without requests, which are most of the work.
        self._held = MemoryStore()
        view = Held(lambda _: self._held, {f"s3://{self.bucket}": "memory://held"})
        self.warehouse = Warehouse(view, self._open, self._reset)
        Warehouse(self.store, self._open, self._reset).create()
        self._hold()
        with self.warehouse.table() as table:
            self._key = table.location.removeprefix(f"s3://{self.bucket}/")
        self._backend.put_object(self.bucket, f"{self._key}/{ORPHAN}", b"x")
        self.warehouse.reset()

    def _open(self, store: Store) -> Any:
        if self.kind == "sql":
            return SqlCatalog(f"sqlite:///{self._database}", warehouse=self._place, store_at=lambda _: store)
        return FileSystemCatalog(self._place, store)

    def _files(self) -> dict[str, bytes]:
        return {name: key.value for name, key in self._backend.get_bucket(self.bucket).keys.items()}

    def _hold(self) -> None:
        self._held._files = {f"memory://held/{name}": (data, 0) for name, data in self._files().items()}

    def _reset(self) -> None:
        if not self._kept:
            self._kept = self._files()
            self._row = self._database.read_bytes() if self.kind == "sql" else b""
        there = self._files()
        for name in there.keys() - self._kept.keys():
            self._backend.delete_object(self.bucket, name)
        for name, data in self._kept.items():
            if there.get(name) != data:
                self._backend.put_object(self.bucket, name, data)
        if self.kind == "sql":
            self._database.write_bytes(self._row)

    @contextmanager
    def opened(self) -> Iterator[icebench.Table]:
        """The table as its user opens it: by the catalog, or by a REST server before it."""
        # The catalog's own client is made anew, with its probe.
        own = self.store.__class__.__new__(self.store.__class__)
        vars(own).update({**vars(self.store), **({"_client": None} if self.kind != "sql" else {})})
        if self.kind != "rest":
            with closing(self._open(own)) as catalog:
                yield icebench.Table(NAME, catalog.load_state(NAME), own, catalog)
            return
        with (
            scripted_server(RestOverCatalog(self._open(own))) as served,
            closing(RestCatalog(open_session(served.address))) as rest,
        ):
            yield icebench.Table(NAME, rest.load_state(NAME), own, rest)

    def run(self, operation: Callable[[icebench.Table], object], at: int, fault: Transient | None) -> list[str]:
        """Carry out an operation while one request fails; the requests."""
        seen: list[str] = []

        def transient(request: str) -> Transient | None:
            seen.append(request)
            return fault if len(seen) == at + 1 else None

        HOOKS[self.bucket] = transient
        try:
            with self.opened() as table:
                operation(table)
        finally:
            del HOOKS[self.bucket]
        return seen

    def left(self) -> tuple[dict[str, Any], int]:
        """The table, and how many files nobody needs."""
        self._hold()
        return self.warehouse.state(), len(self.warehouse.stored() - self.warehouse.referenced())


HOOKS: dict[str, Callable[[str], Transient | None]] = {}


@pytest.fixture
def faulted(s3_server: S3Server) -> Iterator[S3Server]:
    """The server, whose requests are asked about by their bucket."""

    def transient(request: str) -> Transient | None:
        hook = HOOKS.get(request.split("/")[1])
        return None if hook is None else hook(request)

    patience, s3_server.transient = s3_server.patience_seconds, transient
    yield s3_server
    s3_server.patience_seconds, s3_server.transient = patience, lambda _: None


MakeBenches = Callable[[str, int], list[Bench]]


@pytest.fixture(scope="module")
def make_benches(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> MakeBenches:
    """So many benches of a kind of catalog. All operations share them."""
    home = tmp_path_factory.mktemp("benches")
    made: dict[str, list[Bench]] = {kind: [] for kind in KINDS}

    def make(kind: str, count: int) -> list[Bench]:
        found = made[kind]
        found += [Bench(s3_server, f"{kind}-{number}", kind, home) for number in range(len(found), count)]
        return found[:count]

    return make


@pytest.mark.parametrize("name", OPERATIONS)
@sizes(1, None)
def test_a_fault_for_the_moment_is_not_noticed(
    faulted: S3Server, make_benches: MakeBenches, name: str, figures: Figures, size: int | None
) -> None:
    if size is None:
        # It runs for hours beside other work, which makes answers late that no fault delays.
        faulted.patience_seconds = 5
    for kind in KINDS if size is None else [KINDS[crc32(name.encode()) % len(KINDS)]]:
        requests, faults = sweep(make_benches, kind, name, most=size)
        figures(kind=kind, requests=requests, faults=faults)


def sweep(make_benches: MakeBenches, kind: str, name: str, *, most: int | None) -> tuple[int, int]:
    """Try each fault at each request of an operation, or so many of them, spread evenly.

    Returns:
        The number of requests that the operation makes, and of faults that were tried.
    """
    operation = OPERATIONS[name]
    [first] = make_benches(kind, 1)
    requests = first.run(operation, -1, None)
    state, extra = first.left()
    first.warehouse.reset()
    every = [(at, fault) for at in range(len(requests)) for fault in TRANSIENT]
    step = 1 if most is None else -(-len(every) // most)
    chosen = every[crc32(name.encode()) % step :: step]
    benches: SimpleQueue[Bench] = SimpleQueue()
    for bench in make_benches(kind, min(AT_ONCE, len(chosen))):
        benches.put(bench)

    def one(chosen: tuple[int, Transient]) -> str:
        at, fault = chosen
        bench = benches.get()
        try:
            seen = bench.run(operation, at, fault)
            found, unneeded = bench.left()
            assert found == state
            assert unneeded == extra, "files are left that nobody needs"
        except Exception as error:  # noqa: BLE001 - reported with what replays it
            return f"{fault} at request {at}, {requests[at]}: {type(error).__name__}: {error}"
        finally:
            bench.warehouse.reset()
            benches.put(bench)
        return "" if at < len(seen) else f"request {at} was not made"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        failures = [said for said in pool.map(one, chosen) if said]
    assert not failures, "\n".join(["", *failures])
    return len(requests), len(chosen)


def test_the_sweep_has_every_operation() -> None:
    assert rows(0, 1).schema == ROWS
    assert len(OPERATIONS) == len(CHANGES) + 4
