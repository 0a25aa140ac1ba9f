"""Branches, tags, rollback, fast-forward."""

from __future__ import annotations

import pytest

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.references import CreateRef, FastForward, RemoveRef, Rollback, SetCurrentSnapshot
from icebench.errors import AlreadyExists, Invalid, NotFound
from tests.unit.engine.commit.tables import data_file, metadata, world


@pytest.fixture
def w():
    """main: 101 <- 102 <- 103."""
    made = world()
    for name in ("one", "two", "three"):
        made.now_ms += 1_000
        made.transaction().commit([Append(data_files=[data_file(name)])])
    return made


def commit(w, change):
    return w.transaction().commit([change]).metadata


def test_a_branch_is_written_to_and_published(w):
    commit(w, CreateRef(name="audit", type="branch"))
    w.transaction().commit([Append(data_files=[data_file("staged")], branch="audit")])
    assert w.metadata.current_snapshot_id == 103
    found = commit(w, FastForward("main", "audit"))
    assert found.current_snapshot_id == found.refs["audit"].snapshot_id == 104
    assert [e.snapshot_id for e in found.snapshot_log] == [101, 102, 103, 104]


def test_fast_forward_refuses_histories_that_parted(w):
    commit(w, CreateRef(name="audit", type="branch", snapshot_id=102))
    w.transaction().commit([Append(data_files=[data_file("staged")], branch="audit")])
    with pytest.raises(Invalid, match="not an ancestor"):
        commit(w, FastForward("main", "audit"))


def test_tags_stay_where_they_are(w):
    commit(w, CreateRef(name="v1", type="tag", snapshot_id=102, max_ref_age_ms=5))
    w.transaction().commit([Append(data_files=[data_file("four")])])
    assert w.metadata.ref("v1").snapshot_id == 102
    with pytest.raises(Invalid, match="tag"):
        w.transaction().commit([Append(data_files=[data_file("five")], branch="v1")])
    with pytest.raises(AlreadyExists):
        commit(w, CreateRef(name="v1", type="tag"))
    assert commit(w, CreateRef(name="v1", type="tag", overwrite=True)).ref("v1").snapshot_id == 104
    assert "v1" not in commit(w, RemoveRef("v1")).refs


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda: CreateRef(name="b", type="branch", snapshot_id=7), NotFound),
        (lambda: CreateRef(name="t", type="tag", min_snapshots_to_keep=2), Invalid),
        (lambda: CreateRef(name="b", type="branch", max_ref_age_ms=0), Invalid),
        (lambda: RemoveRef("main"), Invalid),
        (lambda: RemoveRef("nope"), NotFound),
        (lambda: FastForward("main", "nope"), NotFound),
        (Rollback, Invalid),
        (lambda: Rollback(snapshot_id=7), NotFound),
        (lambda: Rollback(before_ms=1), NotFound),
        (lambda: Rollback(snapshot_id=101, branch="nope"), NotFound),
        (lambda: Rollback(snapshot_id=101, branch="tag"), Invalid),
        (lambda: SetCurrentSnapshot(7), NotFound),
    ],
)
def test_what_makes_no_sense_is_refused(w, change, error):
    commit(w, CreateRef(name="tag", type="tag"))
    with pytest.raises(error):
        commit(w, change())
    assert w.metadata.ref("tag").snapshot_id == 103


def test_an_empty_table_has_nothing_to_point_at():
    with pytest.raises(Invalid, match="no snapshot yet"):
        commit(world(metadata()), CreateRef(name="b", type="branch"))


def test_rollback_goes_to_ancestors_only(w):
    assert commit(w, Rollback(snapshot_id=101)).current_snapshot_id == 101
    with pytest.raises(Invalid, match="never there"):
        commit(w, Rollback(snapshot_id=103))
    assert commit(w, SetCurrentSnapshot(103)).current_snapshot_id == 103
    assert [e.snapshot_id for e in w.metadata.snapshot_log] == [101, 102, 103, 101, 103]


def test_rollback_to_a_time(w):
    second = w.metadata.snapshot(102).timestamp_ms
    assert commit(w, Rollback(before_ms=second + 1)).current_snapshot_id == 102


def test_a_rollback_that_loses_a_race_is_made_on_what_came(w):
    """Another commit between load and swap: the rollback is staged again and still goes where it was asked to."""
    w.committer.before = [lambda: w.transaction().commit([Append(data_files=[data_file("late")])])]
    assert commit(w, Rollback(snapshot_id=102)).current_snapshot_id == 102
    assert w.metadata.snapshot(104)


def test_removing_a_ref_that_moved_is_staged_again(w):
    commit(w, CreateRef(name="b", type="branch"))
    w.committer.before = [lambda: w.transaction().commit([Append(data_files=[data_file("late")], branch="b")])]
    assert "b" not in commit(w, RemoveRef("b")).refs
