"""Progress of long work: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class RunProgress:
    """A `bench.measure.progress.Progress` for people. Use as a context manager.

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
        self._began = (0.0, 0)
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("[bold]{task.fields[phase]:<9}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left:"),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=console,
                transient=True,
            )

    def __call__(self, phase: str, detail: str, done: int, total: int) -> None:
        """One step: see the Protocol."""
        # Warming up and rounds are of one phase, and of another speed: their totals tell them apart.
        anew = (phase, total) != self._phase
        if anew:
            self._phase, self._began = (phase, total), (self._clock(), done)
        if self._bar is None:
            left = self._left(done, total)
            self._console.print(f"{phase}: {detail} ({done}/{total}){left}", markup=False, soft_wrap=True)
            return
        if self._task is None or anew:
            # A bar for each phase, so that the clock beside it is the phase's own.
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(detail, total=total, phase=phase)
        self._bar.update(self._task, description=detail, completed=done, total=total)

    def _left(self, done: int, total: int) -> str:
        """How long the rest of the phase will take, by its speed so far; nothing where that is a matter of seconds."""
        start, before = self._began
        if done <= before:
            return ""
        seconds = (self._clock() - start) / (done - before) * (total - done)
        return f", {seconds / 60:.0f} min left" if seconds >= 60 else ""

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
