"""Bugs that mutmut makes of the lines that a change touches: one for each operator, constant, name and argument.

Only its operators are used. Its own runner puts all variants of a function into one file, behind a switch, which
compiled kernels and pickled functions do not survive; here each is planted as those of the catalogue are.
"""

from __future__ import annotations

import ast
import difflib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from libcst import Module, parse_module
from libcst.metadata import MetadataWrapper
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.mutators import mutation_operators, operator_string
from mutmut.mutation.pragma_handling import IgnoredCode

from tests.mutants.catalogue import Mutant, Room, mirror_tests, rooms
from tests.tidy.source import REPOSITORY

_PRODUCT = ("engine/*.py", "bench/*.py", "datasets/*.py", "icebench/*.py")
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_OPERATORS = [(kind, operator) for kind, operator in mutation_operators if operator is not operator_string]
"""Without other texts: most are those of messages, which no test should repeat."""
_MAIN = 'if __name__ == "__main__":'


@dataclass(frozen=True, kw_only=True)
class LineMutant(Mutant):
    """A bug of a changed line: the whole text of the file with it."""

    text: str

    def applied(self, text: str) -> str:
        return self.text

    def applies(self) -> bool:
        return True


def changed_rooms(base: str) -> Iterator[Room]:
    """For each file of the product the bugs of the lines that were changed since the last common commit with `base`."""
    by_hand = [mutant for room in rooms() for mutant in room.mutants]
    for file, lines in _changed_lines(base).items():
        source = (REPOSITORY / file).read_text(encoding="utf-8")
        named = [test for mutant in by_hand if mutant.file == file for test in mutant.tests]
        tests = tuple(dict.fromkeys([*_tests_of(file), *named]))
        mutants = tuple(
            LineMutant(room=file, bug=_difference(source, text), at=file, before="", after="", tests=tests, text=text)
            for text in mutated(source, lines)
        )
        if mutants:
            yield Room(name=file, tests=tests, mutants=mutants)


def _changed_lines(base: str) -> dict[str, set[int]]:
    if untracked := _git("ls-files", "--others", "--exclude-standard", "--", *_PRODUCT).split():
        sys.exit(f"no bugs are made of {', '.join(untracked)}: 'git add' them first")
    lines: dict[str, set[int]] = {}
    file = ""
    plain = ("--no-ext-diff", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")  # whatever the user's configuration
    asked = ("--merge-base", "-M", "-U0", "--diff-filter=d", *plain)
    for line in _git("diff", *asked, base, "--", *_PRODUCT).splitlines():
        if line.startswith("+++ b/"):
            file = line.removeprefix("+++ b/")
        elif hunk := _HUNK.match(line):
            start, count = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(file, set()).update(range(start, start + count))
    return lines


def mutated(source: str, lines: set[int]) -> Iterator[str]:
    """The source with each bug of those lines that makes other code."""
    ignored = {number for number, line in enumerate(source.splitlines(), 1) if line == _MAIN}
    visitor = MutationVisitor(_OPERATORS, IgnoredCode(ignored, set(), set()), lines)
    wrapper = MetadataWrapper(parse_module(source))
    wrapper.visit(visitor)
    seen = {ast.dump(ast.parse(source))}
    for mutation in visitor.mutations:
        module = wrapper.module.deep_replace(mutation.original_node, mutation.mutated_node)
        text = module.code if isinstance(module, Module) else source
        if (meant := ast.dump(ast.parse(text))) not in seen:
            seen.add(meant)
            yield text


def _tests_of(file: str) -> tuple[str, ...]:
    """The test file that mirrors it; without one, the tests that import it and those that mirror what imports it."""
    mirror = mirror_tests(file)
    if (REPOSITORY / mirror[0]).is_file():
        return mirror
    name = re.escape(f"icebench.{file.removesuffix('.py').replace('/', '.')}")
    imports = re.compile(rf"^(from|import) {name}\b", re.MULTILINE)
    files = [path for folder in ("tests", "engine", "bench") for path in sorted((REPOSITORY / folder).rglob("*.py"))]
    names = [path.relative_to(REPOSITORY).as_posix() for path in files if imports.search(path.read_text("utf-8"))]
    tests = [test for each in names for test in ([each] if each.startswith("tests/") else mirror_tests(each))]
    return tuple(dict.fromkeys(test for test in tests if Path(test).name.startswith("test_"))) or mirror


def _difference(old: str, new: str) -> str:
    """Number and text of the lines that differ."""
    header, *lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""))[2:]
    return "\n".join([f"line {header.split()[1].lstrip('-')}", *(line for line in lines if not line.startswith("@@"))])


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
