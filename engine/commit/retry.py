"""How often and how long to wait before trying again (properties ``commit.retry.*``, ``commit.status-check.*``)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from icebench.engine.spec import properties

_SHORT_WAITS = 8
_ATTEMPTS_LONG = 16
_LOCK_WAITS = 100


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
            attempts_long=_ATTEMPTS_LONG,
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

    Args:
        retries: Attempts after the first.
        min_wait_ms: The first wait.
        max_wait_ms: The longest one.
        total_timeout_ms: No wait goes beyond it.
        attempts_long: Where given, a wait is no longer than that many times what the attempt before it took, or eight
            times the first wait if that is more. Of colliding commits one always succeeds, so there is no outage to be
            waited for: longer waits only leave the table idle, and let those that came later go first.
        waiting: Where time and chance come from.
    """

    retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_timeout_ms: int
    attempts_long: int | None = None
    waiting: Waiting = field(default_factory=Waiting)

    def attempts(self) -> Iterator[int]:
        """Attempt numbers from 1, waiting before each but the first; ends when retries or time are used up."""
        started = begun = self.waiting.monotonic()
        yield 1
        for retry in range(self.retries):
            now = self.waiting.monotonic()
            longest_ms = min(self.max_wait_ms, self._ceiling_ms((now - begun) * 1000))
            wait_ms = min(longest_ms, self.min_wait_ms * 2**retry) * (1 - self.waiting.random() / 2)
            if (now - started) * 1000 + wait_ms > self.total_timeout_ms:
                return
            self.waiting.sleep(wait_ms / 1000)
            begun = self.waiting.monotonic()
            yield retry + 2

    @property
    def longest_lock_wait_seconds(self) -> float:
        """How long to wait for the host's commit lock before attempting without it."""
        return min(self.min_wait_ms * _LOCK_WAITS, self.max_wait_ms, self.total_timeout_ms) / 1000

    def _ceiling_ms(self, attempt_ms: float) -> float:
        if self.attempts_long is None:
            return self.max_wait_ms
        return max(self.min_wait_ms * _SHORT_WAITS, attempt_ms * self.attempts_long)
