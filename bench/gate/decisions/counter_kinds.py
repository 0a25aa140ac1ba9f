"""What a change of a work counter means.

A counter of work (files planned, entries decoded, requests) may only fall. A counter of work *avoided* says how a
saving came about: when pruning moves from entries to manifests one of them falls and nothing got worse, so it never
fails by itself; each has a counter of work beside it that does. What was returned is the answer and must not change at
all.

Sizes in bytes, memory and calls of functions depend on the interpreter and the libraries, too: they have a tolerance,
and are compared in the environment of the baseline only.
"""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """How a change of a counter is classified."""

    WORK = "work"
    """Less is better; any increase fails."""
    AVOIDED = "avoided"
    """Describes where a saving came from; a change is reported and never fails by itself."""
    ANSWER = "answer"
    """Part of the result; any change fails."""


_ANSWERS = frozenset({"rows_returned"})


_TOLERANCES = {
    "function_calls": 0.01,
    "arrow_bytes_peak": 0.1,
    "arrow_bytes_allocated": 0.01,
    "resident_bytes_peak": 0.1,
}
"""Counters that repeat, but not exactly: by which share they may differ."""
_OF_LIBRARIES = frozenset({"modules_imported"})
"""Exact counters that differ with the versions of libraries."""
_BYTES = 0.05
"""Of sizes: random ids and times are texts of several lengths in metadata files."""
_SLACK = 64


def tolerance_of(counter: str) -> float:
    """The share by which a counter differs between runs of the same code in the same environment; 0 for exact ones."""
    return _TOLERANCES.get(counter, _BYTES if "bytes_" in counter else 0.0)


def depends_on_environment(counter: str) -> bool:
    """Whether a counter says nothing beside that of another environment."""
    return counter in _OF_LIBRARIES or tolerance_of(counter) > 0


def is_within(counter: str, before: int, now: int) -> bool:
    """Whether a difference is within the counter's tolerance."""
    share = tolerance_of(counter)
    return before == now or (share > 0 and abs(now - before) <= share * before + _SLACK)


def kind_of(counter: str) -> Kind:
    """The kind of a counter, from its name (the names are constants of `icebench.engine.runtime.counters`)."""
    if counter in _ANSWERS:
        return Kind.ANSWER
    if "_skipped" in counter:
        return Kind.AVOIDED
    return Kind.WORK
