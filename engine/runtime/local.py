"""A runner on threads of this process.

Threads help only where the work lets go of the GIL: inflating, Numba kernels, Arrow compute, file reads.
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

from engine.errors import Invalid

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 2
"""Items in flight for each thread: enough to keep threads busy, few enough to bound memory."""


class _GarbageCollection:
    thread: int | None = None
    """The thread in which the collector runs now."""


def _note_collection(phase: str, _: dict[str, int]) -> None:
    _GarbageCollection.thread = threading.get_ident() if phase == "start" else None


gc.callbacks.append(_note_collection)


def available_threads() -> int:
    """The processors that this process may use (its affinity, where the system tells), at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@dataclass(frozen=True)
class LocalRunner:
    """Runs on up to `threads` threads; one thread, or one item, runs in the caller's.

    Each `map` has threads of its own, so a function that maps again on the same runner cannot wait for itself.
    """

    threads: int = field(default_factory=available_threads)

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise Invalid(f"a runner needs at least one thread, not {self.threads}")

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """See `engine.runtime.runner.Runner.map`; at most two items per thread are in flight.

        Whoever closes the iterator waits for those in flight. The garbage collector, which may close a forgotten one,
        does not: it runs in any thread at any time, within any lock, one among them that the threads need to end.
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


def made_ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, each of which another thread makes while the one before it is in use.

    Whoever closes the iterator waits for the item in the making; the garbage collector does not, as in
    `LocalRunner.map`.
    """
    end = object()
    pool = ThreadPoolExecutor(1, thread_name_prefix="icebench")
    try:
        coming: Future[T | object] = pool.submit(next, items, end)
        while (found := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield cast("T", found)
    finally:
        pool.shutdown(wait=_GarbageCollection.thread != threading.get_ident(), cancel_futures=True)
