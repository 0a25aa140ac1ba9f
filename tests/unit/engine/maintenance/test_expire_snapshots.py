"""`table.maintenance.expire_snapshots`, against files that are followed one by one."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import icebench
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.expire_snapshots import ExpireSnapshots
from icebench.engine.commit.committer import Unknown
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.commit.target import Target
from icebench.engine.maintenance import expire_snapshots as operation
from icebench.engine.spec.manifest import EntryStatus
from icebench.engine.spec.snapshots import MAIN, SnapshotRef
from icebench.engine.spec.updates import AddSnapshot, RemoveSnapshotRef, RemoveSnapshots, SetSnapshotRef, TableUpdate
from icebench.engine.storage.local import LocalStore
from icebench.errors import (
    CommitStateUnknown,
    EngineError,
    FileNotFound,
    Invalid,
    NotFound,
    StorageFailed,
    ValidationFailed,
)
from tests.unit.engine.commit.tables import NAME, World, data_file, world

SCHEMA = pa.schema([pa.field("id", pa.int64())])
NEVER = "2999-01-01T00:00:00Z"
"""Everything is older than this."""


def new_table(place: Path | str, version: int = 2) -> icebench.Table:
    given = {"format-version": str(version), "commit.manifest.min-count-to-merge": "3"}
    return icebench.load_catalog(str(place)).create_table("db.t", SCHEMA, properties=given)


def numbers(start: int, count: int = 4) -> pa.Table:
    return pa.table({"id": range(start, start + count)}, schema=SCHEMA)


def files_of(table: icebench.Table, snapshot_ids: Any = None) -> set[str]:
    """All files that snapshots lead to, one after the other."""
    found: set[str] = set()
    for snapshot in table.snapshots:
        if snapshot_ids is not None and snapshot.snapshot_id not in snapshot_ids:
            continue
        if snapshot.manifest_list is not None:
            found.add(snapshot.manifest_list)
        for manifest in load_manifests(snapshot, table.store):
            found.add(manifest.manifest_path)
            for entry in decode_entries(table.store.read(manifest.manifest_path)):
                if entry.status is not EntryStatus.DELETED:
                    found.add(entry.data_file.file_path)
    return found


def stored(table: icebench.Table) -> set[str]:
    """All files but those with the metadata itself."""
    return {
        info.location
        for info in table.store.list(table.location)
        if not info.location.endswith((".metadata.json", "version-hint.text"))
    }


def ids(table: icebench.Table, **which: Any) -> list[int]:
    found: list[int] = table.scan(**which).to_arrow()["id"].to_pylist()
    return sorted(found)


def test_only_the_last_stays(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for n in range(3):
        table.append(numbers(4 * n))
    table.delete("id = 1", "merge-on-read")
    table.delete("id in (5, 6)", "copy-on-write")
    gone = [each.snapshot_id for each in table.snapshots[:-1]]
    before = stored(table)
    done = table.maintenance.expire_snapshots(older_than=NEVER)
    assert done.snapshot_ids == tuple(sorted(gone))
    assert [each.snapshot_id for each in table.snapshots] == [table.metadata.current_snapshot_id]
    assert stored(table) == files_of(table)
    counted = (
        done.deleted_data_files
        + done.deleted_position_delete_files
        + done.deleted_equality_delete_files
        + done.deleted_manifests
        + done.deleted_manifest_lists
    )
    assert (counted, done.deleted_data_files, done.not_deleted) == (len(before) - len(stored(table)), 1, ())
    assert ids(table) == [0, 2, 3, 4, 7, 8, 9, 10, 11]
    assert table.maintenance.expire_snapshots(older_than=NEVER) == operation.ExpiredSnapshots()


def test_files_may_stay(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for n in range(2):
        table.append(numbers(4 * n))
    before = stored(table)
    done = table.maintenance.expire_snapshots(older_than=NEVER, delete_files=False)
    assert (len(done.snapshot_ids), done.deleted_manifest_lists, stored(table)) == (1, 0, before)


def test_the_tables_own_age(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for n in range(3):
        table.append(numbers(4 * n))
    assert table.maintenance.expire_snapshots() == operation.ExpiredSnapshots()
    table.set_properties({"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "2"})
    later = table.snapshots[-1].timestamp_ms + 1000
    first = table.snapshots[0].snapshot_id
    with at(later):
        assert table.maintenance.expire_snapshots().snapshot_ids == (first,)
    with at(later):
        assert len(table.maintenance.expire_snapshots(retain_last=1).snapshot_ids) == 1


class at:  # noqa: N801 - reads as a clause
    """The clock of the machine stands at a time."""

    def __init__(self, now_ms: int) -> None:
        real = Target.staging

        def staging(table: Target) -> Any:
            made = real(table)
            made.now_ms = lambda: now_ms
            return made

        self._patch = patch.object(Target, "staging", staging)

    def __enter__(self) -> None:
        self._patch.start()

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


def test_branches_and_tags_keep_theirs(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for n in range(4):
        table.append(numbers(4 * n))
    second = table.snapshots[1].snapshot_id
    table.create_tag("kept", snapshot_id=second)
    table.create_branch("side", snapshot_id=second, min_snapshots_to_keep=2)
    table.append(numbers(100), branch="side")
    done = table.maintenance.expire_snapshots(older_than=NEVER)
    assert len(done.snapshot_ids) == 2
    assert ids(table, ref="kept") == list(range(8))
    assert ids(table, ref="side") == [*range(8), *range(100, 104)]
    assert ids(table) == list(range(16))
    assert stored(table) == files_of(table)
    with pytest.raises(Invalid, match="kept points at it"):
        table.maintenance.expire_snapshots(snapshot_ids=[second])


def test_a_tag_alone_keeps_its_snapshot(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for n in range(3):
        table.append(numbers(4 * n))
    first, second, third = (each.snapshot_id for each in table.snapshots)
    table.create_tag("kept", snapshot_id=second)
    assert table.maintenance.expire_snapshots(older_than=NEVER).snapshot_ids == (first,)
    assert [each.snapshot_id for each in table.snapshots] == [second, third]
    assert ids(table, ref="kept") == list(range(8))
    assert stored(table) == files_of(table)


@pytest.mark.parametrize(("own", "given", "kept"), [(3, 1, 3), (1, 3, 1), (None, 2, 2)])
def test_a_branch_keeps_as_many_as_it_says_itself(own: int | None, given: int, kept: int, tmp_path: Path) -> None:
    """Neither the argument nor the table's property goes before it."""
    table = new_table(tmp_path)
    table.set_properties({"history.expire.min-snapshots-to-keep": str(given)})
    table.append(numbers(0))
    table.create_branch("side", min_snapshots_to_keep=own)
    for n in range(1, 5):
        table.append(numbers(4 * n), branch="side")
    line = [each.snapshot_id for each in table.snapshots][-kept:]
    table.maintenance.expire_snapshots(older_than=NEVER)
    main = table.metadata.refs["main"].snapshot_id
    assert [each.snapshot_id for each in table.snapshots] == [main, *line]
    assert ids(table, ref="side") == list(range(20))
    table.maintenance.expire_snapshots(older_than=NEVER, retain_last=1)
    assert len(table.snapshots) == 1 + (own or 1)


def test_old_references_go_but_main(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(numbers(0))
    table.create_tag("short", max_ref_age_ms=1000)
    table.create_branch("long", max_ref_age_ms=10**9)
    table.append(numbers(4))
    with at(table.snapshots[-1].timestamp_ms + 2000):
        done = table.maintenance.expire_snapshots()
    assert (done.refs, sorted(table.refs)) == (("short",), ["long", "main"])
    assert done.snapshot_ids == ()


def test_one_by_its_id(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for n in range(3):
        table.append(numbers(4 * n))
    middle = table.snapshots[1].snapshot_id
    assert table.maintenance.expire_snapshots(snapshot_ids=[middle]).snapshot_ids == (middle,)
    assert stored(table) == files_of(table)
    with pytest.raises(NotFound):
        table.maintenance.expire_snapshots(snapshot_ids=[middle])


def test_a_snapshot_that_waits_to_be_published(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(numbers(0))
    table.append(numbers(4), wap_id="w")
    assert table.maintenance.expire_snapshots().snapshot_ids == ()
    assert len(table.maintenance.expire_snapshots(older_than=NEVER).snapshot_ids) == 1
    assert stored(table) == files_of(table)


def test_statistics_go_with_their_snapshot(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for n in range(2):
        table.append(numbers(4 * n))
        table.maintenance.build_index("id")
    kept = {each.statistics_path for each in table.metadata.statistics[-1:]}
    assert table.maintenance.expire_snapshots(older_than=NEVER).deleted_statistics_files == 1
    assert stored(table) == files_of(table) | kept
    assert table.scan("id = 5").plan().files.num_rows == 1


def test_a_manifest_list_of_two_snapshots_stays_with_the_second(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first = table.append(numbers(0))
    again = replace(
        first,
        snapshot_id=first.snapshot_id + 1,
        parent_snapshot_id=first.snapshot_id,
        sequence_number=first.sequence_number + 1,
    )
    ref = SnapshotRef(snapshot_id=again.snapshot_id, type="branch")
    committer = table._committer
    assert committer is not None
    base = committer.load_state(table._identifier)
    committer.commit(table._identifier, base, [], [AddSnapshot(again), SetSnapshotRef(MAIN, ref)])
    done = table.refresh().maintenance.expire_snapshots(older_than=NEVER)
    assert (done.snapshot_ids, done.deleted_manifest_lists) == ((first.snapshot_id,), 0)
    assert ids(table) == [0, 1, 2, 3]


def test_where_files_are_shared_with_other_tables(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.set_properties({"gc.enabled": "false"})
    table.append(numbers(0))
    table.append(numbers(4))
    for expire in (table.maintenance.expire_snapshots, table.maintenance.remove_orphan_files):
        with pytest.raises(Invalid, match=r"gc\.enabled is false"):
            expire(older_than=NEVER)
    with pytest.raises(Invalid, match="at least one"):
        table.maintenance.expire_snapshots(retain_last=0)


class TestFailures:
    def two(self, tmp_path: Path) -> icebench.Table:
        table = new_table(tmp_path)
        for n in range(3):
            table.append(numbers(4 * n))
        table.delete("id < 4", "copy-on-write")
        return table

    def test_a_crash_before_files_are_deleted(self, tmp_path: Path) -> None:
        table = self.two(tmp_path)
        before = stored(table)
        with patch.object(operation, "_deleted", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            table.maintenance.expire_snapshots(older_than=NEVER)
        assert (stored(table), len(table.snapshots)) == (before, 1)
        again = icebench.load_catalog(str(tmp_path)).load_table("db.t")
        assert ids(again) == list(range(4, 12))
        again.append(numbers(50))
        found = again.maintenance.remove_orphan_files(older_than=NEVER, dry_run=False)
        assert set(found.locations) == before - files_of(again)
        assert stored(again) == files_of(again)

    def test_an_answer_that_is_lost(self, tmp_path: Path) -> None:
        table = self.two(tmp_path)
        before = stored(table)
        table.set_properties({"commit.status-check.num-retries": "0", "commit.retry.num-retries": "0"})
        committer = table._committer
        assert committer is not None
        with (
            patch.object(type(committer), "commit", return_value=Unknown(cause=OSError("gone"))),
            pytest.raises(CommitStateUnknown),
        ):
            table.maintenance.expire_snapshots(older_than=NEVER)
        assert stored(table) == before

    @pytest.mark.parametrize("kind", [StorageFailed, FileNotFound])
    def test_a_manifest_list_of_the_rest_that_cannot_be_read(self, kind: type[EngineError], tmp_path: Path) -> None:
        table = self.two(tmp_path)
        before = stored(table)
        head = table.current_snapshot
        assert head is not None
        assert head.manifest_list is not None
        real = LocalStore.read

        def read(store: LocalStore, location: str, *rest: Any) -> bytes:
            if location == head.manifest_list:
                raise kind(location)
            return real(store, location, *rest)

        with patch.object(LocalStore, "read", read):
            done = table.maintenance.expire_snapshots(older_than=NEVER)
        assert isinstance(done.error, kind)
        assert (len(done.snapshot_ids), len(table.snapshots), stored(table)) == (3, 1, before)

    def test_files_that_will_not_go(self, tmp_path: Path) -> None:
        table = self.two(tmp_path)
        with patch.object(LocalStore, "delete", side_effect=StorageFailed("no")):
            done = table.maintenance.expire_snapshots(older_than=NEVER)
        assert set(done.not_deleted) == stored(table) - files_of(table)
        assert done.deleted_data_files == 0

    def test_files_that_are_gone_already(self, tmp_path: Path) -> None:
        table = self.two(tmp_path)
        first = table.snapshots[0].manifest_list
        assert first is not None
        table.store.delete(first)
        table.maintenance.expire_snapshots(older_than=NEVER)
        assert stored(table) >= files_of(table)
        with pytest.raises(FileNotFound):
            table.store.size(first)

    @pytest.mark.parametrize("kind", ["data", "manifest"])
    def test_of_files_that_are_gone_already_nothing_is_reported(self, kind: str, tmp_path: Path) -> None:
        table = self.two(tmp_path)
        head = table.current_snapshot
        kept = {m.manifest_path for m in load_manifests(head, table.store)}
        others = {m.manifest_path for s in table.snapshots for m in load_manifests(s, table.store)} - kept
        (data,) = {each for each in stored(table) - files_of(table, [head.snapshot_id]) if "/data/" in each}  # type: ignore[union-attr]
        gone = data if kind == "data" else min(others)
        table.store.delete(gone)
        done = table.maintenance.expire_snapshots(older_than=NEVER)
        assert (done.error, done.not_deleted, done.outside) == (None, (), ())
        assert done.deleted_manifests == len(others) - (kind == "manifest")
        assert done.deleted_data_files <= (kind == "manifest")
        assert ids(table) == list(range(4, 12))


@dataclass
class Built:
    table: icebench.Table
    next_id: int = 0
    names: list[str] = field(default_factory=lambda: ["main"])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "append", "delete", "rewrite", "cow", "branch", "tag", "rollback", "wap", "manifests", "expire"]
        ),
        st.integers(0, 5),
    ),
    min_size=3,
    max_size=12,
)


@settings(max_examples=40)
@given(st.sampled_from([1, 2, 3]), STEPS, st.integers(1, 3))
def test_what_remains_is_what_is_reachable(version: int, steps: list[tuple[str, int]], keep: int) -> None:
    with place() as home:
        built = Built(new_table(home, version))
        for kind, number in [("append", 0), *steps]:
            take(built, kind, number)
        table = built.table
        rows = {snapshot.snapshot_id: ids(table, snapshot_id=snapshot.snapshot_id) for snapshot in table.snapshots}
        before = files_of(table)
        done = table.maintenance.expire_snapshots(older_than=NEVER, retain_last=keep)
        left = {snapshot.snapshot_id for snapshot in table.snapshots}
        assert left | set(done.snapshot_ids) == set(rows)
        assert left >= {ref.snapshot_id for ref in table.refs.values()}
        assert stored(table) & before == files_of(table)
        for snapshot_id in left:
            assert ids(table, snapshot_id=snapshot_id) == rows[snapshot_id]
        assert set(table.maintenance.remove_orphan_files(older_than=NEVER).locations) == stored(table) - files_of(table)


class place:  # noqa: N801 - reads as a clause
    """A directory for a while."""

    def __enter__(self) -> str:
        self._home = tempfile.mkdtemp()
        return self._home

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._home)


def take(built: Built, kind: str, number: int) -> None:
    table = built.table
    branch = built.names[number % len(built.names)]
    on_read = table.metadata.format_version > 1
    match kind:
        case "append":
            table.append(numbers(built.next_id), branch=branch)
            built.next_id += 4
        case "delete" | "cow":
            mode: Any = "merge-on-read" if on_read and kind == "delete" else "copy-on-write"
            table.delete(f"id = {4 * number + 1}", mode, branch=branch)
        case "rewrite":
            table.maintenance.rewrite_data_files(branch=branch, rewrite_all=True)
        case "manifests":
            table.maintenance.rewrite_manifests(branch=branch)
        case "branch":
            table.create_branch(f"b{len(built.names)}")
            built.names.append(f"b{len(built.names)}")
        case "tag":
            table.create_tag(f"t{number}", overwrite=True)
        case "rollback":
            parent = table.current_snapshot.parent_snapshot_id if table.current_snapshot else None
            if parent is not None and parent in table.metadata.snapshot_by_id:
                table.rollback(snapshot_id=parent)
        case "wap":
            table.append(numbers(1000 + built.next_id), wap_id=f"w{built.next_id}")
            built.next_id += 4
        case "expire":
            table.maintenance.expire_snapshots(older_than=NEVER, retain_last=2)


OTHERS = st.lists(st.tuples(st.sampled_from(["expire", "tag", "untag"]), st.sampled_from([101, 102, 103])), max_size=6)


@given(OTHERS)
@example([("expire", 101), ("tag", 102)])
@example([("expire", 101), ("tag", 102), ("expire", 102)])
def test_files_of_tagged_snapshots_stay_where_the_catalog_drops_the_tags(others: list[tuple[str, int]]) -> None:
    """A REST server applies an expiry to the metadata that it has, and drops tags with their snapshots."""
    w = world()
    w.store_metadata()
    for name in "abcd":
        w.transaction().commit([Append(data_files=[data_file(name)])])
    lists = {snapshot.snapshot_id: snapshot.manifest_list for snapshot in w.metadata.snapshots}
    dropped: set[int] = set()
    w.committer.before = [lambda: dropped.update(tag_and_expire(w, others))]
    table = Target(committer=w.committer, identifier=NAME, store=w.store)
    change = ExpireSnapshots(older_than_ms=2**50, retain_last=1)
    state = operation.commit_expiry(table, change)
    done = operation.delete_expired(table, change, state, delete_files=True)
    assert done.snapshot_ids == (101, 102, 103)
    left = {info.location for info in w.store.list("memory://wh")}
    assert left >= {lists[snapshot_id] for snapshot_id in dropped}
    assert isinstance(done.error, ValidationFailed) or not dropped
    if not any(kind == "tag" for kind, _ in others):
        assert (done.error, done.deleted_manifest_lists) == (None, 3)


def tag_and_expire(w: World, steps: list[tuple[str, int]]) -> set[int]:
    """What other processes do while ours expires snapshots 101 to 103; their expiries pass over tags as ours may.

    Returns the snapshots that have a tag when they expire."""
    dropped = set()
    for kind, snapshot_id in steps:
        name, is_there = f"t{snapshot_id}", snapshot_id in w.metadata.snapshot_by_id
        update: TableUpdate | None = None
        match kind:
            case "expire":
                dropped |= {snapshot_id} if name in w.metadata.refs else set()
                update = RemoveSnapshots(frozenset({snapshot_id}))
            case "tag" if is_there:
                update = SetSnapshotRef(name, SnapshotRef(snapshot_id=snapshot_id, type="tag"))
            case "untag":
                update = RemoveSnapshotRef(name)
        if update is not None:
            assert w.committer.handle is not None
            w.committer.handle([], [update])
    return dropped | {ref.snapshot_id for ref in w.metadata.refs.values() if ref.type == "tag"}


def test_times(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for n in range(3):
        table.append(numbers(n))
    cut = dt.datetime.fromtimestamp(table.snapshots[1].timestamp_ms / 1000, dt.UTC)
    expected = [s.snapshot_id for s in table.snapshots[:-1] if s.timestamp_ms < table.snapshots[1].timestamp_ms]
    assert sorted(table.maintenance.expire_snapshots(older_than=cut).snapshot_ids) == sorted(expected)


def test_a_dry_run_shows_what_would_go_and_changes_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for start in range(5):
        table.append(numbers(start))
    table.create_tag("old", snapshot_id=table.snapshots[1].snapshot_id, max_ref_age_ms=1)
    table.create_branch("kept", snapshot_id=table.snapshots[2].snapshot_id)
    before = table.metadata_location, stored(table)
    planned = table.maintenance.expire_snapshots(older_than=NEVER, dry_run=True)
    table.refresh()
    assert (table.metadata_location, stored(table)) == before
    done = table.maintenance.expire_snapshots(older_than=NEVER)
    assert planned.snapshot_ids == done.snapshot_ids != ()
    assert planned.refs == done.refs == ("old",)
    assert planned.deleted_manifest_lists == 0 < done.deleted_manifest_lists
    again = table.maintenance.expire_snapshots(older_than=NEVER, dry_run=True)
    assert (again.snapshot_ids, again.refs) == ((), ())
