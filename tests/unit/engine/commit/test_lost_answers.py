"""What a table shows of an attempt whose answer was lost, where the catalog names no metadata file."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.evolution import UpdateProperties, UpgradeFormat
from icebench.engine.commit.changes.references import CreateRef, RemoveRef, Rollback
from icebench.engine.commit.changes.replace_table import ReplaceTable
from icebench.engine.commit.changes.rewrite_manifests import RewriteManifests
from icebench.engine.commit.committer import Outcome, TableState, Unknown
from icebench.engine.commit.lost_answers import LostAttempt
from icebench.engine.spec.partitioning import UNPARTITIONED
from icebench.engine.spec.sorting import UNSORTED
from icebench.engine.spec.updates import RemoveSnapshots
from icebench.errors import CommitStateUnknown, FileNotFound, StorageFailed
from tests.unit.engine.commit.tables import SCHEMA, World, data_file, metadata, world


def table() -> World:
    """Snapshot 101 in main, 102 in branch b."""
    w = world()
    w.transaction().commit([Append(data_files=[data_file("a")])])
    w.transaction().commit([Append(data_files=[data_file("b")], branch="b")])
    return w


def lost_append(w: World, branch: str) -> LostAttempt:
    """Of snapshot 103."""
    staged = Append(data_files=[data_file("ours")], branch=branch).stage(w.metadata, w.staging())
    return LostAttempt(staged, w.committer.state, Unknown(cause=StorageFailed("reset")))


def append(w: World, branch: str, name: str) -> None:
    w.transaction().commit([Append(data_files=[data_file(name)], branch=branch)])


@pytest.mark.parametrize("branch", ["main", "b"])
@pytest.mark.parametrize("moves", [[], ["main"], ["b"], ["main", "b", "main"]])
def test_a_branch_without_a_gap_and_without_the_snapshot_shows_that_it_did_not_happen(
    branch: str, moves: list[str]
) -> None:
    w = table()
    attempt = lost_append(w, branch)
    for number, each in enumerate(moves):
        append(w, each, f"theirs{number}")
    assert attempt.happened(w.committer.state, w.store) is False


@pytest.mark.parametrize("branch", ["main", "b"])
def test_entries_of_a_snapshot_that_expired_show_that_it_happened(branch: str) -> None:
    w = table()
    attempt = lost_append(w, branch)
    w.committer.apply(attempt.staged.requirements, attempt.staged.updates)
    assert attempt.happened(w.committer.state, w.store) is True
    append(w, branch, "later")
    w.committer.apply([], [RemoveSnapshots(frozenset({103}))])
    assert attempt.happened(w.committer.state, w.store) is True


@pytest.mark.parametrize("branch", ["main", "b"])
def test_a_gap_in_the_branch_decides_nothing(branch: str) -> None:
    w = table()
    attempt = lost_append(w, branch)
    append(w, branch, "theirs")
    append(w, branch, "later")
    theirs = w.metadata.snapshots[-2].snapshot_id
    w.committer.apply([], [RemoveSnapshots(frozenset({theirs}))])
    assert attempt.happened(w.committer.state, w.store) is None


@pytest.mark.parametrize("is_ours_there", [True, False])
def test_a_line_that_begins_anew_decides_nothing_unless_it_took_the_number(is_ours_there: bool) -> None:
    w = table()
    attempt = lost_append(w, "main")
    if is_ours_there:
        w.committer.apply(attempt.staged.requirements, attempt.staged.updates)
    replacement = ReplaceTable(SCHEMA, UNPARTITIONED, UNSORTED)
    w.transaction().commit([replacement, Append(data_files=[data_file("theirs")])])
    w.committer.apply([], [RemoveSnapshots(frozenset({103}))])
    assert attempt.happened(w.committer.state, w.store) is (None if is_ours_there else False)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_attempts_number_shows_that_it_did_not_happen_until_its_owner_expires(version: int) -> None:
    w = world(metadata(version))
    attempt = lost_append(w, "main")
    assert attempt.happened(w.committer.state, w.store) is False
    unless_1 = None if version == 1 else False
    commit(w, UpdateProperties({"k": "v"}))
    assert attempt.happened(w.committer.state, w.store) is unless_1
    append(w, "b", "theirs")
    commit(w, RemoveRef("b"))
    assert attempt.happened(w.committer.state, w.store) is unless_1
    w.committer.apply([], [RemoveSnapshots(frozenset({w.metadata.snapshots[0].snapshot_id}))])
    assert attempt.happened(w.committer.state, w.store) is None


def test_an_append_that_a_replacement_hid_is_not_made_again() -> None:
    w = world(metadata(1))
    append(w, "main", "former")

    def lose(_: Outcome) -> Outcome:
        ours = w.metadata.refs["main"].snapshot_id
        w.transaction().commit(
            [ReplaceTable(SCHEMA, UNPARTITIONED, UNSORTED), Append(data_files=[data_file("theirs")])]
        )
        w.committer.apply([], [RemoveSnapshots(frozenset({ours}))])
        return Unknown(cause=StorageFailed("reset"))

    w.committer.answers = [lose]
    with pytest.raises(CommitStateUnknown, match="does not show"):
        append(w, "main", "ours")
    assert w.files().keys() == {"theirs"}


LATER = ["append main", "append b", "append c", "replace", "replace and append", "rewrite", "upgrade", "expire"]
MOVES = ["remove b", "remove c", "roll back", "roll back"]
"""What takes a snapshot out of a branch. In version 1 nothing shows that it did, once the snapshot has expired."""


@given(
    version=st.sampled_from([1, 2, 3]),
    former=st.lists(st.sampled_from(["append main", "append b"]), max_size=2),
    branch=st.sampled_from(["main", "b", "c"]),
    is_ours_there=st.booleans(),
    later=st.lists(st.sampled_from([*LATER, "expire", *MOVES]), max_size=5),
)
@example(version=1, former=["append main"], branch="main", is_ours_there=True, later=["replace and append", "expire"])
@example(version=2, former=[], branch="main", is_ours_there=True, later=["replace", "expire"])
@example(version=2, former=["append main"], branch="c", is_ours_there=True, later=["remove c", "expire", "append c"])
@example(version=3, former=["append main"], branch="main", is_ours_there=True, later=["roll back", "expire"])
def test_what_is_concluded_is_what_happened(
    *, version: int, former: list[str], branch: str, is_ours_there: bool, later: list[str]
) -> None:
    w = world(metadata(version))
    for n, kind in enumerate(former):
        act(w, kind, f"former{n}")
    attempt = lost_append(w, branch)
    if is_ours_there:
        w.committer.apply(attempt.staged.requirements, attempt.staged.updates)
    for n, kind in enumerate(later):
        if version > 1 or kind not in MOVES:
            act(w, kind, f"later{n}")
    assert attempt.happened(w.committer.state, w.store) in (is_ours_there, None)


def act(w: World, kind: str, name: str) -> None:
    """Change the table as another writer may; an expiry leaves the heads of branches alone."""
    refs = w.metadata.refs
    changes: list[Change] = []
    match kind.split():
        case ["append", branch]:
            changes = [Append(data_files=[data_file(name)], branch=branch)]
        case ["replace", *more]:
            changes = [ReplaceTable(SCHEMA, UNPARTITIONED, UNSORTED)]
            changes += [Append(data_files=[data_file(name)])] if more else []
        case ["remove", branch] if branch in refs:
            changes = [RemoveRef(branch)]
        case ["roll", "back"] if "main" in refs:
            parent = w.metadata.snapshot(refs["main"].snapshot_id).parent_snapshot_id
            changes = [Rollback(snapshot_id=parent)] if parent in w.metadata.snapshot_by_id else []
        case ["rewrite"] if "main" in refs:
            changes = [RewriteManifests()]
        case ["upgrade"] if w.metadata.format_version < 3:
            changes = [UpgradeFormat(w.metadata.format_version + 1)]
        case ["expire"]:
            heads = {ref.snapshot_id for ref in refs.values()}
            w.committer.apply([], [RemoveSnapshots(frozenset(w.metadata.snapshot_by_id.keys() - heads))])
    if changes:
        w.transaction().commit(changes)


class TestWithoutSnapshot:
    """A change that adds no snapshot, over a catalog that names no metadata file, is looked for in the files."""

    def test_nothing_was_committed_since(self) -> None:
        w = rest_table()
        assert lost_change(w, RemoveRef("b")).happened(w.committer.state, w.store) is False

    def test_others_committed_other_things(self) -> None:
        w = rest_table()
        attempt = lost_change(w, RemoveRef("b"))
        append(w, "main", "x")
        append(w, "b", "y")
        commit(w, CreateRef(name="c", type="branch"))
        assert attempt.happened(w.committer.state, w.store) is False

    @pytest.mark.parametrize("again", [True, False])
    def test_a_branch_that_was_removed_may_have_been_removed_by_others(self, again: bool) -> None:
        w = rest_table()
        old = w.metadata.refs["b"].snapshot_id
        attempt = lost_change(w, RemoveRef("b"))
        land(w, attempt)
        if again:
            commit(w, CreateRef(name="b", type="branch", snapshot_id=old))
        assert attempt.happened(w.committer.state, w.store) is None

    def test_a_rollback_is_not_made_again_over_what_came_later(self) -> None:
        w = rest_table()
        append(w, "main", "second")
        first = w.metadata.snapshots[0].snapshot_id

        def lose(_: Outcome) -> Outcome:
            append(w, "main", "acknowledged")
            return Unknown(cause=StorageFailed("reset"))

        w.committer.answers = [lose]
        with pytest.raises(CommitStateUnknown, match="does not show"):
            w.transaction().commit([Rollback(snapshot_id=first)])
        assert w.files().keys() == {"a", "acknowledged"}

    @pytest.mark.parametrize(("later", "expected"), [("ours", True), ("theirs", None)])
    def test_a_property_is_set_if_it_still_is(self, later: str, expected: bool | None) -> None:
        w = rest_table()
        attempt = lost_change(w, UpdateProperties({"k": "ours"}))
        land(w, attempt)
        commit(w, UpdateProperties({"k": later, "other": "x"}))
        assert attempt.happened(w.committer.state, w.store) is expected

    def test_a_log_without_the_base_decides_nothing(self) -> None:
        w = rest_table()
        attempt = lost_change(w, RemoveRef("b"))
        elsewhere = TableState(metadata=w.metadata, metadata_location="memory://wh/t/metadata/99.json")
        assert attempt.happened(elsewhere, w.store) is None

    def test_a_version_that_cannot_be_read_is_an_error(self) -> None:
        w = rest_table()
        attempt = lost_change(w, RemoveRef("b"))
        append(w, "main", "x")
        w.store.delete(w.committer.state.metadata_location)
        append(w, "main", "y")
        with pytest.raises(FileNotFound):
            attempt.happened(w.committer.state, w.store)


def rest_table() -> World:
    """As `table`, with metadata files in storage, as a REST server writes them."""
    w = table()
    w.store_metadata()
    return w


def lost_change(w: World, change: Change) -> LostAttempt:
    staged = change.stage(w.metadata, w.staging())
    return LostAttempt(staged, w.committer.state, Unknown(cause=StorageFailed("reset")))


def land(w: World, attempt: LostAttempt) -> None:
    assert w.committer.handle is not None
    w.committer.handle(attempt.staged.requirements, attempt.staged.updates)


def commit(w: World, change: Change) -> None:
    w.transaction().commit([change])
