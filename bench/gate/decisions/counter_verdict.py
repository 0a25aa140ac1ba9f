"""Comparing counted work with the baseline, and moving the baseline (a ratchet: down freely, up only by name)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from itertools import permutations

from icebench.bench.gate.decisions.baseline import Baseline, CaseResult
from icebench.bench.gate.decisions.counter_kinds import Kind, depends_on_environment, is_within, kind_of

CHECKSUM = "checksum"
"""The name under which a changed answer is reported and allowed."""


SLIGHT = 0.05
"""By which share calls of functions may rise, if nothing else does, for time to decide."""


class ExitCode(IntEnum):
    """What the process returns."""

    PASS = 0
    REGRESSION = 1
    ERROR = 2
    INCONCLUSIVE = 3
    CONFIGURATION = 4


class Change(Enum):
    """One difference between the baseline and now."""

    INCREASED = "increased"
    ANSWER_CHANGED = "answer changed"
    NEW_CASE = "new case"
    MISSING_CASE = "missing case"
    NEW_COUNTER = "new counter"
    MISSING_COUNTER = "missing counter"
    DECREASED = "decreased"
    MOVED = "moved"
    UNSEEN = "of another environment, not compared,"


REGRESSIONS = frozenset({Change.INCREASED, Change.ANSWER_CHANGED})
"""Changes for the worse: exit code 1."""

UNCOVERED = frozenset({Change.NEW_CASE, Change.MISSING_CASE, Change.NEW_COUNTER, Change.MISSING_COUNTER})
"""The baseline and the cases do not fit, and what nobody compares is not gated: exit code 4."""

_NEEDS_A_NAME = frozenset({Change.INCREASED, Change.ANSWER_CHANGED, Change.MISSING_CASE, Change.MISSING_COUNTER})
"""Changes that hide a regression when accepted without looking."""


@dataclass(frozen=True)
class Finding:
    """One difference; `counter` is None where a whole case is new or missing, values are None where there is none."""

    change: Change
    case: str
    counter: str | None = None
    before: int | str | None = None
    now: int | str | None = None

    @property
    def fails(self) -> bool:
        """Whether this difference alone keeps the gate from passing."""
        return self.change in REGRESSIONS or self.change in UNCOVERED

    @property
    def name(self) -> str:
        """What `--allow` takes: ``case:counter``, or the case."""
        return self.case if self.counter is None else f"{self.case}:{self.counter}"

    def __str__(self) -> str:
        match self.change:
            case Change.NEW_CASE:
                return f"{self.case}: this case is not in the baseline"
            case Change.MISSING_CASE:
                return f"{self.case}: this case is in the baseline and was not run"
            case Change.NEW_COUNTER:
                return f"{self.case}: counter {self.counter} ({self.now}) is not in the baseline"
            case Change.MISSING_COUNTER:
                return f"{self.case}: counter {self.counter} (baseline {self.before}) was not counted"
            case Change.ANSWER_CHANGED:
                return f"{self.case}: the answer changed, {self.counter} {self.before} -> {self.now}"
        return f"{self.case}: {self.counter} {self.change.value} {self.before} -> {self.now}{self._ratio()}"

    def _ratio(self) -> str:
        if isinstance(self.before, int) and isinstance(self.now, int) and self.before > 0:
            return f" ({(self.now - self.before) / self.before:+.1%})"
        return ""


def is_slight(finding: Finding) -> bool:
    """Whether it says no more than that calls of functions rose a little: time is to decide what that costs."""
    return (
        (finding.change, finding.counter) == (Change.INCREASED, "function_calls")
        and isinstance(finding.before, int)
        and isinstance(finding.now, int)
        and finding.now < (1 + SLIGHT) * finding.before
    )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """All differences, worst first, and how many counters were compared."""

    findings: tuple[Finding, ...]
    cases: int
    counters: int

    @property
    def exit_code(self) -> ExitCode:
        """REGRESSION first; CONFIGURATION when nothing was compared or the baseline does not fit the cases."""
        changes = {f.change for f in self.findings}
        if changes & REGRESSIONS:
            return ExitCode.REGRESSION
        return ExitCode.CONFIGURATION if self.cases == 0 or changes & UNCOVERED else ExitCode.PASS

    @property
    def can_ratchet(self) -> bool:
        """Whether the baseline could move without any counter going up."""
        return any(f.change in {Change.DECREASED, Change.MOVED} for f in self.findings)


def compare(baseline: Baseline, now: Baseline) -> Verdict:
    """Compare what the cases counted. In another environment than that of the baseline, exact counters only.

    A counter that one case lacks and another has counts as 0 there, so work that appears in a case for the first time
    is an increase; a counter that no case of the baseline (or of this run) has is new (or missing). Checksums of
    different snapshots are not compared: the answers may differ.

    Args:
        baseline: What was accepted.
        now: What was counted.
    """
    comparison = _Comparison(
        known_before=_names(baseline.cases),
        known_now=_names(now.cases),
        exact_only=baseline.environment != now.environment,
    )
    findings = [Finding(Change.MISSING_CASE, name) for name in baseline.cases if name not in now.cases]
    compared = 0
    for name, result in now.cases.items():
        accepted = baseline.cases.get(name)
        if accepted is None:
            findings.append(Finding(Change.NEW_CASE, name))
            continue
        compared += sum(comparison.compares(counter) for counter in accepted.counters.keys() & result.counters.keys())
        findings.extend(comparison.differences(name, accepted, result))
    order = list(Change)
    findings.sort(key=lambda f: (order.index(f.change), f.name))
    return Verdict(findings=tuple(findings), cases=len(now.cases), counters=compared)


def _names(cases: Mapping[str, CaseResult]) -> frozenset[str]:
    return frozenset(counter for case in cases.values() for counter in case.counters)


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    known_before: frozenset[str]
    known_now: frozenset[str]
    exact_only: bool

    def compares(self, counter: str) -> bool:
        return not (self.exact_only and depends_on_environment(counter))

    def differences(self, name: str, accepted: CaseResult, result: CaseResult) -> Iterator[Finding]:
        if accepted.snapshot == result.snapshot and accepted.checksum != result.checksum:
            yield Finding(Change.ANSWER_CHANGED, name, CHECKSUM, accepted.checksum, result.checksum)
        for counter in sorted(accepted.counters.keys() | result.counters.keys()):
            before, count = accepted.counters.get(counter, 0), result.counters.get(counter, 0)
            if counter not in self.known_before:
                yield Finding(Change.NEW_COUNTER, name, counter, None, count)
            elif counter not in self.known_now:
                yield Finding(Change.MISSING_COUNTER, name, counter, before, None)
            elif self.compares(counter) and not is_within(counter, before, count):
                yield Finding(_change(counter, before, count), name, counter, before, count)


def _change(counter: str, before: int, count: int) -> Change:
    match kind_of(counter):
        case Kind.ANSWER:
            return Change.ANSWER_CHANGED
        case Kind.AVOIDED:
            return Change.MOVED
    return Change.INCREASED if count > before else Change.DECREASED


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """The next baseline, or what stands in its way.

    Args:
        baseline: The baseline to write; equal to the old one when `refused` is not empty.
        refused: Findings that must be allowed by name first.
        moved: Findings that the next baseline takes in, and last what it takes in uncompared, of another environment.
    """

    baseline: Baseline
    refused: tuple[Finding, ...]
    moved: tuple[Finding, ...]


def accept(baseline: Baseline, now: Baseline, allowed: Collection[str] = ()) -> Accepted:
    """Move the baseline to what was counted; what is within its tolerance stays, so that small steps add up.

    Decreases, new cases and new counters are taken as they are. An increase, a changed answer, a case or a counter that
    vanished is taken only when `allowed` holds its `Finding.name`; otherwise nothing moves. What `allowed` names is
    taken within its tolerance, too: near the end of it, runs of the same code pass and fail.
    """
    findings = compare(baseline, now).findings
    refused = tuple(f for f in findings if f.change in _NEEDS_A_NAME and f.name not in allowed)
    if refused:
        return Accepted(baseline=baseline, refused=refused, moved=())
    if baseline.environment != now.environment:
        return Accepted(baseline=now, refused=(), moved=(*findings, *_unseen(baseline, now)))
    cases = {name: _kept(name, baseline.cases.get(name), result, allowed) for name, result in now.cases.items()}
    return Accepted(baseline=Baseline(cases=cases, environment=now.environment), refused=(), moved=findings)


def _unseen(baseline: Baseline, now: Baseline) -> Iterator[Finding]:
    """The counters that depend on the environment, and would be findings in the same."""
    for finding in compare(replace(baseline, environment=now.environment), now).findings:
        if finding.change in {Change.INCREASED, Change.DECREASED} and depends_on_environment(finding.counter or ""):
            yield replace(finding, change=Change.UNSEEN)


def _kept(case: str, accepted: CaseResult | None, result: CaseResult, allowed: Collection[str]) -> CaseResult:
    if accepted is None:
        return result
    counters = dict(result.counters)
    for name, before in accepted.counters.items():
        if name in counters and f"{case}:{name}" not in allowed and is_within(name, before, counters[name]):
            counters[name] = before
    return replace(result, counters=counters)


def admissible(runs: Collection[Baseline]) -> tuple[str, ...]:
    """What differed between runs of the same code by more than its tolerance, as ``case:counter``: it cannot be gated.

    Args:
        runs: Of several processes, which should differ in hash seed at least.
    """
    found = set()
    for one, other in permutations(runs, 2):
        found |= {finding.name for finding in compare(one, other).findings}
    return tuple(sorted(found))
