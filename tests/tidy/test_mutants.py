"""The catalogue of planted bugs names tests that are there, and what is made of it is right."""

from pathlib import Path

import pytest

from tests.mutants import catalogue
from tests.mutants.catalogue import Mutant, Room, missing_tests, rooms
from tests.mutants.verdicts import Result, Verdict, figures, verdict

ROOMS = list(rooms())


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_the_tests_that_a_mutant_names_are_there(room: Room) -> None:
    assert not missing_tests([*room.tests, *(test for mutant in room.mutants for test in mutant.tests)])
    assert room.tests
    assert all(mutant.tests for mutant in room.mutants)


@pytest.mark.parametrize(
    ("before", "after", "applies"),
    [
        ("a + b", "a - b", True),
        ("a - b", "a + b", False),
        ("b", "c", False),
        ("a + b", "a  +  b", False),
        ("a + b", "a + ", False),
    ],
)
def test_a_bug_applies_where_its_text_is_once_and_makes_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, *, applies: bool
) -> None:
    monkeypatch.setattr(catalogue, "REPOSITORY", tmp_path)
    (tmp_path / "x.py").write_text("def f(a, b):\n    return a + b\n")
    made = Mutant(room="r", bug="x", file="x.py", before=before, after=after, tests=("t",))
    assert made.applies() is applies
    assert not Mutant(room="r", bug="x", file="gone.py", before=before, after=after, tests=("t",)).applies()


def test_no_bug_is_planted_twice() -> None:
    planted = [(mutant.file, mutant.before, mutant.after) for room in ROOMS for mutant in room.mutants]
    assert len(set(planted)) == len(planted)


@pytest.mark.parametrize(
    ("passed", "wide_passed", "explained", "expected"),
    [
        (False, None, False, Verdict.KILLED),
        (True, False, False, Verdict.KILLED_BY_OTHERS),
        (True, True, False, Verdict.SURVIVED),
        (True, None, False, Verdict.SURVIVED),
        (True, True, True, Verdict.EXPLAINED),
        (False, None, True, Verdict.WRONGLY_EXPLAINED),
        (True, False, True, Verdict.WRONGLY_EXPLAINED),
    ],
)
def test_verdicts(*, passed: bool, wide_passed: bool | None, explained: bool, expected: Verdict) -> None:
    assert verdict(passed=passed, wide_passed=wide_passed, explained=explained) is expected


def test_the_share_killed_counts_survivors_that_are_explained_as_not_killed() -> None:
    results = [
        Result(room="spec", bug="b", file="f", verdict=verdict, survives="", seconds=60.0, failure="")
        for verdict in (Verdict.KILLED, Verdict.KILLED, Verdict.SURVIVED, Verdict.EXPLAINED, Verdict.MOVED)
    ]
    lines, share = figures(results, minutes=2.0)
    assert share == 0.5
    assert "| spec | 5 | 2 | 0 | 1 | 1 | 5.0 |" in lines
    assert "50.0% of 4 bugs killed" in lines
    assert "moved: f: b" in lines
    assert "SURVIVED: f: b" in lines
