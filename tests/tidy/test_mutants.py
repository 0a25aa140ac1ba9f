"""The catalogue of planted bugs is small, has no bug twice, and names tests that are there."""

import ast

import pytest

from tests.mutants.catalogue import Room, missing_tests, rooms

ROOMS = list(rooms())


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_the_tests_that_a_mutant_names_are_there(room: Room) -> None:
    assert not missing_tests([*room.tests, *(test for mutant in room.mutants for test in mutant.tests)])
    assert room.tests
    assert all(mutant.tests for mutant in room.mutants)


def test_no_bug_is_planted_twice() -> None:
    planted = [(mutant.at, mutant.before, mutant.after) for room in ROOMS for mutant in room.mutants]
    assert len(set(planted)) == len(planted)


def test_bugs_are_python() -> None:
    """Whether their code is where they say is not looked at: it may move."""
    for room in ROOMS:
        for mutant in room.mutants:
            assert ast.parse(mutant.before).body, mutant.bug
            assert ast.parse(mutant.after).body, mutant.bug


def test_few_bugs_are_planted_by_hand() -> None:
    """The others are those that a mutation tool makes of the lines that a change touches."""
    assert sum(len(room.mutants) for room in ROOMS) <= 400
