"""Many schedules, one after the other, and what was found."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.simulation.drawing import ending_of, simulate
from tests.simulation.shrinking import described, shrunk
from tests.simulation.world import deterministic


@dataclass
class Found:
    """What came of some schedules.

    Args:
        schedules: How many ran.
        calls: Calls to stores and catalogs.
        beyond_promise: Runs that ended because a writer took longer than orphan removal waits.
        outcomes: Operations by kind and outcome.
        failures: Kind of failure -> seeds, in order.
        seconds: Processor time.
    """

    schedules: int = 0
    calls: int = 0
    beyond_promise: int = 0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: dict[str, list[int]] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other: Found) -> None:
        """Take on what came of others."""
        self.schedules += other.schedules
        self.calls += other.calls
        self.beyond_promise += other.beyond_promise
        self.outcomes += other.outcomes
        self.seconds += other.seconds
        for kind, seeds in other.failures.items():
            self.failures[kind] = sorted([*self.failures.get(kind, ()), *seeds])

    def __str__(self) -> str:
        failed = "; ".join(f"{kind}: {len(seeds)} (seeds {seeds[:5]})" for kind, seeds in sorted(self.failures.items()))
        operations = sum(self.outcomes.values())
        return (
            f"{self.schedules} schedules, {operations} operations, {self.calls} calls, "
            f"{1000 * self.seconds / max(self.schedules, 1):.1f} ms each: {failed or 'nothing found'}"
        )


def explore(seeds: Sequence[int]) -> Found:
    """Run the schedules of seeds."""
    found = Found()
    started = time.process_time()
    with deterministic(), _rare_collection():
        for seed in seeds:
            _, result = simulate(seed)
            found.schedules += 1
            found.calls += result.calls
            found.beyond_promise += result.beyond_promise
            found.outcomes.update((record.operation.kind, record.outcome) for record in result.records)
            if result.failure is not None:
                found.failures.setdefault(result.failure.kind, []).append(seed)
    found.seconds = time.process_time() - started
    return found


@contextmanager
def _rare_collection() -> Iterator[None]:
    """A block in which little is searched for garbage, a tenth of a schedule's time: what the process holds already
    never is again."""
    former = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, *former[1:])
    try:
        yield
    finally:
        gc.set_threshold(*former)


def explain(seed: int) -> str:
    """The failure of a seed, shrunk and described; what the schedule was where nothing fails."""
    with deterministic():
        schedule, result = simulate(seed)
        if result.failure is None:
            return f"seed {seed}: nothing fails\n{described(schedule, result)}"
        return described(*shrunk(schedule, ending_of(seed)))


def chunks(first: int, count: int, size: int) -> Iterator[range]:
    """Seeds from `first` on, in parts."""
    for start in range(first, first + count, size):
        yield range(start, min(start + size, first + count))
