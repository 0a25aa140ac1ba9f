"""The last batch of each stream: what is known after rollbacks, expiries and lost metadata, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.commit.committed_batches import BatchEntry, batch_entries, updates_to_entries
from icebench.engine.spec.updates import RemoveProperties, SetProperties
from icebench.errors import Invalid, ValidationFailed
from tests.contract.test_restarted_streams import SCHEMA, compact, expire, forget_metadata, ids, send


@pytest.fixture
def local(tmp_path: Path) -> Iterator[icebench.Table]:
    """A table in one kind of catalog, for what does not depend on it."""
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path}/wh")
    yield catalog.create_table("db.t", SCHEMA)
    catalog.close()


def test_all_batches_were_rolled_back(local: icebench.Table) -> None:
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


def test_a_batch_newer_than_what_is_left_of_the_history_was_rolled_back(local: icebench.Table) -> None:
    """Its entry has a sequence number that a walk would have met, though the history has no beginning any more."""
    for number in (100, 101):
        local.append(pa.table({"id": [number]}, schema=SCHEMA))
    head = local.refresh().current_snapshot
    assert head is not None
    send(local, 0)
    local.rollback(snapshot_id=head.snapshot_id)
    expire(local, "foreign")
    forget_metadata(local)
    assert [snapshot.snapshot_id for snapshot in local.refresh().snapshots] == [head.snapshot_id]
    assert send(local, 0)
    assert ids(local) == [0, 100, 101]


def test_a_fast_forward_brings_batches_along(local: icebench.Table) -> None:
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


def test_a_tag_brings_back_what_was_rolled_back(local: icebench.Table) -> None:
    for batch_id in range(3):
        send(local, batch_id)
    local.append(pa.table({"id": [100]}, schema=SCHEMA))
    local.create_tag("kept")
    local.rollback(snapshot_id=local.refresh().history()[0].snapshot_id)
    local.append(pa.table({"id": [101]}, schema=SCHEMA))
    local.append(pa.table({"id": [102]}, schema=SCHEMA))
    expire(local, "ours")
    forget_metadata(local)
    local.refresh().set_current_snapshot(local.refs["kept"].snapshot_id)
    assert not send(local, 2)
    assert ids(local) == [0, 1, 2, 100]


def test_snapshots_in_the_middle_expire(local: icebench.Table) -> None:
    """Older ones are kept, but the history no longer leads to them."""
    for batch_id in range(3):
        send(local, batch_id)
    for number in range(100, 103):
        local.append(pa.table({"id": [number]}, schema=SCHEMA))
    middle = [s.snapshot_id for s in local.refresh().snapshots if "icebench.stream-id" not in s.summary][:2]
    local.maintenance.expire_snapshots(snapshot_ids=middle, older_than="2000-01-01T00:00:00Z")
    forget_metadata(local)
    assert len(local.refresh().snapshots) == 4
    local.append(pa.table({"id": [103]}, schema=SCHEMA))
    expire(local, "ours")
    forget_metadata(local)
    assert not send(local, 2)
    assert send(local, 3)


def test_an_entry_is_removed_where_its_branch_has_not_moved(local: icebench.Table) -> None:
    """A REST server does not compare properties: the stream could commit to its branch meanwhile."""
    send(local, 0)
    local.create_branch("audit")
    send(local, 1, branch="audit")
    metadata = local.refresh().metadata
    updates, requirements = updates_to_entries(metadata, [], 2**50)
    assert {r.ref: r.snapshot_id for r in requirements} == {n: ref.snapshot_id for n, ref in metadata.refs.items()}
    (removal,) = updates
    assert removal == RemoveProperties(frozenset(entry.name for entry in batch_entries(metadata)))
    fresh = batch_entries(metadata)[0]
    assert updates_to_entries(metadata, [fresh], fresh.timestamp_ms + 1)[0] == [SetProperties({fresh.name: fresh.text})]


def test_a_replaced_table_has_no_batches(local: icebench.Table, tmp_path: Path) -> None:
    send(local, 0)
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path}/wh")
    with catalog.replace_table_transaction("db.t", SCHEMA):
        pass
    catalog.close()
    assert send(local, 0)
    assert ids(local) == [0]


def test_what_cannot_be_known_is_refused_by_name(local: icebench.Table) -> None:
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


def strip_entries(table: icebench.Table) -> None:
    """As if batches had been committed by an engine that kept no entries."""
    names = [name for name in table.refresh().properties if name.startswith("icebench.stream-batch.")]
    assert names
    table.remove_properties(*names)
    table.refresh()


def test_a_table_of_an_engine_that_kept_no_entries(local: icebench.Table) -> None:
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


def test_a_new_stream_into_an_expired_table(local: icebench.Table) -> None:
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


def test_a_keyed_batch_outlives_the_expiry_of_its_snapshot(local: icebench.Table) -> None:
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


def test_a_damaged_entry_is_named(local: icebench.Table) -> None:
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
