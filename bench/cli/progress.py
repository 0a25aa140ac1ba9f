"""Progress of long work: a bar in a terminal; elsewhere a line where a phase begins, and every ten seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

_FEWEST_SECONDS, _LEAST_SHARE = 20.0, 0.05
"""What must be over of a phase before its speed says when it ends."""
_SECONDS_BETWEEN_LINES = 10.0


class RunProgress:
    """A `icebench.bench.progress.Progress` for people. Use as a context manager.

    Args:
        console: Standard error, so that what was asked for can be piped.
        clock: Monotonic seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._phase: tuple[str, int] = ("", 0)
        self._clock = clock
        self._began = (0.0, 0.0)
        self._printed: set[str] = set()
        self._printed_at = 0.0
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.fields[phase]:<9}", style="bold", markup=False),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[count]}"),
                TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False),
                console=console,
                transient=True,
            )

    def __call__(self, phase: str, detail: str, done: int, total: int, share: float | None = None) -> None:
        """One step: see the Protocol."""
        # Steps that are not weighed have the speed of those of their kind, which have their total in common.
        kind = (phase, total if share is None else 0)
        anew = kind != self._phase
        share = done / max(total, 1) if share is None else share
        now = self._clock()
        if anew:
            self._phase, self._began = kind, (now, share)
        detail += self._left(now, share)
        if self._bar is None:
            if phase in self._printed and now - self._printed_at < _SECONDS_BETWEEN_LINES:
                return
            self._printed.add(phase)
            self._printed_at = now
            self._console.print(f"{phase}: {detail} ({done}/{total})", markup=False, soft_wrap=True)
            return
        if self._task is None or anew:
            # A bar for each phase, so that the clock beside it is the phase's own.
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(detail, total=1.0, phase=phase, count="")
        self._bar.update(self._task, description=detail, completed=share, count=f"{done}/{total}")

    def _left(self, now: float, share: float) -> str:
        """How long the rest of the phase will take, by its speed so far; nothing where that is a matter of seconds, or
        where too little is done to estimate it."""
        start, before = self._began
        seconds, done = now - start, share - before
        if seconds < _FEWEST_SECONDS or done < _LEAST_SHARE:
            return ""
        left = seconds / done * (1 - share)
        return f", {left / 60:.0f} min left" if left >= 60 else ""

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
