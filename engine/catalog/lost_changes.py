"""Settles the outcome of a rename, drop or creation whose answer was lost, by looking up names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from engine.errors import CommitStateUnknown, EngineError


def settle(change: str, happened: Callable[[], bool], lost: Exception) -> None:
    """Return where a change is seen to have happened.

    Args:
        change: What it was, as in "whether ... is not known".
        happened: Looks; an EngineError is no answer.
        lost: What stood in place of the answer.

    Raises:
        CommitStateUnknown: It is not seen; it may have been undone since, or happen yet.
    """
    with suppress(EngineError):
        if happened():
            return
    raise CommitStateUnknown(f"whether {change} is not known: {lost}") from lost
