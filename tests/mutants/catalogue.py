"""The planted bugs, as data: each file ``tests/mutants/<room>.toml`` lists the mutants of one room.

A mutant replaces a text that occurs once in a file by another. `python -m tests.mutants` applies each in a copy of the
project, runs the tests that should fail, and warns of those that do not apply to the code as it is now.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.source import REPOSITORY

CATALOGUE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One planted bug.

    Attributes:
        bug: What is wrong, in one line.
        file: The file that is changed, relative to the repository.
        before: Text that occurs exactly once in the file.
        after: What it becomes.
        tests: Paths or node ids of the tests that should fail.
        survives: Why no test can fail, for a change that makes no difference; empty where tests must fail.
    """

    room: str
    bug: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    survives: str = ""

    def applied(self, text: str) -> str:
        """The file's text with the bug; raises ValueError unless `before` occurs exactly once."""
        if (count := text.count(self.before)) != 1:
            raise ValueError(f"{self.file}: {self.before!r} occurs {count} times")
        return text.replace(self.before, self.after)

    def applies(self) -> bool:
        """Whether the bug changes what the file of this tree does."""
        path = REPOSITORY / self.file
        if not path.is_file():
            return False
        text = path.read_text(encoding="utf-8")
        try:
            return _meant(self.file, self.applied(text)) != _meant(self.file, text)
        except (SyntaxError, ValueError):
            return False


def _meant(path: str, text: str) -> str:
    """What differs if a file does something else: its syntax tree, or all of a file that is no Python."""
    return ast.dump(ast.parse(text)) if path.endswith(".py") else text


@dataclass(frozen=True, kw_only=True)
class Room:
    """The mutants of one room, and all tests of the room: what `--widen` runs where the named tests do not fail."""

    name: str
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]


def rooms(names: Sequence[str] = ()) -> Iterator[Room]:
    """The rooms of the catalogue in the order of their names; only those named, if any are.

    Raises:
        KeyError: A file lacks something, or there is no room of that name.
    """
    files = {path.stem: path for path in sorted(CATALOGUE.glob("*.toml"))}
    for name in names or files:
        content = tomllib.loads(files[name].read_text(encoding="utf-8"))
        mutants = tuple(
            Mutant(
                room=name,
                bug=entry["bug"],
                file=entry["file"],
                before=entry["before"],
                after=entry["after"],
                tests=tuple(entry["tests"]),
                survives=entry.get("survives", ""),
            )
            for entry in content["mutant"]
        )
        yield Room(name=name, tests=tuple(content["tests"]), mutants=mutants)


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
