"""Runs cases in turn, so that every engine sees the same weather.

A machine's speed drifts: other programs, clock frequency, garbage, caches. Running all repetitions of one engine before
the next would read the drift as a difference. Here each round runs every case once, in an order drawn anew for each
round, so that a round is a set of pairs and no case always follows the same other.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Protocol


@contextmanager
def out_of_collection() -> Iterator[None]:
    """Keeps what exists now out of garbage collection, until the end of the context.

    The modules of a harness with all its engines are 150,000 objects, which take 80 ms to walk: before every sample,
    and inside a timed part whenever the interpreter collects its oldest generation. A program with one engine has no
    such objects, so without them a figure is nearer to what a user sees.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@dataclass(frozen=True)
class Case:
    """Something to time.

    Args:
        name: Unique among the cases that are run together.
        prepare: Does what must not be timed and gives what must; called before every run.
    """

    name: str
    prepare: Callable[[], Callable[[], object]]


@dataclass(frozen=True)
class Timings:
    """Seconds by case, sample i from round i. A case that raised has its error and no samples."""

    seconds: Mapping[str, list[float]] = field(default_factory=dict)
    errors: Mapping[str, Exception] = field(default_factory=dict)


class Executor(Protocol):
    """Runs a case once."""

    def run(self, case: Case) -> float:
        """Seconds that the timed part took; whatever the case raises comes through."""
        ...


class ClockExecutor:
    """The real executor.

    Args:
        clock: Monotonic seconds.
        settle: Called after preparation, before the clock starts. Collecting garbage here keeps one case from paying
            for what another left; collection stays on inside the timed part, because users have it on.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, settle: Callable[[], object] = gc.collect
    ) -> None:
        self._clock = clock
        self._settle = settle

    def run(self, case: Case) -> float:
        timed = case.prepare()
        self._settle()
        start = self._clock()
        kept = timed()
        seconds = self._clock() - start
        # Only now may the result be freed: freeing it is not part of what was timed.
        del kept
        return seconds


def interleave(
    cases: Sequence[Case],
    *,
    repetitions: int,
    warmups: int,
    random: Random,
    executor: Executor,
    after_round: Callable[[int, int], None] | None = None,
) -> Timings:
    """Run every case `warmups` times unrecorded, then `repetitions` times, in rounds of random order.

    A case that raises is taken out, with its samples; the others go on.

    Args:
        cases: What to run; their names are unique.
        repetitions: Recorded rounds, at least 1.
        warmups: Unrecorded rounds before them, at least 0.
        random: Draws the order of each round.
        executor: Runs and times.
        after_round: Told how many rounds of how many are done.

    Raises:
        ValueError: Two cases share a name, or a count is too low.
    """
    if repetitions < 1 or warmups < 0:
        raise ValueError(f"{repetitions} repetitions after {warmups} warm-ups")
    seconds: dict[str, list[float]] = {case.name: [] for case in cases}
    if len(seconds) != len(cases):
        raise ValueError("two cases share a name")
    errors: dict[str, Exception] = {}
    for ordinal in range(warmups + repetitions):
        order = [case for case in cases if case.name not in errors]
        random.shuffle(order)
        for case in order:
            try:
                taken = executor.run(case)
            except Exception as error:  # noqa: BLE001 - any engine may raise anything; the run reports it and goes on
                errors[case.name] = error
                del seconds[case.name]
                continue
            if ordinal >= warmups:
                seconds[case.name].append(taken)
        if after_round is not None:
            after_round(ordinal + 1, warmups + repetitions)
    return Timings(seconds, errors)


def interleave_unevenly(
    cases: Mapping[str, Case], *, rounds: Mapping[str, int], warmups: int, random: Random, executor: Executor
) -> Timings:
    """As `interleave`, but slow cases stop earlier than others; the rounds that cases share come first.

    Args:
        cases: What to run, by its name.
        rounds: How many recorded rounds each case has, at least 1.
        warmups: Unrecorded rounds of all, before them.
        random: Draws the order of each round.
        executor: Runs and times.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    errors: dict[str, Exception] = {}
    done = 0
    for until in sorted(set(rounds.values())):
        taking_part = [case for name, case in cases.items() if rounds[name] >= until and name not in errors]
        timings = interleave(
            taking_part,
            repetitions=until - done,
            warmups=warmups if done == 0 else 0,
            random=random,
            executor=executor,
        )
        for name, values in timings.seconds.items():
            seconds[name] += values
        errors |= timings.errors
        done = until
    return Timings({name: values for name, values in seconds.items() if name not in errors}, errors)
