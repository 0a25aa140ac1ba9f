"""The planted bugs, as data: each file ``tests/mutants/<room>.toml`` lists the mutants of one room.

A mutant changes code of one function, found by its syntax (`tests.mutants.placing`). `python -m tests.mutants` applies
each in a copy of the project, runs the tests that should fail, and warns of those whose code is not there any more.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.placing import planted
from tests.tidy.source import REPOSITORY

CATALOGUE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One planted bug.

    Attributes:
        bug: What is wrong, in one line.
        at: The file that is changed and the function, class or method in it: ``engine/scan.py::Scan.count``. Without a
            name: the module.
        before: The code that is changed, which occurs once there.
        after: What it becomes.
        tests: Paths or node ids of the tests that should fail.
        survives: Why no test can fail, for a change that makes no difference; empty where tests must fail.
    """

    room: str
    bug: str
    at: str
    before: str
    after: str
    tests: tuple[str, ...]
    survives: str = ""

    @property
    def file(self) -> str:
        """The file that is changed, relative to the repository."""
        return self.at.partition("::")[0]

    def applied(self, text: str) -> str:
        """The file's text with the bug; raises Moved where its code is not there."""
        return planted(text, self.at.partition("::")[2], self.before, self.after)

    def applies(self) -> bool:
        """Whether the bug changes what the file of this tree does."""
        path = REPOSITORY / self.file
        if not path.is_file():
            return False
        text = path.read_text(encoding="utf-8")
        try:
            return ast.dump(ast.parse(self.applied(text))) != ast.dump(ast.parse(text))
        except (SyntaxError, ValueError):
            return False


@dataclass(frozen=True, kw_only=True)
class Room:
    """The mutants of one room, and all tests of the room: what `--widen` runs where the named tests do not fail."""

    name: str
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]


def rooms(names: Sequence[str] = ()) -> Iterator[Room]:
    """The rooms of the catalogue in the order of their names; only those named, if any are.

    An entry without `tests` has those that `tests_of` names for its file, or else those that mirror the file.

    Raises:
        KeyError: There is no room of that name.
        TypeError: An entry lacks something, or has too much.
    """
    files = {path.stem: path for path in sorted(CATALOGUE.glob("*.toml"))}
    for name in names or files:
        content = tomllib.loads(files[name].read_text(encoding="utf-8"))
        tests_of = content.get("tests_of", {})
        mutants = tuple(
            Mutant(room=name, **{"tests": tests_of.get(file, mirror_tests(file)), **entry})
            for entry in content["mutant"]
            for file in [entry["at"].partition("::")[0]]
        )
        yield Room(name=name, tests=tuple(content["tests"]), mutants=mutants)


def mirror_tests(file: str) -> tuple[str, ...]:
    """The test file that mirrors a file of the product, or the nearest folder of tests that does."""
    mirror = Path("tests", "unit", file)
    for path in [mirror.with_name(f"test_{mirror.name}"), *mirror.parents]:
        if (REPOSITORY / path).exists():
            return (path.as_posix(),)
    return ()


def missing_tests(tests: Sequence[str]) -> list[str]:
    """Those paths and node ids for which there is no file, or no such function or class in it."""
    missing = []
    for test in tests:
        path, *names = test.split("::")
        file = REPOSITORY / path
        plain = [name.partition("[")[0] for name in names]
        if not file.exists() or any(
            f"def {n}(" not in (t := file.read_text()) and f"class {n}" not in t for n in plain
        ):
            missing.append(test)
    return missing
