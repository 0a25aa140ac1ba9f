"""What a table tells of an attempt whose answer was lost, where the catalog names no metadata file."""

from __future__ import annotations

import pytest

from engine.commit.changes.append import Append
from engine.commit.committer import Unknown
from engine.commit.lost_answers import LostAttempt
from engine.errors import StorageFailed
from engine.spec.updates import RemoveSnapshots
from tests.unit.engine.commit.tables import World, data_file, world


def table() -> World:
    """Snapshot 101 in main, 102 in branch b."""
    w = world()
    w.transaction().commit([Append(data_files=[data_file("a")])])
    w.transaction().commit([Append(data_files=[data_file("b")], branch="b")])
    return w


def lost_append(w: World, branch: str) -> LostAttempt:
    """Of snapshot 103."""
    staged = Append(data_files=[data_file("ours")], branch=branch).stage(w.metadata, w.staging())
    return LostAttempt(staged, Unknown(cause=StorageFailed("reset")))


def append(w: World, branch: str, name: str) -> None:
    w.transaction().commit([Append(data_files=[data_file(name)], branch=branch)])


@pytest.mark.parametrize("branch", ["main", "b"])
@pytest.mark.parametrize("moves", [[], ["main"], ["b"], ["main", "b", "main"]])
def test_a_branch_without_a_gap_and_without_the_snapshot_tells_that_it_did_not_happen(
    branch: str, moves: list[str]
) -> None:
    w = table()
    attempt = lost_append(w, branch)
    for number, each in enumerate(moves):
        append(w, each, f"theirs{number}")
    assert attempt.happened(w.committer.state, w.store) is False


@pytest.mark.parametrize("branch", ["main", "b"])
def test_entries_of_a_snapshot_that_expired_tell_that_it_happened(branch: str) -> None:
    w = table()
    attempt = lost_append(w, branch)
    w.committer.apply(attempt.staged.requirements, attempt.staged.updates)
    assert attempt.happened(w.committer.state, w.store) is True
    append(w, branch, "later")
    w.committer.apply([], [RemoveSnapshots(frozenset({103}))])
    assert attempt.happened(w.committer.state, w.store) is True


@pytest.mark.parametrize("branch", ["main", "b"])
def test_a_gap_in_the_branch_tells_nothing(branch: str) -> None:
    w = table()
    attempt = lost_append(w, branch)
    append(w, branch, "theirs")
    append(w, branch, "later")
    theirs = w.metadata.snapshots[-2].snapshot_id
    w.committer.apply([], [RemoveSnapshots(frozenset({theirs}))])
    assert attempt.happened(w.committer.state, w.store) is None
