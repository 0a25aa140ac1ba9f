"""Progress of long work: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class RunProgress:
    """A `bench.measure.progress.Progress` for people. Use as a context manager.

    Args:
        console: Standard error, so that what was asked for can be piped.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._phase = ""
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("[bold]{task.fields[phase]:<9}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
                console=console,
                transient=True,
            )

    def __call__(self, phase: str, detail: str, done: int, total: int) -> None:
        """One step: see the Protocol."""
        if self._bar is None:
            self._console.print(f"{phase}: {detail} ({done}/{total})", markup=False, soft_wrap=True)
            return
        if self._task is None or phase != self._phase:
            # A bar for each phase, so that the clock beside it is the phase's own.
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(detail, total=total, phase=phase)
            self._phase = phase
        self._bar.update(self._task, description=detail, completed=done, total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
