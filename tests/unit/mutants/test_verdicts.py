"""A planted bug applies where it changes what the code does, and what is made of the tests' answer is right."""

from pathlib import Path

import pytest

from tests.mutants import catalogue
from tests.mutants.catalogue import Mutant, mirror_tests
from tests.mutants.verdicts import Result, Verdict, figures, verdict


@pytest.mark.parametrize(
    ("before", "after", "applies"),
    [
        ("a + b", "a - b", True),
        ("a - b", "a + b", False),
        ("b", "a", False),
        ("x.y", "x.z", False),
        ("a + b", "a  +  b", False),
        ("a + b", "a + ", False),
    ],
)
def test_a_bug_applies_where_its_code_is_once_and_makes_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, *, applies: bool
) -> None:
    monkeypatch.setattr(catalogue, "REPOSITORY", tmp_path)
    (tmp_path / "x.py").write_text("def f(a, b):\n    return a + b\n")
    made = Mutant(room="r", bug="x", at="x.py::f", before=before, after=after, tests=("t",))
    assert made.applies() is applies
    assert not Mutant(room="r", bug="x", at="gone.py::f", before=before, after=after, tests=("t",)).applies()


def test_the_tests_of_a_file_mirror_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "REPOSITORY", tmp_path)
    (tmp_path / "tests/unit/engine/plan").mkdir(parents=True)
    (tmp_path / "tests/unit/engine/plan/test_tasks.py").touch()
    assert mirror_tests("engine/plan/tasks.py") == ("tests/unit/engine/plan/test_tasks.py",)
    assert mirror_tests("engine/plan/parts/other.py") == ("tests/unit/engine/plan",)


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
