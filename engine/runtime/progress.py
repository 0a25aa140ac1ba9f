"""The progress of a long call: what it reports, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol

from icebench.engine.lazy_module import LazyModule

if TYPE_CHECKING:
    from rich import console, progress
else:  # only a bar needs them
    console = LazyModule("rich.console")
    progress = LazyModule("rich.progress")


class Step(Protocol):
    """What a long call reports."""

    @property
    def what(self) -> str:
        """The method that was called, such as ``append``."""

    @property
    def unit(self) -> str:
        """What is counted: ``rows``, ``files``, ``bytes``."""

    @property
    def done(self) -> int:
        """How many are done."""

    @property
    def total(self) -> int | None:
        """Of how many; None while that is unknown."""


OnStep = Callable[[Step], object]
"""Called by the thread that made the call, at each step; what it raises ends the call."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A step; see `Step`."""

    what: str
    unit: str
    done: int
    total: int | None


@contextmanager
def progress_bar(file: IO[str] | None = None) -> Iterator[OnStep]:
    """A progress bar for `progress=` of long calls, one line for each of them, in a terminal or a notebook; elsewhere
    only the last state is written.

    ::

        with icebench.progress_bar() as bar:
            table.append(reader, progress=bar)

    Args:
        file: Where it is written; by default standard error.
    """
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[count]}"),
        progress.TimeElapsedColumn(),
    )
    shown = console.Console(file=file, stderr=file is None)
    with progress.Progress(*columns, console=shown) as bar:
        last: tuple[progress.TaskID, int, str] | None = None

        def advance(step: Step) -> None:
            nonlocal last
            if last is None or last[2] != step.what or step.done < last[1]:
                task = bar.add_task(step.what, total=step.total, count="")
            else:
                task = last[0]
            last = (task, step.done, step.what)
            of = "" if step.total is None else f" of {step.total:,}"
            bar.update(task, completed=step.done, total=step.total, count=f"{step.done:,}{of} {step.unit}")

        yield advance
