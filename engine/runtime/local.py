"""A runner on threads of this process.

Threads help only with work that releases the GIL: inflating, Numba kernels, Arrow compute, file reads.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TypeVar, cast

from icebench.engine.errors import Invalid
from icebench.engine.runtime.runner import Runner

T = TypeVar("T")
R = TypeVar("R")
_END = object()

_AHEAD = 2
"""Items in flight for each thread: enough to keep threads busy, few enough to bound memory."""


class _GarbageCollection:
    thread: int | None = None
    """The thread in which the collector runs now."""


def _note_collection(phase: str, _: dict[str, int]) -> None:
    _GarbageCollection.thread = threading.get_ident() if phase == "start" else None


gc.callbacks.append(_note_collection)


def available_threads() -> int:
    """The processors available to this process (by its affinity, if the system states it), at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@dataclass(frozen=True)
class LocalRunner:
    """Runs work on up to `threads` threads; with one thread, or one item, on the caller's.

    Each `map` has threads of its own, so a function that maps again on the same runner cannot wait for itself.
    """

    threads: int = field(default_factory=available_threads)

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise Invalid(f"a runner needs at least one thread, not {self.threads}")

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """See `icebench.engine.runtime.runner.Runner.map`; at most two items per thread are in flight.

        Closing the iterator waits for items in flight, unless the garbage collector closes it: it runs in any thread at
        any time, possibly inside a lock that the threads need.
        """
        rest = iter(items)
        first = list(islice(rest, 2))
        if self.threads == 1 or len(first) < 2:
            yield from map(fn, chain(first, rest))
            return
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="icebench")
        running: deque[Future[R]] = deque()
        try:
            for item in chain(first, rest):
                running.append(pool.submit(fn, item))
                if len(running) >= self.threads * _AHEAD:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(wait=_GarbageCollection.thread != threading.get_ident(), cancel_futures=True)


ONE_THREAD = LocalRunner(1)
"""Works on the caller's thread."""


def is_parallel(runner: Runner) -> bool:
    """Whether items may be worked on at the same time."""
    return not isinstance(runner, LocalRunner) or runner.threads > 1


class Ahead(Iterator[T]):
    """The items, prepared on a thread of their own while those before them are in use; it begins at once.

    Args:
        items: What to prepare.
        most: How many items may be prepared and not yet consumed, at least 1.
    """

    def __init__(self, items: Iterator[T], most: int = 1) -> None:
        self._items = items
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="icebench")
        self._coming: deque[Future[T | object]] = deque()
        for _ in range(most):
            self._prepare()

    def __next__(self) -> T:
        if not self._coming:
            raise StopIteration
        try:
            found = self._coming.popleft().result()
        except BaseException:
            self.close()
            raise
        if found is _END:
            self.close()
            raise StopIteration
        self._prepare()
        return cast("T", found)

    def _prepare(self) -> None:
        self._coming.append(self._pool.submit(next, self._items, _END))

    def close(self) -> None:
        """Prepare nothing more; waits for the item in progress, as closing the iterator of `LocalRunner.map` does."""
        self._coming.clear()
        self._pool.shutdown(wait=_GarbageCollection.thread != threading.get_ident(), cancel_futures=True)
