"""Interleaves trials, so that drift of the machine affects all of them equally.

A machine's speed drifts: other programs, clock frequency, garbage, caches. Running all repetitions of one case before
the next would read the drift as a difference. Here each round runs every trial once, in an order drawn anew, so that a
round is a set of pairs and no case always follows the same other.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol, runtime_checkable

from icebench.bench.execution.conditions import Conditions
from icebench.bench.execution.pace import Pace
from icebench.bench.execution.recorder import Recorder
from icebench.bench.execution.trial import Trial
from icebench.bench.garbage import keep_out, out_of_collection
from icebench.bench.processes.process_tree import ProcessTree
from icebench.bench.progress import Progress
from icebench.bench.records.case import Case, Cost, Sample

WINDOW_SECONDS = 0.1
AROUND_SECONDS = 0.02
"""About what goes by around each run: a handle is opened, garbage collected."""
STEADY = 0.9
"""A case is warm when its processor time in a window of runs is at least this share of that in the window before."""


class Executor(Protocol):
    """Runs a trial once."""

    def run(self, trial: Trial) -> Cost:
        """What the timed part took; whatever the trial raises comes through."""
        ...


@runtime_checkable
class Elsewhere(Protocol):
    """What a timed part gives whose work was done by a process that measured itself."""

    def cost(self, wall: float) -> Cost:
        """What it took; called after the clock has stopped, once."""
        ...


class ClockExecutor:
    """The real executor.

    Args:
        clock: Monotonic seconds.
        settle: Called after preparation, before the clock starts. Collecting garbage here keeps one case from paying
            for what another left; collection stays on inside the timed part, because users have it on.
        tree: Measures processor time and memory.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        settle: Callable[[], object] = gc.collect,
        tree: ProcessTree | None = None,
    ) -> None:
        self._clock = clock
        self._settle = settle
        self._tree = tree or ProcessTree()

    def run(self, trial: Trial) -> Cost:
        assert trial.prepare is not None
        timed = trial.prepare()
        self._settle()
        self._tree.start(in_children=trial.in_children)
        start = self._clock()
        kept = timed()
        wall = self._clock() - start
        cpu, memory = self._tree.stop()
        cost = kept.cost(wall) if isinstance(kept, Elsewhere) else Cost(wall=wall, cpu=cpu, memory=memory)
        # Only now may the result be freed: freeing it is not part of what was timed.
        del kept
        return cost if trial.after is None else replace(cost, more={**cost.more, **trial.after()})


@dataclass(kw_only=True)
class Work:
    """How much of what a workload's cases will take is done: by seconds, as a Spark job is no plan of ten files.

    Args:
        pace: How often and how long.
        least: The least seconds of a run of each case; None for those that have not run, which take the usual time.
        recorded: The least seconds of a recorded run of the cases that have one.
    """

    pace: Pace
    least: dict[Case, float | None]
    recorded: dict[Case, float] = field(default_factory=dict)
    done: float = 0.0
    warm: dict[Case, float] = field(default_factory=dict)
    rounds: dict[Case, int] = field(default_factory=dict)

    def ran(self, case: Case, cost: Cost, *, recorded: bool) -> None:
        """A run is over."""
        known, seconds = self.least[case], cost.wall + AROUND_SECONDS
        self.done += seconds
        if recorded:
            self.rounds[case] = self.rounds.get(case, 0) + 1
            self.recorded[case] = min(cost.wall, self.recorded.get(case, cost.wall))
        else:
            self.warm[case] = self.warm.get(case, 0.0) + seconds
        if known is None or not recorded:
            self.least[case] = cost.wall if known is None else min(known, cost.wall)

    def wanted(self, case: Case) -> int:
        """How many rounds a case is to have in all, which may change with each; before the first, that one.

        What is not recorded does not count: an attempt that goes on would not have it, and stop at another round.
        """
        return self.pace.rounds(case.measurement, self.recorded.get(case, math.inf))

    def share(self, alive: Collection[Case], warming: Collection[Case]) -> float:
        """Of all the work of the cases that are left, those that are not warm among them."""
        known = [seconds for seconds in self.least.values() if seconds is not None]
        usual = sum(known) / len(known) if known else 0.0
        left = 0.0
        for case in alive:
            seconds = self.least[case]
            seconds = usual if seconds is None else seconds
            rounds = self.wanted(case) if case in self.recorded else self.pace.rounds(case.measurement, seconds)
            left += max(0, rounds - self.rounds.get(case, 0)) * (seconds + AROUND_SECONDS)
        for case in warming:
            seconds = self.least[case]
            windows = 2 * max(usual if seconds is None else seconds, WINDOW_SECONDS)
            left += max(0.0, min(self.pace.warming(case.measurement), windows) - self.warm.get(case, 0.0))
        return self.done / (self.done + left) if self.done else 0.0


@dataclass(kw_only=True)
class Runner:
    """Runs the trials of one workload after another.

    Args:
        pace: How often and how long.
        executor: Runs and measures.
        recorder: Takes samples and failures.
        progress: Called every round.
        seed: Draws the order of every round.
        process: The number of this process in its run.
        processes: How many the definition has. Numbers that are equal modulo it are attempts at the same one: a process
            that goes on where another was stopped has a number of its own, as it has a life of its own.
        taken: Samples of earlier attempts at this run, which are not taken again.
        conditions: Observes what the machine does besides.
    """

    pace: Pace
    executor: Executor
    recorder: Recorder
    progress: Progress
    seed: int
    process: int = 0
    processes: int = 1
    taken: Mapping[Case, Collection[Sample]] = field(default_factory=dict)
    conditions: Callable[[], Conditions] = Conditions

    def run(self, workload: str, trials: Sequence[Trial]) -> None:
        """Run each until it is warm, then all in rounds; a trial that raises is a failure and is taken out with its
        samples, and the others go on.

        Raises:
            ValueError: Two trials are of one case.
        """
        alive = {trial.case: trial for trial in trials if trial.prepare is not None}
        if len({trial.case for trial in trials}) != len(trials):
            raise ValueError("two trials are of one case")
        random = Random(f"{self.seed} {self.process} {workload}")
        earlier = {
            case: [s for s in self.taken.get(case, ()) if (s.process - self.process) % self.processes == 0]
            for case in alive
        }
        there = {case: {s.round for s in samples} for case, samples in earlier.items()}
        work = Work(pace=self.pace, least={case: _least_seconds(trial, earlier[case]) for case, trial in alive.items()})
        work.rounds = {case: len(known) for case, known in there.items()}
        work.recorded = {case: min(s.cost.wall for s in samples) for case, samples in earlier.items() if samples}
        # With the open tables of all trials, and what passes before left: to walk them before each run took longer than
        # most runs.
        with out_of_collection():
            self._warm(workload, alive, there, random, work)
            self._measure(workload, alive, there, random, work)

    def _measure(
        self,
        workload: str,
        alive: dict[Case, Trial],
        there: Mapping[Case, Collection[int]],
        random: Random,
        work: Work,
    ) -> None:
        """Run all in rounds, each in another order."""
        for ordinal in range(max((self.pace.repetitions[case.measurement] for case in alive), default=0)):
            order = [case for case in alive if ordinal < work.wanted(case) and ordinal not in there[case]]
            if not order:
                continue
            random.shuffle(order)
            conditions = self.conditions()
            keep_out()
            for case in order:
                if (cost := self._attempt(alive, case)) is not None:
                    self.recorder.sample(case, Sample(process=self.process, round=ordinal, cost=cost))
                    work.ran(case, cost, recorded=True)
            self.recorder.round(workload, self.process, ordinal, conditions.since())
            total = max(map(work.wanted, alive), default=ordinal + 1)
            detail = f"round {ordinal + 1} of {total}, {len(order)} cases"
            self.progress(workload, detail, ordinal + 1, total, work.share(alive, ()))

    def _warm(
        self,
        workload: str,
        alive: dict[Case, Trial],
        there: Mapping[Case, Collection[int]],
        random: Random,
        work: Work,
    ) -> None:
        """Run each whose rounds were not all run by an earlier attempt until its processor time falls no more."""
        runs: dict[Case, list[Cost]] = {case: [] for case in alive if len(there[case]) < work.wanted(case)}
        waiting = [case for case in runs if not self._is_warm(alive[case], runs[case])]
        shown = -1
        while waiting:
            warm = len(runs) - len(waiting)
            if warm != shown:
                detail = f"warming up {len(waiting)} of {len(runs)} cases"
                self.progress(workload, detail, warm, len(runs), work.share(alive, waiting))
            shown = warm
            random.shuffle(waiting)
            keep_out()
            for case in waiting:
                if (cost := self._attempt(alive, case)) is not None:
                    runs[case].append(cost)
                    work.ran(case, cost, recorded=False)
                self.recorder.check()
            waiting = [case for case in waiting if case in alive and not self._is_warm(alive[case], runs[case])]

    def _is_warm(self, trial: Trial, runs: Sequence[Cost]) -> bool:
        least = self.pace.warmups[trial.case.measurement]
        if trial.case.cache == "fresh":
            return True
        if trial.seconds is not None and trial.seconds >= self.pace.case_seconds:
            return True  # where one run outlasts the patience, there is no time for more that are not recorded
        if len(runs) < max(least, 0 if trial.seconds is not None else 1):
            return False
        return sum(cost.wall for cost in runs) >= self.pace.warming(trial.case.measurement) or is_steady(runs)

    def _attempt(self, alive: dict[Case, Trial], case: Case) -> Cost | None:
        try:
            return self.executor.run(alive[case])
        except Exception as error:  # noqa: BLE001 - any engine may raise anything; the run reports it and goes on
            self.recorder.fail(case, error)
            self.recorder.drop(case)
            del alive[case]
            return None


def _least_seconds(trial: Trial, earlier: Collection[Sample]) -> float | None:
    """What is known of the least seconds of a run before there is one."""
    known = [sample.cost.wall for sample in earlier]
    if trial.seconds is not None:
        known.append(trial.seconds)
    return min(known, default=None)


def is_steady(runs: Sequence[Cost]) -> bool:
    """Whether processor time has stopped falling: the last window of runs against the one before. A window is as many
    runs as take a tenth of a second, at least one."""
    windows: list[float] = []
    wall = cpu = count = 0.0
    for cost in reversed(runs):
        wall, cpu, count = wall + cost.wall, cpu + cost.cpu, count + 1
        if wall >= WINDOW_SECONDS:
            windows.append(cpu / count)
            if len(windows) == 2:
                return windows[0] >= STEADY * windows[1]
            wall = cpu = count = 0.0
    return False
