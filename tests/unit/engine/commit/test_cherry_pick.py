from __future__ import annotations

import pytest

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.cherry_pick import CherryPick
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.spec.updates import RemoveSnapshots
from icebench.errors import Invalid, NotFound, Unsupported
from tests.unit.engine.commit.tables import World, data_file, world

A, B, C = data_file("a"), data_file("b"), data_file("c")


def table() -> World:
    w = world()
    w.transaction().commit([Append(data_files=[A])])
    w.transaction().commit([Append(data_files=[B], is_visible=False, properties={"wap.id": "w1"})])
    return w


def test_a_staged_snapshot_is_there_and_not_current() -> None:
    w = table()
    assert w.files() == {"a": 1}
    assert [s.snapshot_id for s in w.metadata.snapshots] == [101, 102]
    assert (w.metadata.current_snapshot_id, set(w.metadata.refs)) == (101, {"main"})


def test_it_becomes_the_head_where_it_was_made_on_it() -> None:
    w = table()
    w.transaction().commit([CherryPick(wap_id="w1")])
    assert w.metadata.current_snapshot_id == 102
    assert w.files() == {"a": 1, "b": 2}


def test_or_its_files_are_added_to_the_head() -> None:
    w = table()
    w.transaction().commit([Append(data_files=[C])])
    w.transaction().commit([CherryPick(snapshot_id=102)])
    assert w.files() == {"a": 1, "c": 3, "b": 4}
    summary = w.metadata.snapshots[-1].summary
    assert (summary["published-wap-id"], summary["source-snapshot-id"]) == ("w1", "102")
    assert summary["total-data-files"] == "3"


def test_another_append_in_between_turns_one_into_the_other() -> None:
    w = table()
    w.committer.before = [lambda: w.transaction().commit([Append(data_files=[C])])]
    w.transaction().commit([CherryPick(wap_id="w1")])
    assert w.files() == {"a": 1, "c": 3, "b": 4}


def test_another_snapshot_may_have_the_name_at_the_next_attempt() -> None:
    w = table()
    w.transaction().commit([Append(data_files=[C])])

    def make_another() -> None:
        w.committer.apply([], [RemoveSnapshots(frozenset({102}))])
        again = Append(data_files=[data_file("b2")], is_visible=False, properties={"wap.id": "w1"})
        w.transaction().commit([again])
        w.transaction().commit([Append(data_files=[data_file("d")])])

    w.committer.before = [make_another]
    w.transaction().commit([CherryPick(wap_id="w1")])
    assert w.files() == {"a": 1, "c": 3, "d": 5, "b2": 6}


@pytest.mark.parametrize("moved", [False, True])
def test_nothing_is_published_twice(moved: bool) -> None:
    w = table()
    if moved:
        w.transaction().commit([Append(data_files=[C])])
    w.transaction().commit([CherryPick(wap_id="w1")])
    with pytest.raises(Invalid, match="already"):
        w.transaction().commit([CherryPick(snapshot_id=102)])
    w.transaction().commit([Append(data_files=[data_file("b2")], is_visible=False, properties={"wap.id": "w1"})])
    with pytest.raises(Invalid, match="already"):
        w.transaction().commit([CherryPick(snapshot_id=w.metadata.snapshots[-1].snapshot_id)])


def test_nor_one_without_a_name() -> None:
    w = world()
    w.transaction().commit([Append(data_files=[A])])
    w.transaction().commit([Append(data_files=[B], is_visible=False)])
    w.transaction().commit([Append(data_files=[C])])
    w.transaction().commit([CherryPick(snapshot_id=102)])
    with pytest.raises(Invalid, match="is in main already, as snapshot 104"):
        w.transaction().commit([CherryPick(snapshot_id=102)])
    assert w.files() == {"a": 1, "c": 3, "b": 4}


def test_an_overwrite_is_not_brought_to_another_state_either() -> None:
    w = table()
    validation = Validation(starting_snapshot_id=101, referenced=[ref_to(A)], refuse_deletes="all")
    change = Overwrite(data_files=[data_file("a2")], removed_data=[ref_to(A)], is_visible=False, validation=validation)
    w.transaction().commit([change])
    assert w.metadata.snapshots[-1].operation == "overwrite"
    w.transaction().commit([Append(data_files=[C])])
    with pytest.raises(Unsupported, match="main has moved on"):
        w.transaction().commit([CherryPick(snapshot_id=103)])


def test_more_than_an_append_only_on_its_own_base() -> None:
    w = table()
    w.transaction().commit([Overwrite(removed_data=[ref_to(A)], is_visible=False)])
    w.transaction().commit([Append(data_files=[C])])
    with pytest.raises(Unsupported, match="main has moved on"):
        w.transaction().commit([CherryPick(snapshot_id=103)])
    w = table()
    w.transaction().commit([Overwrite(removed_data=[ref_to(A)], is_visible=False)])
    w.transaction().commit([CherryPick(snapshot_id=103)])
    assert w.files() == {}


def test_what_is_not_there() -> None:
    w = table()
    for wrong in (CherryPick(wap_id="w2"), CherryPick(snapshot_id=7)):
        with pytest.raises(NotFound):
            w.transaction().commit([wrong])
    with pytest.raises(Invalid, match="one of them"):
        CherryPick()


def test_a_snapshot_that_may_be_in_the_expired_part_of_the_history_is_refused() -> None:
    w = world()
    for file in (A, B, C):
        w.transaction().commit([Append(data_files=[file])])
    w.transaction().commit([Append(data_files=[data_file("late")], is_visible=False)])
    first, second, _, late = (snapshot.snapshot_id for snapshot in w.metadata.snapshots)
    w.transaction().commit([Append(data_files=[data_file("d")])])
    w.committer.apply([], [RemoveSnapshots(frozenset({second}))])
    with pytest.raises(Invalid, match="before which main's history was expired"):
        w.transaction().commit([CherryPick(snapshot_id=first)])
    w.transaction().commit([CherryPick(snapshot_id=late)])
    assert "late" in w.files()


def test_a_snapshot_that_was_made_on_the_expired_one_is_published() -> None:
    w = table()
    w.transaction().commit([Append(data_files=[C])])
    w.committer.apply([], [RemoveSnapshots(frozenset({101}))])
    w.transaction().commit([CherryPick(wap_id="w1")])
    assert set(w.files()) == {"a", "b", "c"}
