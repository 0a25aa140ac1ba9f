"""mutmut's bugs of the lines of a change, and the tests that are run for them."""

import subprocess
from pathlib import Path

import pytest

from tests.mutants import catalogue, changed_lines
from tests.mutants.changed_lines import changed_rooms, mutated

SOURCE = """\
def size(rows, limit=10):
    if rows > limit:
        raise ValueError("too many")
    return rows + 1


if __name__ == "__main__":
    size(2)
"""


def test_only_bugs_of_those_lines_are_made() -> None:
    lines = [bug.splitlines() for bug in mutated(SOURCE, {4})]
    assert [each[3].strip() for each in lines] == ["return rows - 1", "return rows + 2"]
    assert all(each[:3] + each[4:] == SOURCE.splitlines()[:3] + SOURCE.splitlines()[4:] for each in lines)


def test_texts_of_messages_and_the_start_as_a_program_have_no_bugs() -> None:
    assert not any('"XX' in bug or "TOO" in bug for bug in mutated(SOURCE, {3}))
    assert not list(mutated(SOURCE, {7}))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(changed_lines, "REPOSITORY", tmp_path)
    monkeypatch.setattr(catalogue, "REPOSITORY", tmp_path)
    for name in ("engine/size.py", "engine/plan/size.py", "engine/other.py", "tests/unit/engine/test_size.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SOURCE if "test" not in name else "")
    for name in ("tests/test_whole.py", "tests/helper.py", "engine/size.py"):
        with (tmp_path / name).open("a") as file:
            file.write("from icebench.engine.plan.size import size\n")
    _git(tmp_path, "init", "--quiet", "--initial-branch=main")
    _commit(tmp_path)
    return tmp_path


def test_the_bugs_are_of_lines_changed_since_the_common_commit(repository: Path) -> None:
    _git(repository, "checkout", "--quiet", "-b", "change")
    for name in ("engine/size.py", "engine/plan/size.py"):
        path = repository / name
        path.write_text(path.read_text().replace("rows + 1", "rows + 3"))
    _commit(repository)
    _git(repository, "checkout", "--quiet", "main")
    (repository / "engine/other.py").write_text(SOURCE.replace("rows + 1", "rows + 4"))
    _commit(repository)
    _git(repository, "checkout", "--quiet", "change")
    plan, size = changed_rooms("main")
    assert (plan.name, plan.tests) == (
        "engine/plan/size.py", ("tests/test_whole.py", "tests/unit/engine/test_size.py"),
    )  # fmt: skip
    assert (size.name, size.tests) == ("engine/size.py", ("tests/unit/engine/test_size.py",))
    assert [mutant.bug.splitlines() for mutant in size.mutants] == [
        ["line 4", "-    return rows + 3", "+    return rows - 3"],
        ["line 4", "-    return rows + 3", "+    return rows + 4"],
    ]
    assert size.mutants[0].applies()
    assert "rows - 3" in size.mutants[0].applied("")


def test_a_change_that_is_not_committed_counts(repository: Path) -> None:
    path = repository / "engine/size.py"
    path.write_text(path.read_text().replace("rows >", "rows >="))
    (room,) = changed_rooms("main")
    assert {mutant.bug.splitlines()[0] for mutant in room.mutants} == {"line 2"}


def test_of_a_file_with_another_name_only_the_changed_lines_count(repository: Path) -> None:
    _git(repository, "mv", "engine/other.py", "engine/renamed.py")
    (repository / "engine/renamed.py").write_text(SOURCE.replace("rows + 1", "rows + 3"))
    (room,) = changed_rooms("main")
    assert (room.name, {m.bug.splitlines()[0] for m in room.mutants}) == ("engine/renamed.py", {"line 4"})


def _commit(repository: Path) -> None:
    _git(repository, "add", "--all")
    _git(repository, "-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "--quiet", "--message=m")


def _git(repository: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repository, check=True)
