"""Counts rounds of requests: how many times a call waits for storage, where what can be asked at once is.

A store with a latency makes a plan take that many times the latency, whatever processors there are. Nothing is waited
for and nothing is measured: work is done one item after the other, with a time of its own that begins when a thread
would be free and that each request advances by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import TypeVar

import icebench

T = TypeVar("T")
R = TypeVar("R")

_REQUESTS = "storage_requests_"


class Rounds(icebench.Counters):
    """Counters that advance `now` with each request, and a runner of as many threads as are given."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self.now = 0
        self._threads = threads

    def add(self, name: str, n: int = 1) -> None:
        super().add(name, n)
        if name.startswith(_REQUESTS):
            self.now += n

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """See `icebench.Runner.map`; two items of each thread are in progress."""
        rest = iter(items)
        free = [self.now] * self._threads
        running: deque[tuple[R, int]] = deque()
        while True:
            for item in islice(rest, 2 * self._threads - len(running)):
                running.append(self._done(fn, item, free))
            if not running:
                return
            result, ended = running.popleft()
            self.now = max(self.now, ended)
            yield result

    def _done(self, fn: Callable[[T], R], item: T, free: list[int]) -> tuple[R, int]:
        """The result, and when the thread that is free first had it; `now` is the consumer's again."""
        asked = self.now
        self.now = max(asked, heappop(free))
        result = fn(item)
        ended, self.now = self.now, asked
        heappush(free, ended)
        return result, ended
