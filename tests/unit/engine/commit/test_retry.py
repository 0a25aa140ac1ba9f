from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from random import Random

import pytest

from icebench.engine.commit.retry import Backoff, Waiting
from icebench.errors import Invalid


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, chance: float = 0.0) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.waiting = Waiting(sleep=self.sleep, monotonic=lambda: self.now, random=lambda: chance)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(round(seconds, 6))


def backoff(clock: Clock, *, retries: int = 4, max_wait_ms: int = 60_000, timeout_ms: int = 1_800_000) -> Backoff:
    return Backoff(
        retries=retries, min_wait_ms=100, max_wait_ms=max_wait_ms, total_timeout_ms=timeout_ms, waiting=clock.waiting
    )


def test_waits_double() -> None:
    clock = Clock()
    assert list(backoff(clock).attempts()) == [1, 2, 3, 4, 5]
    assert clock.slept == [0.1, 0.2, 0.4, 0.8]


def test_waits_have_a_ceiling() -> None:
    clock = Clock()
    list(backoff(clock, max_wait_ms=250).attempts())
    assert clock.slept == [0.1, 0.2, 0.25, 0.25]


def test_chance_takes_up_to_a_half() -> None:
    clock = Clock(chance=0.999)
    list(backoff(clock, retries=2).attempts())
    assert clock.slept == [pytest.approx(0.05, abs=1e-3), pytest.approx(0.1, abs=1e-3)]


def test_writers_differ_by_default() -> None:
    assert Waiting().random() != Waiting().random()


def test_no_retries_no_waits() -> None:
    clock = Clock()
    assert list(backoff(clock, retries=0).attempts()) == [1]
    assert clock.slept == []


def test_time_runs_out() -> None:
    clock = Clock()
    # 0.1 and 0.2 fit into half a second, 0.4 more would not.
    assert list(backoff(clock, timeout_ms=500).attempts()) == [1, 2, 3]


def test_work_between_attempts_counts() -> None:
    clock = Clock()

    def slow(attempts: Iterator[int]) -> list[int]:
        made = []
        for attempt in attempts:
            made.append(attempt)
            clock.now += 1
        return made

    assert slow(backoff(clock, timeout_ms=2_500).attempts()) == [1, 2, 3]


@pytest.mark.parametrize(("attempt_seconds", "longest"), [(0.0, 0.8), (0.1, 1.6), (1.0, 16.0), (60.0, 60.0)])
def test_waits_for_other_writers_are_no_longer_than_some_attempts(attempt_seconds: float, longest: float) -> None:
    clock = Clock()
    for _ in replace(backoff(clock, retries=12), attempts_long=16).attempts():
        clock.now += attempt_seconds
    assert clock.slept[:4] == [0.1, 0.2, 0.4, 0.8]
    assert max(clock.slept) == clock.slept[-1] == pytest.approx(longest)


def test_table_properties() -> None:
    waiting = Waiting()
    commits = waiting.for_commits({})
    assert (commits.retries, commits.min_wait_ms, commits.max_wait_ms) == (4, 100, 60_000)
    assert commits.total_timeout_ms == 30 * 60 * 1000
    assert commits.attempts_long == 16
    checks = waiting.for_status_checks({"commit.status-check.num-retries": "7"})
    assert (checks.retries, checks.min_wait_ms) == (7, 1_000)
    with pytest.raises(Invalid, match=r"commit\.retry\.num-retries"):
        waiting.for_commits({"commit.retry.num-retries": "often"})


_BEGINS = -1


def seconds_until_all_have_committed(writers: int, commits: int, attempt_seconds: float, *, is_capped: bool) -> float:
    """Writers that commit without a break on one table: of attempts that overlap, the first to end succeeds. Each has
    a clock of its own, which is right because it is always the earliest one's turn."""
    clocks = [Clock() for _ in range(writers)]
    chance = Random(7)

    def attempts(writer: int) -> Iterator[int]:
        policy = backoff(clocks[writer], retries=1000)
        waiting = replace(policy.waiting, random=chance.random)
        return replace(policy, waiting=waiting, attempts_long=16 if is_capped else None).attempts()

    running = [attempts(writer) for writer in range(writers)]
    left = [commits] * writers
    version = 0
    moments: list[tuple[float, int, int]] = []  # when, whose, and the version that an ending attempt began with
    for writer in range(writers):
        next(running[writer])
        heappush(moments, (0.0, writer, _BEGINS))
    while moments:
        now, writer, base = heappop(moments)
        clocks[writer].now = now
        if base == _BEGINS:
            heappush(moments, (now + attempt_seconds * (0.8 + 0.4 * chance.random()), writer, version))
            continue
        if base == version:
            version += 1
            left[writer] -= 1
            running[writer] = attempts(writer)
        if left[writer]:
            next(running[writer])
            heappush(moments, (clocks[writer].now, writer, _BEGINS))
    return max(clock.now for clock in clocks)


def test_colliding_writers_do_not_leave_the_table_idle() -> None:
    one_after_the_other = 16 * 50 * 0.05
    assert seconds_until_all_have_committed(16, 50, 0.05, is_capped=True) < 1.25 * one_after_the_other
    # What it is for: doubling waits alone leave the last writers asleep for minutes.
    assert seconds_until_all_have_committed(16, 50, 0.05, is_capped=False) > 2 * one_after_the_other
