import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from icebench.bench.execution.environment import PACKAGES, Command, fingerprint, run_command


def answering(answers: Mapping[str, str | None]) -> Command:
    def command(arguments: Sequence[str]) -> str | None:
        return next((answers[word] for word in arguments if word in answers), None)

    return command


ANSWERS = {
    "-version": 'openjdk version "17.0.1"\nmore\n',
    "rev-parse": "abc\n",
    "status": " M a.py\n",
    "diff": "abc",
}


def of(engines: dict[str, str], answers: Mapping[str, str | None]) -> dict[str, Any]:
    return fingerprint(engines, spark=None, checkout=Path(), command=answering(answers))


def test_what_a_fingerprint_holds() -> None:
    found = fingerprint({"b": "2", "a": "1"}, spark={"z": "1", "y": "2"}, checkout=Path(), command=answering(ANSWERS))
    assert found["git"] == {"revision": "abc", "dirty": True, "changes": "ba7816bf8f01cfea"}
    assert found["software"]["java"] == 'openjdk version "17.0.1"'
    assert list(found["software"]["spark"]) == ["y", "z"]
    assert set(found["software"]["packages"]) <= set(PACKAGES)
    assert found["software"]["packages"]["pyarrow"]
    assert found["hardware"]["cores"] >= 1
    assert found["hardware"]["memory_bytes"] > 0
    assert list(found["engines"]) == ["a", "b"]


def test_the_id_covers_everything() -> None:
    same = of({"a": "1"}, ANSWERS)
    assert same == of({"a": "1"}, ANSWERS)
    others = [of({"a": "2"}, ANSWERS), of({"a": "1"}, {**ANSWERS, "rev-parse": "def\n"}), of({"a": "1"}, {})]
    assert len({same["id"], *(other["id"] for other in others)}) == 4


def test_without_git_and_java() -> None:
    found = of({}, {})
    assert found["git"] == {"revision": None, "dirty": None, "changes": None}
    assert of({}, {**ANSWERS, "status": ""})["git"]["changes"] is None
    assert of({}, {**ANSWERS, "diff": "abd"})["git"] != of({}, ANSWERS)["git"]
    assert found["software"]["java"] is None


def _repository(root: Path, *folders: str) -> None:
    """Make a repository of one commit, which has a file ``a`` in each folder."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name in folders:
        (root / name).mkdir()
        (root / name / "a").write_text("1")
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["add", "."], [*author, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", str(root), *arguments], check=True)


def test_what_a_run_writes_is_no_change_of_what_runs(tmp_path: Path) -> None:
    """A study writes its pages between its questions: the second is of the same revision as the first."""
    _repository(tmp_path, "engine", "results", "docs")

    def git_after(name: str) -> dict[str, Any]:
        (tmp_path / name / "a").write_text(f"2 {name}")
        return dict(fingerprint({}, spark=None, checkout=tmp_path)["git"])

    for name in ("results", "docs"):
        assert (git_after(name)["dirty"], git_after(name)["changes"]) == (False, None)
    changed = git_after("engine")
    assert changed["dirty"]
    assert changed == git_after("docs")
    # So is a package that is installed below a user's repository.
    assert fingerprint({}, spark=None, checkout=tmp_path / "engine")["git"] == of({}, {})["git"]


@pytest.mark.parametrize("folder", ["engine", "bench", "icebench"])
def test_code_that_git_does_not_track_runs_too(tmp_path: Path, folder: str) -> None:
    _repository(tmp_path, folder, "datasets")
    (tmp_path / ".gitignore").write_text("__pycache__/\n")

    def git_after(name: str, content: str) -> dict[str, Any]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        return dict(fingerprint({}, spark=None, checkout=tmp_path)["git"])

    clean = git_after("datasets/own.toml", "1")
    assert (clean["dirty"], clean["changes"]) == (False, None)
    assert git_after(f"{folder}/__pycache__/a", "1") == clean
    first = git_after(f"{folder}/né w.py", "1")
    assert first["dirty"]
    assert first["changes"]
    assert first == git_after("datasets/own.toml", "2")
    second, named = git_after(f"{folder}/né w.py", "2"), git_after(f"{folder}/other.py", "")
    changed = git_after(f"{folder}/a", "2")
    assert len({each["changes"] for each in (first, second, named, changed)}) == 4
    assert git_after(f"{folder}/né w.py", "1")["changes"] != changed["changes"]


@pytest.mark.parametrize("arguments", [["/no/such/program"], ["false"]])
def test_a_command_that_cannot_run_has_no_answer(arguments: list[str]) -> None:
    assert run_command(arguments) is None


def test_a_command_answers() -> None:
    assert run_command(["echo", "yes"]) == "yes\n"
