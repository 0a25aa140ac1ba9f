"""How a run reports its progress."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called at every step of a run, by one thread.

    `phase` is "datasets", a measurement's name, or "engines"; `detail` is the step in words, such as ``monthly:
    one_month, round 3 of 7``; `done` of `total` steps of the phase on this table are finished. `share` is that of the
    phase's work that is done, in time, where steps are not alike.
    """

    def __call__(self, phase: str, detail: str, done: int, total: int, share: float | None = None) -> None: ...


def silent(phase: str, detail: str, done: int, total: int, share: float | None = None) -> None:
    """Discards progress."""
