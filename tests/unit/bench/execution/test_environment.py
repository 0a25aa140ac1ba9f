from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from icebench.bench.execution.environment import PACKAGES, Command, fingerprint, run_command


def answering(answers: Mapping[str, str | None]) -> Command:
    def command(arguments: Sequence[str]) -> str | None:
        return answers.get(arguments[-1])

    return command


ANSWERS = {
    "-version": 'openjdk version "17.0.1"\nmore\n',
    "HEAD": "abc\n",
    "--untracked-files=no": " M a.py\n",
    "--": "abc",
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
    others = [of({"a": "2"}, ANSWERS), of({"a": "1"}, {**ANSWERS, "HEAD": "def\n"}), of({"a": "1"}, {})]
    assert len({same["id"], *(other["id"] for other in others)}) == 4


def test_without_git_and_java() -> None:
    found = of({}, {})
    assert found["git"] == {"revision": None, "dirty": None, "changes": None}
    assert of({}, {**ANSWERS, "--untracked-files=no": ""})["git"]["changes"] is None
    assert of({}, {**ANSWERS, "--": "abd"})["git"] != of({}, ANSWERS)["git"]
    assert found["software"]["java"] is None


@pytest.mark.parametrize("arguments", [["/no/such/program"], ["false"]])
def test_a_command_that_cannot_run_has_no_answer(arguments: list[str]) -> None:
    assert run_command(arguments) is None


def test_a_command_answers() -> None:
    assert run_command(["echo", "yes"]) == "yes\n"
