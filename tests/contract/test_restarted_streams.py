"""Streams that are restarted: a batch is in the table once, whatever was expired, rewritten or rolled back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

import engine
from engine.commit.changes.expire_snapshots import ExpireSnapshots
from engine.commit.committed_batches import BatchEntry, batch_entries
from engine.commit.snapshots import Staged
from engine.commit.staging import Staging
from engine.errors import FileNotFound, Invalid, ValidationFailed
from engine.spec.metadata import TableMetadata
from engine.spec.requirements import AssertTableUuid
from engine.spec.updates import RemoveSnapshots
from tests.services.rest_over_catalog import RestOverCatalog
from tests.services.scripted_http import scripted_server

SCHEMA = pa.schema([pa.field("id", pa.int64())])
NEVER = "2999-01-01T00:00:00Z"
"""Everything is older than this."""


@dataclass
class ForeignExpiry:
    """Removes all snapshots but the branches' heads and those of tags, as another engine does: properties stay as they
    are."""

    kept: frozenset[int] = field(default=frozenset())

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        expiry = ExpireSnapshots(older_than_ms=2**50, retain_last=1)
        expiry.stage(base, staging)
        updates = (RemoveSnapshots(expiry.expired - self.kept),) if expiry.expired - self.kept else ()
        return Staged(requirements=(AssertTableUuid(base.table_uuid),), updates=updates)


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


@pytest.fixture
def local(tmp_path: Path) -> Iterator[engine.Table]:
    """A table in one kind of catalog, for what does not depend on it."""
    catalog = engine.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path}/wh")
    yield catalog.create_table("db.t", SCHEMA)
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
        table._change(ForeignExpiry())


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


def test_all_batches_were_rolled_back(local: engine.Table) -> None:
    local.append(pa.table({"id": [100]}, schema=SCHEMA))
    first = local.history()[0].snapshot_id
    send(local, 0)
    send(local, 1)
    local.rollback(snapshot_id=first)
    compact(local)
    local.append(pa.table({"id": [101]}, schema=SCHEMA))
    expire(local, "ours")
    forget_metadata(local)
    assert [send(local, batch_id) for batch_id in (0, 1)] == [True, True]
    assert ids(local) == [0, 1, 100, 101]


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


def test_a_fast_forward_brings_batches_along(local: engine.Table) -> None:
    send(local, 0)
    local.create_branch("audit")
    send(local, 1, branch="audit")
    local.append(pa.table({"id": [100]}, schema=SCHEMA), branch="audit")
    local.fast_forward("main", "audit")
    local.remove_ref("audit")
    local.append(pa.table({"id": [101]}, schema=SCHEMA))
    expire(local, "foreign")
    assert not send(local, 1)
    assert send(local, 2)
    assert ids(local) == [0, 1, 2, 100, 101]


def test_a_replaced_table_has_no_batches(local: engine.Table, tmp_path: Path) -> None:
    send(local, 0)
    catalog = engine.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path}/wh")
    with catalog.replace_table_transaction("db.t", SCHEMA):
        pass
    catalog.close()
    assert send(local, 0)
    assert ids(local) == [0]


def test_what_cannot_be_known_is_refused_by_name(local: engine.Table) -> None:
    """Foreign commits and an expiry, and no former metadata: the last batch may have been rolled back, or not."""
    for batch_id in range(3):
        send(local, batch_id)
    compact(local)
    local.append(pa.table({"id": [100]}, schema=SCHEMA))
    expire(local, "foreign")
    forget_metadata(local)
    files = {info.location for info in local.store.list(local.location)}
    with pytest.raises(ValidationFailed, match=r"has batch 2 of stream 's' is unknown.*set_last_batch\('s', 2, branch"):
        send(local, 2)
    stream = local.keyed_stream(["id"], stream_id="s")
    with pytest.raises(ValidationFailed, match="batch 2 of stream 's' is unknown"):
        _ = stream.last_batch
    stream.insert(pa.table({"id": [2]}, schema=SCHEMA))
    with pytest.raises(ValidationFailed, match=r"set_last_batch\('s', 1, branch='main'\) if not"):
        stream.commit(2)
    assert {info.location for info in local.store.list(local.location)} == files
    assert ids(local) == [0, 1, 2, 100]
    # What comes next is new for certain.
    assert send(local, 3)
    assert not send(local, 2)


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


def strip_entries(table: engine.Table) -> None:
    """As if batches had been committed by an engine that kept no entries."""
    names = [name for name in table.refresh().properties if name.startswith("icebench.stream-batch.")]
    assert names
    table.remove_properties(*names)
    table.refresh()


def test_a_table_of_an_engine_that_kept_no_entries(local: engine.Table) -> None:
    for batch_id in range(3):
        send(local, batch_id)
    strip_entries(local)
    # Its snapshots still say which batches they are, and our expiry takes note of it.
    assert not send(local, 2)
    compact(local)
    local.append(pa.table({"id": [100]}, schema=SCHEMA))
    expire(local, "ours")
    forget_metadata(local)
    assert not send(local, 2)
    strip_entries(local)
    forget_metadata(local)
    with pytest.raises(ValidationFailed, match="has batch 2 of stream 's' is unknown"):
        send(local, 2)
    local.set_last_batch("s", 2)
    assert not send(local, 2)
    assert send(local, 3)
    assert ids(local) == [0, 1, 2, 3, 100]


def test_a_new_stream_into_an_expired_table(local: engine.Table) -> None:
    """Its first batches have no rows, which Spark commits, too."""
    for number in (100, 101):
        local.append(pa.table({"id": [number]}, schema=SCHEMA))
    expire(local, "foreign")
    forget_metadata(local)
    assert send(local, 0, stream_id="begins with rows")
    empty = pa.table({"id": []}, schema=SCHEMA)
    for batch_id in range(2):
        assert local.append_batch(empty, stream_id="s", batch_id=batch_id) is None
    assert send(local, 2)
    keyed = local.keyed_stream(["id"], stream_id="keyed")
    assert keyed.last_batch is None
    assert keyed.commit(0) is None
    keyed.insert(pa.table({"id": [7]}, schema=SCHEMA))
    assert keyed.commit(1) is not None
    with pytest.raises(ValidationFailed, match="unknown"):
        send(local, 17, stream_id="begins elsewhere")
    local.refresh().set_last_batch("begins elsewhere", -1)
    assert send(local, 17, stream_id="begins elsewhere")
    assert ids(local) == [0, 2, 7, 17, 100, 101]


def test_a_keyed_batch_outlives_the_expiry_of_its_snapshot(local: engine.Table) -> None:
    for batch_id in range(2):
        stream = local.keyed_stream(["id"], stream_id="s")
        stream.update(pa.table({"id": [batch_id]}, schema=SCHEMA))
        assert stream.commit(batch_id) is not None
    compact(local)
    local.refresh().delete("id = 1", "copy-on-write")
    expire(local, "ours")
    again = local.keyed_stream(["id"], stream_id="s")
    assert again.last_batch == 1
    again.update(pa.table({"id": [1]}, schema=SCHEMA))
    assert again.commit(1) is None
    assert ids(local) == [0]


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


def test_a_damaged_entry_is_named(local: engine.Table) -> None:
    send(local, 0)
    (name,) = [name for name in local.refresh().properties if name.startswith("icebench.stream-batch.")]
    for text in ("", "[]", "{}", '{"stream-id": "s"}', local.properties[name].replace(": 0", ': "0"')):
        local.refresh().set_properties({name: text})
        with pytest.raises(Invalid, match=name):
            send(local, 1)


def test_an_entry_survives_its_text() -> None:
    entry = BatchEntry(stream_id="ü" * 300, branch="ö", batch_id=7, snapshot_id=2**62, timestamp_ms=1)
    assert len(entry.name) < 100
    assert entry.name.isascii()
    assert entry.text.isascii()
