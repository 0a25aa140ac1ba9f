"""Compares two revisions: counters first, then processor time in pairs of processes, as
`icebench.bench.gate.decisions.time_verdict` decides."""

from __future__ import annotations

import json
import math
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from sysconfig import get_path
from typing import Protocol

from icebench.bench.gate.cases.time_cases import Time
from icebench.bench.gate.decisions.baseline import Baseline, decode
from icebench.bench.gate.decisions.counter_kinds import depends_on_environment, is_within
from icebench.bench.gate.decisions.counter_verdict import REGRESSIONS, Change, Finding, compare, is_slight
from icebench.bench.gate.decisions.outcome import CaseOutcome, Outcome
from icebench.bench.gate.decisions.stacks import Stacks
from icebench.bench.gate.decisions.time_verdict import CONFIRMING, LOOKS, Stand, confirm, ratio_of, screen
from icebench.bench.gate.revisions.build import CaseProcessFailed, OutOfTime, Unbuildable

Progress = Callable[[str], object]
Counted = Callable[["Side", float], str]
"""What a side counts, as a baseline's text, within so many seconds."""


class Side(Protocol):
    """A revision that can be run: `icebench.bench.gate.revisions.build.Revision`."""

    @property
    def name(self) -> str: ...

    def run(
        self,
        module: str,
        *arguments: str,
        seed: int = 0,
        seconds: float = math.inf,
        beside: socket.socket | None = None,
    ) -> str: ...


@dataclass(kw_only=True)
class Pairs:
    """Pairs of processes, base and head, whose runs take turns on one processor; which side begins is drawn.

    Args:
        base: One side.
        head: The other.
        warehouse: The tables that both read.
        random: Draws orders and hash seeds.
        deadline: When to stop, by `clock`.
        clock: Monotonic seconds.
        progress: Called with what is done.
        at_once: How many pairs run at once, each on a processor of its own.
    """

    base: Side
    head: Side
    warehouse: Path
    random: Random
    deadline: float = math.inf
    clock: Callable[[], float] = time.monotonic
    progress: Progress = lambda _: None
    at_once: int = 1
    cases: dict[str, CaseOutcome] = field(default_factory=dict)
    _longest: float = 0.0

    def decide(self, names: Sequence[str]) -> Mapping[str, CaseOutcome]:
        """The verdict on each case."""
        logs: dict[str, list[float]] = {name: [] for name in names}
        stands = self._look(logs, names, LOOKS, "screening", screen)
        suspects = [name for name in names if stands[name] is Stand.SUSPECTED]
        fresh: dict[str, list[float]] = {name: [] for name in suspects}
        stands |= self._look(fresh, suspects, CONFIRMING, "confirming", partial(confirm, suspects=len(suspects)))
        for name in names:
            if name not in self.cases:
                decided = fresh.get(name) or logs[name]
                self.cases[name] = CaseOutcome(stand=stands[name], ratio=ratio_of(decided) if decided else None)
        return {name: self.cases[name] for name in names}

    def _look(
        self,
        logs: dict[str, list[float]],
        names: Sequence[str],
        looks: Sequence[int],
        what: str,
        decided: Callable[..., Stand],
    ) -> dict[str, Stand]:
        """Add pairs until each case is decided at one of the looks, or no time is left, which is the last one."""
        stands = dict.fromkeys(names, Stand.UNDECIDED)
        for look in looks:
            self.extend(logs, [name for name in names if stands[name] is Stand.UNDECIDED], look, what)
            for name in names:
                if stands[name] is Stand.UNDECIDED:
                    stands[name] = decided(logs[name], last=len(logs[name]) < look)
        return stands

    def extend(self, logs: dict[str, list[float]], names: Sequence[str], pairs: int, what: str) -> None:
        """Add pairs to `logs`, ln(head / base) by case, until each case has enough, or no time is left; a case that a
        side cannot run has its outcome in `cases` instead."""
        while alive := [n for n in names if n not in self.cases and len(logs[n]) < pairs]:
            started = self.clock()
            if started + self._longest > self.deadline:
                return
            made = len(logs[alive[0]])
            count = min(self.at_once, pairs - made)
            self.progress(f"{what}: pairs {made + 1} to {made + count} of {pairs}, {len(alive)} cases")
            seeds = [self.random.randrange(2**32) for _ in range(count)]
            try:
                with ThreadPoolExecutor(count) as pool:
                    found = list(pool.map(partial(self._pair, alive), range(count), seeds))
            except OutOfTime:
                return
            for times in found:
                self._take(logs, alive, times)
            self._longest = max(self._longest, self.clock() - started)

    def left(self) -> float:
        """Seconds until the deadline.

        Raises:
            OutOfTime: There are none.
        """
        seconds = self.deadline - self.clock()
        if seconds <= 0:
            raise OutOfTime
        return seconds

    def _pair(self, names: Sequence[str], number: int, seed: int) -> list[Mapping[str, Time]]:
        """What processes of base and of head timed, on the processor of that number; the seed draws which begins."""
        arguments = ("icebench.bench.gate.cases.time_cases", str(self.warehouse), *names, "--processor", str(number))
        seconds = self.left()

        def run(side: Side, beside: socket.socket, order: Sequence[str]) -> Mapping[str, Time]:
            said = side.run(*arguments, *order, seed=seed, seconds=seconds, beside=beside)
            times: Mapping[str, Time] = json.loads(said)
            return times

        orders: list[Sequence[str]] = [(), ("--second",)]
        Random(seed).shuffle(orders)
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(run, (self.base, self.head), socket.socketpair(), orders))

    def _take(self, logs: dict[str, list[float]], names: Sequence[str], times: Sequence[Mapping[str, Time]]) -> None:
        """Add the log ratios of a pair: of each case the median over runs that followed each other."""
        for name in names:
            base, head = (side[name] for side in times)
            if "error" in head:
                self.cases[name] = CaseOutcome(stand=Stand.FAILED, note=f"head: {head['error']}")
            elif "error" in base:
                self.cases[name] = CaseOutcome(stand=Stand.INCOMPARABLE, note=f"base: {base['error']}")
            else:
                runs = zip(base["seconds"], head["seconds"], strict=True)
                logs[name].append(median(math.log(after / before) for before, after in runs))


def unaccepted(base: Baseline, head: Baseline, accepted: Baseline) -> list[Finding]:
    """Counters of head that are worse than base's, unless head's own baseline says that they are meant to be so. One of
    another environment says nothing of counters that depend on it."""

    def is_accepted(finding: Finding) -> bool:
        case = accepted.cases.get(finding.case)
        if case is None or finding.counter is None or not isinstance(finding.now, int):
            return case is not None and case.checksum == finding.now
        if accepted.environment != head.environment and depends_on_environment(finding.counter):
            return False
        known = case.counters.get(finding.counter, 0)
        if finding.change is Change.ANSWER_CHANGED:
            return finding.now == known
        return finding.now <= known or is_within(finding.counter, known, finding.now)

    worse = [finding for finding in compare(base, head).findings if finding.change in REGRESSIONS]
    return [finding for finding in worse if not is_accepted(finding)]


def compare_revisions(
    pairs: Pairs, names: Sequence[str], accepted: Baseline, counted: Counted | None = None
) -> Outcome:
    """Counters first, then, where these are no worse, time; for what regressed, a profile of both sides. Where nothing
    but calls of functions is more, and by little, time decides, of these cases too.

    Args:
        pairs: The revisions.
        names: The cases to time.
        accepted: Head's committed baseline of counters.
        counted: Gives what a side counts; `count_now` where that is not kept.

    Raises:
        CaseProcessFailed: A process failed as a whole.
        Unbuildable: Base cannot run the cases.
    """
    base, head = pairs.base, pairs.head
    try:
        before, now = _counted(pairs, counted or count_now)
    except OutOfTime:
        return undecided(base.name, head.name, names, "counting")
    findings = unaccepted(before, now, accepted)
    slight = [finding for finding in findings if is_slight(finding)]
    if len(slight) < len(findings):
        return Outcome(base=base.name, head=head.name, counters=[str(finding) for finding in findings])
    cases = {}
    for name, case in pairs.decide([*dict.fromkeys((*names, *(finding.case for finding in slight)))]).items():
        cases[name] = case
        if case.stand is Stand.REGRESSED:
            pairs.progress(f"profiling {name}")
            with suppress(OutOfTime):
                cases[name] = CaseOutcome(stand=case.stand, ratio=case.ratio, stacks=_profiles(pairs, name))
    notes = [f"{finding}; time decides" for finding in slight]
    return Outcome(
        base=base.name, head=head.name, cases=cases, notes=[*dict.fromkeys((*notes, *_changes(before, now, cases)))]
    )


def undecided(base: str, head: str, names: Sequence[str], what: str) -> Outcome:
    """The outcome where the budget was over before anything was timed."""
    note = f"The budget was over while {what}."
    return Outcome(base=base, head=head, cases={n: CaseOutcome(stand=Stand.INCONCLUSIVE) for n in names}, notes=[note])


def _counted(pairs: Pairs, counted: Counted) -> tuple[Baseline, Baseline]:
    """What both sides count."""
    pairs.progress("counting the work of both")
    try:
        before = decode(counted(pairs.base, pairs.left()))
    except CaseProcessFailed as error:
        raise Unbuildable(f"base cannot run the cases of this checkout: {error}") from error
    return before, decode(counted(pairs.head, pairs.left()))


def count_now(side: Side, seconds: float) -> str:
    """What a side counts, as a baseline's text."""
    return side.run("icebench.bench.gate.cases.count_cases", seconds=seconds)


def _changes(base: Baseline, head: Baseline, cases: Mapping[str, CaseOutcome]) -> list[str]:
    """What was counted differently in cases that regressed."""
    regressed = {name for name, case in cases.items() if case.stand is Stand.REGRESSED}
    return [str(finding) for finding in compare(base, head).findings if finding.case in regressed]


def _profiles(pairs: Pairs, name: str) -> list[Stacks]:
    """The call stacks of base and of head."""
    arguments = ("icebench.bench.gate.cases.time_cases", str(pairs.warehouse), name, "--profile", get_path("purelib"))
    return [json.loads(side.run(*arguments, seconds=pairs.left())) for side in (pairs.base, pairs.head)]
