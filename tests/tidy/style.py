"""Checks on single files: sizes, banned calls, file names that say nothing, words that do not belong."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tests.tidy.dependencies import is_within
from tests.tidy.rules import (
    BANNED_FILE_NAMES,
    CLOCKS_AND_CHANCE,
    FILE_HOMES,
    FILES,
    MAX_FILE_LINES,
    MAX_FUNCTION_LINES,
    MAX_LINE_LENGTH,
    NOT_FILES,
    SEEDED,
    TERMINAL,
)
from tests.tidy.source import Finding, Module, Reference

MACHINE_WORDS = {
    "a path of one machine": r"(?<![\w./~-])/(?:work|root|opt/wheels|tmp/lab|home/(?!ann\b)\w+|Users/\w+)(?:/|\b)",
    "the host of a package registry": r"\b(?:files\.pythonhosted|pypi\.org/simple|repo1?\.maven|artifactory|nexus\.)",
}


def sizes(modules: Sequence[Module]) -> Iterator[Finding]:
    """Lengths of files, functions and lines."""
    for module in modules:
        if (count := len(module.lines)) > MAX_FILE_LINES:
            yield Finding(rule="file-lines", subject=module.path, detail=f"{count} lines, at most {MAX_FILE_LINES}")
        for line in module.lines:
            # As ruff does, without the words to a tool at the end.
            if (length := len(re.sub(r"\s+# (?:noqa|type: ignore).*", "", line))) > MAX_LINE_LENGTH:
                detail = f"{length} characters, at most {MAX_LINE_LENGTH}"
                yield Finding(rule="line-length", subject=f"{module.path}: {line.strip()[:40]}", detail=detail)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = (node.end_lineno or node.lineno) - node.lineno + 1
                if count > MAX_FUNCTION_LINES:
                    detail = f"{count} lines, at most {MAX_FUNCTION_LINES}"
                    yield Finding(rule="function-lines", subject=f"{module.path}: {node.name}", detail=detail)


def calls(modules: Sequence[Module]) -> Iterator[Finding]:
    """Uses of clocks, chance, files and the terminal where they are not allowed. Tests may use them all."""
    references = [reference for module in modules for reference in module.references]
    clocks = set(CLOCKS_AND_CHANCE)
    # A function that does nothing but ask a clock is one more clock.
    while more := {item.source for item in references if item.source and is_within(item.name, clocks)} - clocks:
        clocks |= more
    for module in modules:
        for reference in module.references:
            if broken := broken_rule(module, reference, clocks):
                rule, advice = broken
                subject = f"{module.path}: {reference.name}"
                yield Finding(rule=rule, subject=subject, detail=f"line {reference.line}: {advice}")


def broken_rule(module: Module, reference: Reference, clocks: set[str]) -> tuple[str, str] | None:
    """The rule that a reference breaks and what to do instead, None for most."""
    top, name = module.room[0], reference.name
    if top in {"engine", "bench"} and is_within(name, clocks):
        is_seeded = top == "bench" and is_within(name, SEEDED)
        if not (reference.is_default or reference.source or is_seeded):
            return "clocks-and-chance", "take it as a parameter, with this as the default"
    elif top == "engine" and is_within(name, TERMINAL):
        return "terminal", "the engine is silent"
    elif top == "engine" and is_within(name, FILES) and not module.path.startswith(FILE_HOMES):
        return None if is_within(name, NOT_FILES) else ("files", f"only {' and '.join(FILE_HOMES)} touch files")
    return None


def file_names(paths: Sequence[str]) -> Iterator[Finding]:
    """Names that say nothing."""
    for path in paths:
        for part in PurePosixPath(path).with_suffix("").parts:
            if part.removeprefix("test_") in BANNED_FILE_NAMES:
                yield Finding(rule="file-names", subject=path, detail=f"{part!r} says nothing about what is in it")


def machine_words(path: str, text: str) -> Iterator[Finding]:
    """Paths and hosts that are true on one machine only."""
    for what, pattern in MACHINE_WORDS.items():
        for found in re.finditer(pattern, text):
            yield Finding(rule="machine-words", subject=f"{path}: {found[0]}", detail=what)


def unknown_commands(path: str, text: str, targets: set[str], commands: set[str]) -> Iterator[Finding]:
    """`make x` and `icebench x` in the code of a document, against what the Makefile and the command line have."""
    code = re.findall(r"^```.*?^```|`[^`\n]+`|^ {4}.*?$", text, re.MULTILINE | re.DOTALL)
    for tool, word in re.findall(r"\b(make|icebench) ([a-z][a-z-]*)", "\n".join(code)):
        if word not in (targets if tool == "make" else commands):
            yield Finding(rule="commands", subject=f"{path}: {tool} {word}", detail="there is no such command")
