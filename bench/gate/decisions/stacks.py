"""Profiles as call stacks with seconds: which functions differ, and the tree that a flame graph draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Stacks = Sequence[tuple[Sequence[str], float]]
"""Functions from the outermost, and the seconds that the last one takes itself."""


@dataclass
class Frame:
    """A function where it was called: its seconds, and those that its callees had of them."""

    function: str
    seconds: float = 0.0
    callees: dict[str, Frame] = field(default_factory=dict)


def tree(stacks: Stacks) -> Frame:
    """All stacks, merged from the outermost function; the root stands for the whole run."""
    root = Frame("all")
    for functions, seconds in stacks:
        root.seconds += seconds
        frame = root
        for function in functions:
            frame = frame.callees.setdefault(function, Frame(function))
            frame.seconds += seconds
    return root


def differences(base: Stacks, head: Stacks, most: int = 12) -> list[tuple[str, float, float]]:
    """The functions whose own seconds differ most: name, seconds of base and of head."""
    before, now = _own(base), _own(head)
    names = sorted(before.keys() | now.keys(), key=lambda name: (-abs(now.get(name, 0) - before.get(name, 0)), name))
    return [(name, before.get(name, 0.0), now.get(name, 0.0)) for name in names[:most]]


def _own(stacks: Iterable[tuple[Sequence[str], float]]) -> dict[str, float]:
    own: dict[str, float] = {}
    for functions, seconds in stacks:
        own[functions[-1]] = own.get(functions[-1], 0.0) + seconds
    return own
