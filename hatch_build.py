"""Builds wheels that install one package, `icebench`, with `engine/`, `bench/` and `datasets/` of this tree inside it.

`engine` and `bench` are too common as top-level names of site-packages, and too good in the tree to be longer. So the
names change on the way into a wheel: import statements, and names of modules in strings (lazy imports, ``python -m``,
messages). There is one module for each file in both places, so classes, pickles and kernel caches have one name each.
An editable installation puts this directory on the path, and nothing is rewritten.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "icebench"
MOVED = ("bench", "engine")
"""Packages of the tree that become packages of `icebench`."""
_DATA = "datasets"
_LEFT_OUT = ("__pycache__", "cache")
_STRINGS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
_BEFORE_A_STATEMENT = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
_DOTTED_NAME = re.compile(rf"\{{[^{{}}]*\}}|(?<![\w./-])(?:{'|'.join(MOVED)})(?:\.\w+)+")
"""A dotted name, or something in braces, which stays: before Python 3.12 code in an f-string is part of its token."""


class WheelHook(BuildHookInterface[Any]):
    """Gives hatchling the rewritten tree in place of the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self._made = TemporaryDirectory()
        write_package(Path(self.root), Path(self._made.name))
        build_data["force_include"][self._made.name] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        del build_data, artifact_path
        if version != "editable":
            self._made.cleanup()


def write_package(root: Path, target: Path) -> None:
    """Write the contents of the `icebench` package, as wheels have them, from the tree at `root` to `target`.

    Raises:
        ValueError: A module is imported in a way that cannot be rewritten.
    """
    modules = {".".join(path.relative_to(root).with_suffix("").parts) for path in _files(root, MOVED, "*.py")}
    modules |= {name.removesuffix(".__init__") for name in modules}
    for path in _files(root, (PACKAGE, *MOVED, _DATA), "*"):
        place = target / path.relative_to(root / PACKAGE if path.is_relative_to(root / PACKAGE) else root)
        place.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        try:
            place.write_bytes(rewrite_names(data.decode(), modules).encode() if path.suffix == ".py" else data)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def rewrite_names(source: str, modules: AbstractSet[str]) -> str:
    """Put the moved packages below `icebench` in import statements, and in strings where they name a module.

    Args:
        source: A module of the tree.
        modules: Dotted names of the tree's modules and packages: ``"bench.sales"`` in a string is a table.

    Raises:
        ValueError: ``import engine.x``, which binds another name once it is moved, or several modules in one import.
    """
    lines = source.splitlines(keepends=True)
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type != tokenize.COMMENT]
    for i in reversed(range(len(tokens))):
        (row, column), text = tokens[i].start, tokens[i].string
        if tokens[i].type in _STRINGS:
            _replace(lines, tokens[i], _DOTTED_NAME.sub(lambda found: _moved(found[0], modules), text))
        elif text in {"from", "import"} and _starts_statement(tokens, i) and tokens[i + 1].string in MOVED:
            if text == "from":
                _replace(lines, tokens[i + 1], f"{PACKAGE}.{tokens[i + 1].string}")
            elif tokens[i + 2].string in {"as", "\n", "\r\n", ""}:
                lines[row - 1] = f"{lines[row - 1][:column]}from {PACKAGE} {lines[row - 1][column:]}"
            else:
                raise ValueError(f"line {row}: write 'from {tokens[i + 1].string}... import ...' instead")
    return "".join(lines)


def _files(root: Path, folders: Sequence[str], pattern: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((root / folder).rglob(pattern)):
            if path.is_file() and not any(part in _LEFT_OUT for part in path.relative_to(root).parts):
                yield path


def _starts_statement(tokens: Sequence[tokenize.TokenInfo], index: int) -> bool:
    return index == 0 or tokens[index - 1].type in _BEFORE_A_STATEMENT or tokens[index - 1].string in {":", ";"}


def _moved(name: str, modules: AbstractSet[str]) -> str:
    """A dotted name below the package if it starts with a module's, as ``engine.errors.Invalid`` does."""
    return f"{PACKAGE}.{name}" if ".".join(name.split(".")[:2]) in modules else name


def _replace(lines: list[str], token: tokenize.TokenInfo, text: str) -> None:
    """Put a text without other line breaks in a token's place."""
    if text == token.string:
        return
    (row, column), (end_row, end_column) = token.start, token.end
    rest = lines[end_row - 1][end_column:]
    lines[row - 1 : end_row] = (lines[row - 1][:column] + text + rest).splitlines(keepends=True)
