"""What a change of a work counter means.

A counter of work (files planned, entries decoded, requests) may only fall. A counter of work *avoided* says how a
saving came about: when pruning moves from entries to manifests one of them falls and nothing got worse, so it never
fails by itself; each has a counter of work beside it that does. What was returned is the answer and must not change at
all.
"""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """How a change of a counter is judged."""

    WORK = "work"
    """Less is better; any increase fails."""
    AVOIDED = "avoided"
    """Describes where a saving came from; a change is reported and never fails by itself."""
    ANSWER = "answer"
    """Part of the result; any change fails."""


_ANSWERS = frozenset({"rows_returned"})


def kind_of(counter: str) -> Kind:
    """The kind of a counter, from its name (the names are constants of `engine.runtime.counters`)."""
    if counter in _ANSWERS:
        return Kind.ANSWER
    if "_skipped" in counter:
        return Kind.AVOIDED
    return Kind.WORK
