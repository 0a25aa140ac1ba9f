"""What others commit after a change was staged and before it is committed, in every kind of catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import icebench
from icebench.engine.commit.changes.expire_snapshots import ExpireSnapshots
from icebench.engine.commit.committer import Outcome
from icebench.engine.commit.target import Target
from icebench.engine.maintenance.expire_snapshots import commit_expiry, delete_expired
from icebench.engine.storage.local import LocalStore
from icebench.errors import FileNotFound, Invalid, NotFound, ValidationFailed
from tests.services.rest_over_catalog import RestOverCatalog
from tests.services.scripted_http import scripted_server

SCHEMA = pa.schema([pa.field("id", pa.int64())])
NEVER = "2999-01-01T00:00:00Z"
"""Everything is older than this."""
Tables = tuple[icebench.Table, icebench.Table]


@pytest.fixture(params=["sql", "directory", "rest"])
def kind(request: pytest.FixtureRequest) -> str:
    """Of the catalog. Those that write metadata compare the base; a REST server only what is required."""
    return str(request.param)


@pytest.fixture
def tables(tmp_path: Path, kind: str) -> Iterator[Tables]:
    """Ours and theirs: one table in two catalogs."""
    address, warehouse = (f"sqlite:///{tmp_path}/c.db", f"{tmp_path}/wh") if kind == "sql" else (f"{tmp_path}/wh", None)
    catalogs = [icebench.load_catalog(address, warehouse=warehouse) for _ in "ab"]
    theirs = catalogs[0].create_table("db.t", SCHEMA)
    if kind == "rest":
        assert theirs._committer is not None
        with scripted_server(RestOverCatalog(theirs._committer)) as server:
            catalogs.append(icebench.load_catalog(server.address))
            yield catalogs[-1].load_table("db.t"), theirs
    else:
        yield catalogs[1].load_table("db.t"), theirs
    for catalog in catalogs:
        catalog.close()


def numbers(start: int, count: int = 4) -> pa.Table:
    return pa.table({"id": range(start, start + count)}, schema=SCHEMA)


def ids(table: icebench.Table, **which: Any) -> list[int]:
    found: list[int] = table.scan(**which).to_arrow()["id"].to_pylist()
    return sorted(found)


def stored(table: icebench.Table) -> set[str]:
    return {info.location for info in table.store.list(table.location)}


def overtaken(ours: icebench.Table, act: Callable[[], object]) -> Any:
    """Somebody else acts just before the first commit reaches the catalog."""
    committer = ours._committer
    assert committer is not None
    commit, waiting = committer.commit, [act]

    def first_they_act(*request: Any) -> Outcome:
        if waiting:
            waiting.pop()()
        return commit(*request)

    return patch.object(committer, "commit", first_they_act)


def test_a_tag_keeps_what_was_to_expire(tables: Tables, kind: str) -> None:
    ours, theirs = tables
    old = ours.append(numbers(0))
    ours.overwrite(numbers(4))
    theirs.refresh()
    with overtaken(ours, lambda: theirs.create_tag("kept", snapshot_id=old.snapshot_id)):
        done = ours.maintenance.expire_snapshots(older_than=NEVER)
    assert ids(ours.refresh()) == [4, 5, 6, 7]
    if kind == "rest":
        # The server drops a reference with its snapshot; but the files are there, and its writer gets an error.
        assert isinstance(done.error, ValidationFailed)
        assert str(done.error).startswith("kept changed while snapshots expired")
        location = str(done.error).split(", and ")[-1].split(" is the table")[0]
        assert ids(icebench.load_table(location), ref="kept") == [0, 1, 2, 3]
        return
    assert old.snapshot_id not in done.snapshot_ids
    assert ids(ours, ref="kept") == [0, 1, 2, 3]


def test_an_expiry_without_interference_deletes_files(tables: Tables) -> None:
    ours, _ = tables
    ours.append(numbers(0))
    ours.overwrite(numbers(4))
    ours.create_tag("kept")
    done = ours.maintenance.expire_snapshots(older_than=NEVER)
    assert (len(done.snapshot_ids), done.deleted_data_files, done.error) == (1, 1, None)


def test_metadata_that_cannot_be_read_keeps_files(tables: Tables) -> None:
    ours, _ = tables
    ours.append(numbers(0))
    ours.overwrite(numbers(4))
    assert ours._committer is not None
    table = Target(committer=ours._committer, identifier=("db", "t"), store=ours.store)
    change = ExpireSnapshots(older_than_ms=2**50, retain_last=1)
    state = commit_expiry(table, change)
    before, former, real = stored(ours), ours.metadata_location, LocalStore.read

    def read(store: LocalStore, location: str, *rest: Any) -> bytes:
        if location == former:
            raise FileNotFound(location)
        return real(store, location, *rest)

    with patch.object(LocalStore, "read", read):
        done = delete_expired(table, change, state, delete_files=True)
    assert isinstance(done.error, FileNotFound)
    assert stored(ours) == before


def test_a_snapshot_that_expired_is_not_published(tables: Tables) -> None:
    ours, theirs = tables
    ours.append(numbers(0))
    staged = ours.append(numbers(4), wap_id="w")
    ours.append(numbers(8))
    theirs.refresh()
    expire = lambda: theirs.maintenance.expire_snapshots(older_than=NEVER)  # noqa: E731
    with overtaken(ours, expire), pytest.raises((NotFound, Invalid), match=f"'w'|{staged.snapshot_id}"):
        ours.cherry_pick(wap_id="w")
    assert staged.snapshot_id not in {each.snapshot_id for each in ours.refresh().snapshots}
    assert ids(ours) == [0, 1, 2, 3, 8, 9, 10, 11]


def test_what_is_published_leaves_no_other_reference(tables: Tables) -> None:
    ours, _ = tables
    ours.append(numbers(0))
    ours.append(numbers(4), wap_id="w")
    ours.append(numbers(8))
    ours.cherry_pick(wap_id="w")
    assert set(ours.refresh().refs) == {"main"}
    assert ids(ours) == list(range(12))


def test_the_first_snapshot_that_is_published_stays(tables: Tables) -> None:
    ours, theirs = tables
    ours.append(numbers(0), wap_id="w")
    theirs.refresh()
    with overtaken(ours, lambda: theirs.cherry_pick(wap_id="w")):
        ours.maintenance.expire_snapshots(older_than=NEVER)
    assert ids(ours.refresh()) == [0, 1, 2, 3]


@pytest.mark.parametrize("visible", [True, False])
def test_a_former_state_whose_files_were_deleted_is_not_built_on(tables: Tables, *, visible: bool) -> None:
    ours, theirs = tables
    first = ours.append(numbers(0))
    ours.append(numbers(4))
    theirs.refresh()

    def take_back_and_expire() -> None:
        theirs.rollback(snapshot_id=first.snapshot_id)
        theirs.maintenance.expire_snapshots(older_than=NEVER)

    with overtaken(ours, take_back_and_expire):
        made = ours.append(numbers(8), branch="b") if visible else ours.append(numbers(8), wap_id="w")
    assert ids(ours.refresh(), snapshot_id=made.snapshot_id) == [0, 1, 2, 3, 8, 9, 10, 11]


def test_a_fast_forward_is_to_where_the_other_branch_is(tables: Tables) -> None:
    ours, theirs = tables
    ours.append(numbers(0))
    ours.create_branch("b")
    first = ours.append(numbers(4), branch="b")
    ours.append(numbers(8), branch="b")
    theirs.refresh()
    with overtaken(ours, lambda: theirs.rollback(snapshot_id=first.snapshot_id, branch="b")):
        ours.fast_forward("main", "b")
    assert ids(ours.refresh()) == list(range(8))
