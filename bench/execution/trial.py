"""A case that is ready to be timed, and what measurements need to make one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from icebench.bench.engines.engine import Ability, AnyEngine
from icebench.bench.engines.registry import ENGINES
from icebench.bench.execution.pace import Pace
from icebench.bench.processes.process_tree import bytes_read
from icebench.bench.progress import Progress
from icebench.bench.records.case import Case, Evidence
from icebench.bench.truth.oracle import Answer
from icebench.bench.truth.rows import truth_at

Timed = Callable[[], object]


def works_in_children(engine: str) -> bool:
    """Whether the engine of that name works in processes that this one started: a Java virtual machine, its own."""
    return engine in ENGINES and (ENGINES[engine].needs_spark or ENGINES[engine].own_process)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A case whose result was checked to be right.

    Args:
        case: Unique in its run.
        evidence: What checking it found.
        prepare: Does what must not be timed and returns what must; called before every run. None if there is nothing to
            time because everything was counted.
        seconds: How long a run takes, where its check measured that.
        after: Checks what a run left behind, after the clock has stopped; returns further figures by metric.
        on_spark: Whether Spark works for it, whatever the engine.
    """

    case: Case
    evidence: Evidence
    prepare: Callable[[], Timed] | None = None
    seconds: float | None = None
    after: Callable[[], Mapping[str, float]] | None = None
    on_spark: bool = False

    @property
    def in_children(self) -> bool:
        """Whether processes that this one started work for it: Spark's, or the engine's (`works_in_children`)."""
        return self.on_spark or works_in_children(self.case.engine)


class Recording(Protocol):
    """Records what is not measured (see `icebench.bench.execution.recorder.Recorder`)."""

    def skip(self, case: Case, reason: str) -> None: ...

    def fail(self, case: Case, error: Exception) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What every measurement works with. `engines` are those that could be created, by name; `resources` are released
    when the workload's last round is over; `truth` returns the ground truth for the table of a metadata file, and may
    raise NoTruth; `bytes_read` returns how much was read so far where that engine runs, None if the system does not
    report it."""

    engines: Mapping[str, AnyEngine]
    recorder: Recording
    progress: Progress
    pace: Pace
    resources: ExitStack = field(default_factory=ExitStack)
    clock: Callable[[], float] = time.perf_counter
    truth: Callable[[str], TableTruth] = truth_at
    bytes_read: Callable[[str], int | None] = lambda engine: bytes_read(in_children=works_in_children(engine))

    def able(self, case: Case, *abilities: Ability, among: Sequence[str] | None = None) -> dict[str, AnyEngine]:
        """The engines (of those named) with one of the abilities; the others are recorded as skipped."""
        found = {}
        for name, engine in self.engines.items():
            if among is not None and name not in among:
                continue
            if engine.abilities.isdisjoint(abilities):
                self.recorder.skip(case.of(name), f"{name} offers no {abilities[0].value}")
            else:
                found[name] = engine
        return found


class TableTruth(Protocol):
    """The ground truth for the rows of a table."""

    def answer(self, columns: Sequence[str], filter: str | None = None) -> Answer: ...


class Measurement(Protocol):
    """One kind of figure on one table, or on several that belong together."""

    @property
    def case(self) -> Case:
        """What all its cases have in common; they are interleaved with those of the same workload."""
        ...

    def trials(self, bench: Bench) -> Iterator[Trial]:
        """Check every case once, and yield those that are right, ready to be timed. Others are recorded as failures.

        Raises:
            BenchError: Nothing of it can be measured.
        """
        ...
