"""What `icebench.pytest` does: plans of scans in tests, compared with limits or with the baseline of their module."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import icebench
from icebench.bench.cli.baselines import read_baseline
from icebench.bench.cli.places import write_whole
from icebench.bench.gate.cases.count_cases import NO_ROWS
from icebench.bench.gate.cases.planned_work import planning_stages
from icebench.bench.gate.decisions.baseline import Baseline, CaseResult, encode
from icebench.bench.gate.decisions.counter_verdict import Change, Finding, accept, compare

ACCEPT = "--icebench-accept"
"""The option of pytest that writes baselines."""


def baseline_of(module: Path) -> Path:
    """Where the baseline of a test module is: beside it."""
    return module.with_name(f"{module.stem}.icebench.json")


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What was counted of a scan, compared with what it may be.

    Args:
        faults: What fails, a line each.
        before: The counters of the baseline; None where there are limits.
        is_missing: Whether there is nothing to compare with.
        less: Counters that are less than in the baseline, a line each.
    """

    faults: tuple[str, ...]
    before: Mapping[str, int] | None = None
    is_missing: bool = False
    less: tuple[str, ...] = ()

    def message(self, scan: icebench.Scan, counters: Mapping[str, int]) -> str:
        """The faults, and which stages of planning let the files through; raises EngineError as `Scan.explain`."""
        stages = [] if self.is_missing else [planning_stages(scan, counters, self.before)]
        return "\n".join([*self.faults, repr(scan), *stages])


def compare_with_limits(limits: Mapping[str, int], counters: Mapping[str, int]) -> Compared:
    """Compare counters with the most that each may be."""
    over = [(counter, counters[counter], limit) for counter, limit in limits.items() if counters[counter] > limit]
    return Compared(faults=tuple(f"{counter}: {now:,}, at most {limit:,} expected" for counter, now, limit in over))


def compare_with_baseline(module: Path, case: str, counters: Mapping[str, int]) -> Compared:
    """Compare counters with those that the baseline of a test module has for a case.

    Raises:
        ConfigError: The baseline cannot be decoded.
    """
    path = baseline_of(module)
    baseline = _read(path)
    if case not in baseline.cases:
        fault = f"{path.name} has no {case}: pytest {ACCEPT} writes it, to be committed"
        return Compared(faults=(fault,), is_missing=True)
    before = baseline.cases[case]
    found = compare(Baseline(cases={case: before}), Baseline(cases={case: _result(counters)})).findings
    faults = [_line(finding) for finding in found if finding.fails]
    if faults:
        faults.append(f"Expected by {path.name}; if this is wanted: pytest {ACCEPT}")
    less = tuple(str(finding) for finding in found if finding.change is Change.DECREASED)
    return Compared(faults=tuple(faults), before=before.counters, less=less)


def accept_cases(
    module: Path, cases: Mapping[str, Mapping[str, int]], ran: Collection[str], collected: Collection[str] | None
) -> list[str]:
    """Write the cases of a test module into its baseline, and remove those that no test has any more.

    Args:
        module: The test module.
        cases: The counters of each case of the tests that passed.
        ran: The names of the tests that passed: what they have not counted, they do not gate.
        collected: The names of all tests of the module, to remove the cases of others; None to remove none of them.

    Returns:
        What changed, a line each.

    Raises:
        ConfigError: The baseline cannot be decoded.
    """
    path = baseline_of(module)
    old = _read(path)
    now = {name: _result(counters) for name, counters in cases.items()}
    for name, case in old.cases.items():
        is_gone = _is_of(name, ran) or (collected is not None and not _is_of(name, collected))
        if name not in now and not is_gone:
            now[name] = case
    counted = Baseline(cases=now)
    allowed = {finding.name for finding in compare(old, counted).findings}
    moved = accept(old, counted, allowed)
    if moved.baseline != old:
        if moved.baseline.cases:
            write_whole(path, encode(moved.baseline))
        else:
            path.unlink()
    return [f"{path.name}: {_of_case(finding)}" for finding in moved.moved]


def _read(path: Path) -> Baseline:
    return read_baseline(path) if path.is_file() else Baseline()


def _result(counters: Mapping[str, int]) -> CaseResult:
    return CaseResult(counters=counters, checksum=NO_ROWS)


def _is_of(case: str, tests: Collection[str]) -> bool:
    """Whether a case is of one of these tests: a case is called as its test, or has its own name behind a slash."""
    return case in tests or any(case.startswith(f"{test}/") for test in tests)


def _line(finding: Finding) -> str:
    if finding.change is Change.INCREASED and isinstance(finding.now, int) and isinstance(finding.before, int):
        share = f" ({finding.now / finding.before - 1:+.1%})" if finding.before else ""
        return f"{finding.counter}: {finding.now:,}, {finding.before:,} expected{share}"
    return str(finding)


def _of_case(finding: Finding) -> str:
    match finding.change:
        case Change.NEW_CASE:
            return f"{finding.case} is new"
        case Change.MISSING_CASE:
            return f"{finding.case} is removed"
    return str(finding)
