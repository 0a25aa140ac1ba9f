from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from icebench.bench.cli.bisect import BisectFailed, first_bad, gate_of
from icebench.bench.gate.decisions.counter_verdict import ExitCode
from tests.unit.bench.cli.test_main import exit_code


@pytest.fixture
def commits(tmp_path: Path) -> list[str]:
    """Sixteen commits of a number in a file, from 0."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    found = []
    for number in range(16):
        (tmp_path / "number").write_text(str(number))
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "--quiet", "--message", f"number {number}")
        found.append(git(tmp_path, "rev-parse", "HEAD"))
    return found


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def gate_that(expression: str) -> Sequence[str]:
    """A command that exits with the value of an expression of the head's number."""
    program = (
        "import subprocess, sys; head = sys.argv[sys.argv.index('--head') + 1]; "
        "number = int(subprocess.check_output(['git', 'show', f'{head}:number'])); "
        f"sys.exit({expression})"
    )
    return [sys.executable, "-c", program]


@pytest.mark.parametrize("first", [1, 6, 11, 15])
def test_the_commit_is_found_among_sixteen(tmp_path: Path, commits: list[str], first: int) -> None:
    assert first_bad(tmp_path, commits[0], commits[-1], gate_that(f"int(number >= {first})")) == commits[first]
    assert git(tmp_path, "status", "--porcelain") == ""
    assert git(tmp_path, "rev-parse", "HEAD") == commits[-1]


@pytest.mark.parametrize("code", [2, 3, 4])
def test_commits_that_cannot_be_measured_are_passed_over(tmp_path: Path, commits: list[str], code: int) -> None:
    assert (
        first_bad(tmp_path, commits[0], commits[-1], gate_that(f"{code} if number == 7 else int(number >= 11)"))
        == (commits[11])
    )
    assert first_bad(tmp_path, commits[0], commits[-1], gate_that(str(code))) is None


def test_changes_of_the_checkout_are_left_alone(tmp_path: Path, commits: list[str]) -> None:
    (tmp_path / "number").write_text("changed")
    assert first_bad(tmp_path, commits[0], commits[-1], gate_that("int(number >= 3)")) == commits[3]
    assert (tmp_path / "number").read_text() == "changed"


def test_what_git_refuses_is_reported(tmp_path: Path, commits: list[str]) -> None:
    with pytest.raises(BisectFailed, match="nowhere"):
        first_bad(tmp_path, "nowhere", commits[-1], gate_that("0"))


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--budget", "15x", "'15x' is no time"),
        ("--case", "(", "not a regular expression"),
        ("--case", "nowhere", "no case matches"),
    ],
)
def test_what_the_gate_refuses_is_refused_at_once(
    commits: list[str], capsys: pytest.CaptureFixture[str], option: str, value: str, reason: str
) -> None:
    assert exit_code("bisect", commits[0], option, value) == ExitCode.CONFIGURATION
    assert reason in capsys.readouterr().err


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize(
    ("gate", "code"),
    [
        (ExitCode.PASS, ExitCode.CONFIGURATION),
        (ExitCode.ERROR, ExitCode.ERROR),
        (ExitCode.INCONCLUSIVE, ExitCode.INCONCLUSIVE),
        (ExitCode.REGRESSION, ExitCode.PASS),
    ],
)
def test_a_bad_commit_is_measured_before_it_is_named(
    commits: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    gate: ExitCode,
    code: ExitCode,
) -> None:
    """git names BAD where all between it and GOOD passes."""

    def run(root: Path, commit: str, asked: Sequence[str]) -> int:
        assert (commit, asked[:3]) == (commits[-1], [sys.executable, "-m", "icebench"])  # no program `icebench`
        return gate

    monkeypatch.setattr("icebench.bench.cli.bisect.gate_of", run)
    monkeypatch.setattr("icebench.bench.cli.bisect.first_bad", lambda *given: commits[-1])
    assert exit_code("bisect", commits[0]) == code
    said = {ExitCode.PASS: "HEAD is no regression", ExitCode.REGRESSION: "the first regression"}
    assert said.get(gate, "inconclusive") in capsys.readouterr().out


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_gate_of_one_commit(tmp_path: Path, commits: list[str], code: int) -> None:
    assert gate_of(tmp_path, commits[5], gate_that(f"{code} if number == 5 else 2")) == code
