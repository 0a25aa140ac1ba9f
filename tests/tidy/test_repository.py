"""The project against its own rules."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import pytest

from icebench.bench.cli.main import COMMANDS
from tests.tidy import dependencies, style
from tests.tidy.exemptions import EXEMPTIONS
from tests.tidy.source import REPOSITORY, Finding, Module, project_modules, tracked_files

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")


def check_file_names(_: Sequence[Module]) -> Iterable[Finding]:
    return style.file_names(tracked_files())


def check_machine_words(_: Sequence[Module]) -> Iterable[Finding]:
    for path in tracked_files():
        # The patterns themselves, and the cases that they are tested with.
        if path not in {"tests/tidy/style.py", "tests/tidy/test_style.py"}:
            yield from style.machine_words(path, (REPOSITORY / path).read_bytes().decode(errors="replace"))


def check_locked(_: Sequence[Module]) -> Iterable[Finding]:
    files = ("pyproject.toml", "requirements.lock")
    return dependencies.locked(*((REPOSITORY / name).read_text() for name in files))


def check_commands(_: Sequence[Module]) -> Iterable[Finding]:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    for path in DOCUMENTS:
        yield from style.unknown_commands(path, (REPOSITORY / path).read_text(), targets, set(COMMANDS))


CHECKS: tuple[Callable[[Sequence[Module]], Iterable[Finding]], ...] = (
    dependencies.rooms,
    dependencies.public_engine,
    dependencies.libraries,
    dependencies.declared,
    dependencies.cycles,
    dependencies.local_imports,
    style.sizes,
    style.calls,
    check_locked,
    check_file_names,
    check_machine_words,
    check_commands,
)


@cache
def findings(check: Callable[[Sequence[Module]], Iterable[Finding]]) -> list[Finding]:
    return sorted(check(project_modules()))


def test_the_project_is_seen() -> None:
    names = {module.name for module in project_modules()}
    assert {"engine", "engine.spec.types", "bench.cli.main", "tests.tidy.source"} <= names


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_rules_hold(check: Callable[[Sequence[Module]], Iterable[Finding]]) -> None:
    broken = [str(finding) for finding in findings(check) if (finding.rule, finding.subject) not in EXEMPTIONS]
    assert not broken, "\n".join(["", *broken])


def test_every_exemption_is_still_needed() -> None:
    found = {(finding.rule, finding.subject) for check in CHECKS for finding in findings(check)}
    assert not EXEMPTIONS.keys() - found


def test_every_exemption_has_a_reason() -> None:
    assert all(len(reason.split()) > 3 for reason in EXEMPTIONS.values())
