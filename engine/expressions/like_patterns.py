"""Patterns of LIKE."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.errors import Invalid, Unsupported
from engine.expressions.predicate import Computed, Predicate, all_of, equal, starts_with
from engine.expressions.scalar import Call, ColumnValue, LiteralNode, Node


@dataclass(frozen=True, slots=True)
class LikePattern:
    """The characters of a LIKE pattern, and whether each is a wildcard. `str` is the pattern with a backslash before
    each ``%``, ``_`` and backslash that is none."""

    parts: tuple[tuple[str, bool], ...]

    def __str__(self) -> str:
        return "".join(part if wild else re.sub(r"[%_\\]", r"\\\g<0>", part) for part, wild in self.parts)

    @property
    def is_wild(self) -> bool:
        """Whether it matches more than one text."""
        return any(wild for _, wild in self.parts)

    @property
    def prefix(self) -> str:
        """The text before the first ``%`` or ``_``."""
        ends = (i for i, (_, wild) in enumerate(self.parts) if wild)
        return "".join(part for part, _ in self.parts[: next(ends, None)])

    @property
    def is_prefix(self) -> bool:
        """Whether nothing but ``%`` comes after the prefix."""
        return self.is_wild and all(part == ("%", True) for part in self.parts[len(self.prefix) :])


def like_pattern(pattern: str, escape: str | None = None) -> LikePattern:
    """Parse a LIKE pattern.

    Raises:
        Invalid: The escape is not one character, or comes before an ordinary one.
        Unsupported: A backslash without `escape`, on whose meaning SQL engines differ.
    """
    if escape is None and "\\" in pattern:
        raise Unsupported(f"the backslash in like '{pattern}'; say what it means with: escape '\\'")
    if escape is not None and len(escape) != 1:
        raise Invalid(f"the escape {escape!r} is not one character")
    special = f"{re.escape(escape)}[%_{re.escape(escape)}]|" if escape else ""
    found = re.findall(rf"{special}.", pattern, re.DOTALL)
    if escape and any(part == escape for part in found):
        raise Invalid(f"the pattern {pattern!r} has an escape before an ordinary character")
    return LikePattern(tuple((part[-1], part in ("%", "_")) for part in found))


def like(subject: Node, pattern: LikePattern) -> Predicate:
    """`subject like pattern`: an equality or a prefix test of a column if it is one, else a search, after the test of
    its prefix."""
    search = Computed(Call("like", (subject, LiteralNode(str(pattern)))))
    if not isinstance(subject, ColumnValue):
        return search
    name, prefix = ".".join(subject.path), pattern.prefix
    if not pattern.is_wild:
        return equal(name, prefix)
    if pattern.is_prefix:
        return starts_with(name, prefix)
    return all_of([starts_with(name, prefix), search]) if prefix else search
