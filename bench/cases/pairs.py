"""Compares two revisions: counters first, then processor time in pairs of processes, as `icebench.bench.gate.timing`
decides."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from sysconfig import get_path
from typing import Protocol

from icebench.bench.cases.revisions import CaseProcessFailed, Unbuildable
from icebench.bench.cases.timing import Time
from icebench.bench.gate.baseline import Baseline, decode
from icebench.bench.gate.kinds import is_within
from icebench.bench.gate.outcome import CaseOutcome, Outcome
from icebench.bench.gate.stacks import Stacks
from icebench.bench.gate.timing import CONFIRMING, LOOKS, Stand, confirm, ratio_of, screen
from icebench.bench.gate.verdict import REGRESSIONS, Finding, compare

Progress = Callable[[str], object]


class Side(Protocol):
    """A revision that can be run: `icebench.bench.cases.revisions.Revision`."""

    @property
    def name(self) -> str: ...

    def run(self, module: str, *arguments: str, seed: int = 0) -> str: ...


@dataclass(kw_only=True)
class Pairs:
    """Pairs of processes, base and head, in an order drawn anew.

    Args:
        base: One side.
        head: The other.
        warehouse: The tables that both read.
        random: Draws orders and hash seeds.
        deadline: When to stop, by `clock`.
        clock: Monotonic seconds.
        progress: Called with what is done.
    """

    base: Side
    head: Side
    warehouse: Path
    random: Random
    deadline: float = math.inf
    clock: Callable[[], float] = time.monotonic
    progress: Progress = lambda _: None
    cases: dict[str, CaseOutcome] = field(default_factory=dict)
    _longest: float = 0.0

    def decide(self, names: Sequence[str]) -> Mapping[str, CaseOutcome]:
        """The verdict on each case."""
        logs: dict[str, list[float]] = {name: [] for name in names}
        stands = dict.fromkeys(names, Stand.UNDECIDED)
        for look in LOOKS:
            self._extend(logs, [n for n in names if stands[n] is Stand.UNDECIDED], look, "screening")
            for name in names:
                if stands[name] is Stand.UNDECIDED and len(logs[name]) >= look:
                    stands[name] = screen(logs[name])
        suspects = [name for name in names if stands[name] is Stand.SUSPECTED]
        fresh: dict[str, list[float]] = {name: [] for name in suspects}
        self._extend(fresh, suspects, CONFIRMING, "confirming")
        for name in suspects:
            done = len(fresh[name]) >= CONFIRMING
            stands[name] = confirm(fresh[name], len(suspects)) if done else Stand.INCONCLUSIVE
        for name in names:
            if name not in self.cases:
                stand = Stand.INCONCLUSIVE if stands[name] is Stand.UNDECIDED else stands[name]
                decided = fresh.get(name) or logs[name]
                self.cases[name] = CaseOutcome(stand=stand, ratio=ratio_of(decided) if decided else None)
        return {name: self.cases[name] for name in names}

    def _extend(self, logs: dict[str, list[float]], names: Sequence[str], pairs: int, what: str) -> None:
        """Add pairs until each case has enough, or no time is left."""
        while alive := [n for n in names if n not in self.cases and len(logs[n]) < pairs]:
            started = self.clock()
            if started + self._longest > self.deadline:
                return
            self.progress(f"{what}: pair {len(logs[alive[0]]) + 1} of {pairs}, {len(alive)} cases")
            for name, log in self._pair(alive).items():
                logs[name].append(log)
            self._longest = max(self._longest, self.clock() - started)

    def _pair(self, names: Sequence[str]) -> dict[str, float]:
        seed = self.random.randrange(2**32)
        sides = [("base", self.base), ("head", self.head)]
        self.random.shuffle(sides)
        # Not by the side, which may be the same twice.
        times: dict[str, Mapping[str, Time]] = {
            role: json.loads(side.run("icebench.bench.cases.timing", str(self.warehouse), *names, seed=seed))
            for role, side in sides
        }
        found = {}
        for name in names:
            base, head = times["base"][name], times["head"][name]
            if "error" in head:
                self.cases[name] = CaseOutcome(stand=Stand.FAILED, note=f"head: {head['error']}")
            elif "error" in base:
                self.cases[name] = CaseOutcome(stand=Stand.INCOMPARABLE, note=f"base: {base['error']}")
            else:
                found[name] = math.log(head["seconds"] / base["seconds"])
        return found


def unaccepted(base: Baseline, head: Baseline, accepted: Baseline) -> list[Finding]:
    """Counters of head that are worse than base's, unless head's own baseline says that they are meant to be so."""

    def is_accepted(finding: Finding) -> bool:
        case = accepted.cases.get(finding.case)
        if case is None or finding.counter is None or not isinstance(finding.now, int):
            return case is not None and case.checksum == finding.now
        known = case.counters.get(finding.counter, 0)
        return finding.now <= known or is_within(finding.counter, known, finding.now)

    worse = [finding for finding in compare(base, head).findings if finding.change in REGRESSIONS]
    return [finding for finding in worse if not is_accepted(finding)]


def compare_revisions(pairs: Pairs, names: Sequence[str], accepted: Baseline) -> Outcome:
    """Counters first, then, where these are no worse, time; for what regressed, a profile of both sides.

    Args:
        pairs: The revisions.
        names: The cases to time.
        accepted: Head's committed baseline of counters.

    Raises:
        CaseProcessFailed: A process failed as a whole.
        Unbuildable: Base cannot run the cases.
    """
    base, head = pairs.base, pairs.head
    pairs.progress("counting the work of both")
    try:
        before = decode(base.run("icebench.bench.cases.counters"))
    except CaseProcessFailed as error:
        raise Unbuildable(f"base cannot run the cases of this checkout: {error}") from error
    now = decode(head.run("icebench.bench.cases.counters"))
    findings = unaccepted(before, now, accepted)
    if findings:
        return Outcome(base=base.name, head=head.name, counters=[str(finding) for finding in findings])
    cases = {}
    for name, case in pairs.decide(names).items():
        cases[name] = case
        if case.stand is Stand.REGRESSED:
            pairs.progress(f"profiling {name}")
            cases[name] = CaseOutcome(stand=case.stand, ratio=case.ratio, stacks=_profiles(pairs, name))
    return Outcome(base=base.name, head=head.name, cases=cases, notes=_changes(before, now, cases))


def _changes(base: Baseline, head: Baseline, cases: Mapping[str, CaseOutcome]) -> list[str]:
    """What was counted differently in cases that regressed."""
    regressed = {name for name, case in cases.items() if case.stand is Stand.REGRESSED}
    return [str(finding) for finding in compare(base, head).findings if finding.case in regressed]


def _profiles(pairs: Pairs, name: str) -> list[Stacks]:
    """The call stacks of base and of head."""
    arguments = ("icebench.bench.cases.timing", str(pairs.warehouse), name, "--profile", get_path("purelib"))
    return [json.loads(side.run(*arguments)) for side in (pairs.base, pairs.head)]
