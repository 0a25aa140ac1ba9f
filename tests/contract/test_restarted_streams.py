"""Streams that are restarted: a batch is in the table once, whatever was expired, rewritten or rolled back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import engine
from engine.commit.committed_batches import batch_entries
from engine.errors import FileNotFound
from tests.services.foreign_expiry import ForeignExpiry
from tests.services.rest_over_catalog import RestOverCatalog
from tests.services.scripted_http import scripted_server

SCHEMA = pa.schema([pa.field("id", pa.int64())])
NEVER = "2999-01-01T00:00:00Z"
"""Everything is older than this."""


@pytest.fixture(params=["sql", "directory", "rest", "hive", "glue"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> Iterator[engine.Table]:
    warehouse = f"{tmp_path}/wh"
    if kind == "glue":
        properties = request.getfixturevalue("glue_properties")
        catalog = engine.load_catalog("cloud", warehouse=warehouse, properties=properties)
    elif kind == "hive":
        catalog = engine.load_catalog(request.getfixturevalue("hive_uri"), warehouse=warehouse)
    elif kind == "directory":
        catalog = engine.load_catalog(warehouse)
    else:
        catalog = engine.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=warehouse)
    made = catalog.create_table("db.t", SCHEMA)
    if kind == "rest":
        assert made._committer is not None
        with scripted_server(RestOverCatalog(made._committer)) as server:
            yield engine.load_catalog(server.address).load_table("db.t")
    else:
        yield made
    catalog.close()


def send(table: engine.Table, batch_id: int, *, stream_id: str = "s", branch: str = "main") -> bool:
    """Commit a batch of one row, which has the batch's number; whether it was new."""
    table.refresh()
    rows = pa.table({"id": [batch_id]}, schema=SCHEMA)
    return table.append_batch(rows, stream_id=stream_id, batch_id=batch_id, branch=branch) is not None


def ids(table: engine.Table, branch: str = "main") -> list[int]:
    found: list[int] = table.refresh().scan(ref=branch).to_arrow()["id"].to_pylist()
    return sorted(found)


def compact(table: engine.Table) -> None:
    table.refresh().maintenance.rewrite_data_files(rewrite_all=True)


def expire(table: engine.Table, who: str) -> None:
    table.refresh()
    if who == "ours":
        table.maintenance.expire_snapshots(older_than=NEVER, retain_last=1)
    else:
        table._change(ForeignExpiry(older_than_ms=2**50, retain_last=1))


def forget_metadata(table: engine.Table) -> None:
    """Delete the former metadata files, as ``write.metadata.delete-after-commit.enabled`` does."""
    for entry in table.refresh().metadata.metadata_log:
        with suppress(FileNotFound):
            table.store.delete(entry.metadata_file)


@pytest.mark.parametrize("who", ["ours", "foreign"])
def test_a_batch_outlives_the_expiry_of_its_snapshot(table: engine.Table, who: str) -> None:
    """The writer dies after its commit; the table is compacted and expired before the restart."""
    for batch_id in range(3):
        assert send(table, batch_id)
    assert send(table, 0, stream_id="other")
    compact(table)
    table.append(pa.table({"id": [100]}, schema=SCHEMA))
    expire(table, who)
    assert len(table.refresh().snapshots) == 1
    assert not send(table, 2)
    assert not send(table, 0, stream_id="other")
    assert send(table, 3)
    expire(table, who)
    compact(table)
    expire(table, who)
    assert not send(table, 3)
    assert not send(table, 0, stream_id="other")
    assert ids(table) == [0, 0, 1, 2, 3, 100]


@pytest.mark.parametrize("who", ["ours", "foreign"])
def test_a_batch_that_was_rolled_back_is_committed_again(table: engine.Table, who: str) -> None:
    for batch_id in range(4):
        send(table, batch_id)
    second = table.refresh().history()[1].snapshot_id
    table.rollback(snapshot_id=second)
    table.append(pa.table({"id": [100]}, schema=SCHEMA))
    compact(table)
    expire(table, who)
    assert ids(table) == [0, 1, 100]
    assert [send(table, batch_id) for batch_id in range(4)] == [False, False, True, True]
    expire(table, who)
    assert [send(table, batch_id) for batch_id in range(5)] == [False, False, False, False, True]
    assert ids(table) == [0, 1, 2, 3, 4, 100]


def test_branches_have_batches_of_their_own(table: engine.Table) -> None:
    send(table, 0)
    table.create_branch("audit")
    assert not send(table, 0, branch="audit")
    send(table, 1, branch="audit")
    send(table, 2, branch="audit")
    assert send(table, 1)
    for branch in ("main", "audit"):
        table.append(pa.table({"id": [100]}, schema=SCHEMA), branch=branch)
    expire(table, "ours")
    forget_metadata(table)
    assert [send(table, batch_id) for batch_id in range(3)] == [False, False, True]
    assert [send(table, batch_id, branch="audit") for batch_id in range(4)] == [False, False, False, True]
    # A branch that is made of another one has its batches.
    table.create_branch("copy")
    assert not send(table, 2, branch="copy")
    assert send(table, 3, branch="copy")
    assert ids(table) == [0, 1, 2, 100]
    assert ids(table, "audit") == [0, 1, 2, 3, 100]
    assert ids(table, "copy") == [0, 1, 2, 3, 100]


@pytest.mark.parametrize("last", [2, 1])
def test_somebody_looked_for_the_rows(table: engine.Table, last: int) -> None:
    for batch_id in range(3):
        send(table, batch_id)
    compact(table)
    table.append(pa.table({"id": [100]}, schema=SCHEMA))
    expire(table, "foreign")
    forget_metadata(table)
    table.refresh().set_last_batch("s", last)
    table.append(pa.table({"id": [101]}, schema=SCHEMA))
    assert send(table, 2) == (last == 1)
    assert send(table, 3)


def test_entries_are_one_per_stream_and_expire_with_it(table: engine.Table) -> None:
    for batch_id in range(3):
        send(table, batch_id, stream_id="old")
    send(table, 0, stream_id="new")
    entries = batch_entries(table.refresh().metadata)
    assert {(e.stream_id, e.branch, e.batch_id) for e in entries} == {("old", "main", 2), ("new", "main", 0)}
    old = next(e for e in entries if e.stream_id == "old")
    assert table.metadata.snapshot(old.snapshot_id).summary["icebench.stream-batch-id"] == "2"
    table.set_properties({"icebench.streams.max-age-ms": "0"})
    send(table, 1, stream_id="new")
    assert {e.stream_id for e in batch_entries(table.refresh().metadata)} == {"new"}
    time.sleep(0.01)
    expire(table, "ours")
    assert not batch_entries(table.refresh().metadata)
