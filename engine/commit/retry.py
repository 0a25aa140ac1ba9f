"""How often and how long to wait before trying again (properties ``commit.retry.*``, ``commit.status-check.*``)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from engine.spec import properties


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Where time and chance come from."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[], float] = field(default_factory=lambda: random.Random().random)

    def for_commits(self, table_properties: Mapping[str, str]) -> Backoff:
        """The waits between attempts to commit."""
        return Backoff(
            retries=properties.COMMIT_NUM_RETRIES.of(table_properties),
            min_wait_ms=properties.COMMIT_MIN_WAIT_MS.of(table_properties),
            max_wait_ms=properties.COMMIT_MAX_WAIT_MS.of(table_properties),
            total_timeout_ms=properties.COMMIT_TOTAL_TIMEOUT_MS.of(table_properties),
            waiting=self,
        )

    def for_status_checks(self, table_properties: Mapping[str, str]) -> Backoff:
        """The waits between attempts to find out what came of a commit."""
        return Backoff(
            retries=properties.STATUS_CHECK_NUM_RETRIES.of(table_properties),
            min_wait_ms=properties.STATUS_CHECK_MIN_WAIT_MS.of(table_properties),
            max_wait_ms=properties.STATUS_CHECK_MAX_WAIT_MS.of(table_properties),
            total_timeout_ms=properties.STATUS_CHECK_TOTAL_TIMEOUT_MS.of(table_properties),
            waiting=self,
        )


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Waits that double from `min_wait_ms` to `max_wait_ms`, each cut by a random part of up to a half.

    The random part keeps writers that collided once from colliding again in step.
    """

    retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_timeout_ms: int
    waiting: Waiting = field(default_factory=Waiting)

    def attempts(self) -> Iterator[int]:
        """Attempt numbers from 1, waiting before each but the first; ends when retries or time are used up."""
        started = self.waiting.monotonic()
        yield 1
        for retry in range(self.retries):
            wait_ms = min(self.max_wait_ms, self.min_wait_ms * 2**retry) * (1 - self.waiting.random() / 2)
            if (self.waiting.monotonic() - started) * 1000 + wait_ms > self.total_timeout_ms:
                return
            self.waiting.sleep(wait_ms / 1000)
            yield retry + 2
