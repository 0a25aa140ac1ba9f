"""The catalogue of planted bugs keeps up with the code: every mutant still applies, and its tests are there."""

import ast
from functools import cache

import pytest

from tests.mutants.catalogue import Room, missing_tests, rooms
from tests.mutants.verdicts import Result, Verdict, figures, verdict
from tests.tidy.source import REPOSITORY

ROOMS = list(rooms())


@cache
def parsed(path: str) -> tuple[str, str]:
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    return text, meant(path, text)


def meant(path: str, text: str) -> str:
    """What differs if a file does something else: its syntax tree, or all of a file that is no Python."""
    return ast.dump(ast.parse(text)) if path.endswith(".py") else text


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_mutant_applies_and_changes_what_the_file_does(room: Room) -> None:
    wrong = []
    for mutant in room.mutants:
        text, tree = parsed(mutant.file)
        try:
            if meant(mutant.file, mutant.applied(text)) == tree:
                wrong.append(f"{mutant.file}: {mutant.bug}: the code is the same")
        except (SyntaxError, ValueError) as error:
            wrong.append(f"{mutant.file}: {mutant.bug}: {error}")
    advice = f"plant these in the code as it is now, or remove them from tests/mutants/{room.name}.toml"
    assert not wrong, "\n".join(["", *wrong, advice])


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_the_tests_that_a_mutant_names_are_there(room: Room) -> None:
    assert not missing_tests([*room.tests, *(test for mutant in room.mutants for test in mutant.tests)])
    assert room.tests
    assert all(mutant.tests for mutant in room.mutants)


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
        for verdict in (Verdict.KILLED, Verdict.KILLED, Verdict.SURVIVED, Verdict.EXPLAINED)
    ]
    lines, share = figures(results, minutes=2.0)
    assert share == 0.5
    assert "| spec | 4 | 2 | 0 | 1 | 1 | 4.0 |" in lines
    assert "SURVIVED: f: b" in lines
