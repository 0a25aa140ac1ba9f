"""Parts of pieces of work, shared with threads that have no piece of their own left.

A runner hands out whole pieces (row groups), which keeps memory bounded and results in order, and leaves threads idle
while the last of them are done: with four pieces on two threads that is a good part of the time. Those threads take
over parts of what is still at hand (columns). While there are pieces for all, nobody is asked, and nothing is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(eq=False)
class _Job:
    """The parts of one piece: how many were taken, how many of those are being done, what came of them."""

    run: Callable[[int], Any]
    parts: int
    taken: int = 0
    running: int = 0
    results: dict[int, Any] = field(default_factory=dict)
    errors: dict[int, BaseException] = field(default_factory=dict)


class Crew:
    """Threads that work on pieces, and those that help them."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._jobs: list[_Job] = []
        self._working = 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Around a piece of work, for whose parts helpers wait."""
        with self._changed:
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def each(self, run: Callable[[T], R], parts: Sequence[T]) -> list[R]:
        """``run(part)`` of all parts, in their order: in this thread, and in those that help.

        Raises:
            The first exception, by part, when no thread is at a part any longer.
        """
        if len(parts) < 2:
            return [run(part) for part in parts]
        job = _Job(lambda place: run(parts[place]), len(parts))
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()
        while (place := self._take(job)) is not None:
            self._run(job, place)
        with self._changed:
            self._jobs.remove(job)
            while job.running:
                self._changed.wait()
        if job.errors:
            raise job.errors[min(job.errors)]
        return [job.results[place] for place in range(len(parts))]

    def help(self) -> None:
        """Do parts of what others work on, until nobody does."""
        while (found := self._next()) is not None:
            self._run(*found)

    def _next(self) -> tuple[_Job, int] | None:
        """A part that nobody has taken; waits for one as long as anybody works."""
        with self._changed:
            while True:
                for job in self._jobs:
                    place = self._taken(job)
                    if place is not None:
                        return job, place
                if not self._working:
                    return None
                self._changed.wait()

    def _take(self, job: _Job) -> int | None:
        with self._changed:
            return self._taken(job)

    @staticmethod
    def _taken(job: _Job) -> int | None:
        """The next part, for one who holds the lock; none after an error."""
        if job.taken == job.parts or job.errors:
            return None
        job.taken += 1
        job.running += 1
        return job.taken - 1

    def _run(self, job: _Job, place: int) -> None:
        result, error = None, None
        try:
            result = job.run(place)
        except BaseException as raised:  # noqa: BLE001 - raised again in the thread whose work it is
            error = raised
        with self._changed:
            if error is None:
                job.results[place] = result
            else:
                job.errors[place] = error
            job.running -= 1
            if not job.running:
                self._changed.notify_all()
