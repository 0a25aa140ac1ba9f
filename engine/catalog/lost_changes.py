"""Settles the outcome of a rename, drop or creation whose answer was lost, by looking up names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from icebench.engine.errors import CommitStateUnknown, EngineError, StorageFailed


class CatalogBusy(StorageFailed):
    """Another writer holds the catalog or table; nothing was changed and trying again helps."""


class AnswerLost(StorageFailed):
    """The connection broke while the change was being made durable: it may or may not have been."""


def settle(change: str, happened: Callable[[], bool], lost: Exception) -> None:
    """Return if a look-up shows that the change happened.

    Args:
        change: The change, as in "whether ... is not known".
        happened: Looks the change up; an EngineError counts as not known.
        lost: The error that was received instead of the answer.

    Raises:
        CommitStateUnknown: The look-up does not show it: it may have been undone since, or may still happen.
    """
    with suppress(EngineError):
        if happened():
            return
    raise CommitStateUnknown(f"whether {change} is not known: {lost}") from lost
