"""Remarks on the reliability of figures, with advice, worst first."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from icebench.bench.execution.measurement import kind_of
from icebench.bench.execution.pace import BUILD, FEWEST_REPETITIONS
from icebench.bench.execution.run_file import Run
from icebench.bench.records.record import Failure, Record, Skipped
from icebench.bench.report.compare import median, spread, table_names
from icebench.bench.report.quantities import count, listed

NOISY = 0.15
"""An interquartile range above this share of the median makes a figure doubtful."""

SHOWN = 5
WRONG = "WrongAnswer"
"""The kind of a failure where an engine is known to be wrong."""


class Severity(IntEnum):
    """How much a remark takes away from the report."""

    ERROR = 0
    WARNING = 1
    NOTE = 2


@dataclass(frozen=True, kw_only=True)
class Remark:
    """`text` says what is the matter in one sentence, `advice` what to do about it."""

    severity: Severity
    text: str
    advice: str


UNCOMMITTED = Remark(
    severity=Severity.NOTE,
    text="The checkout had uncommitted changes, so the revision below is not exactly what ran.",
    advice="Commit before a run that is to be kept.",
)


def remarks_of(run: Run) -> tuple[Remark, ...]:
    """All remarks on a run, worst first."""
    found = [] if run.complete else [interrupted(run.run_id)]
    found += map(_failed, failures_of(run))
    figures = {(each.case.measurement, name) for each in run.measured for name in each.evidence.figures}
    # A figure of a case is not repeated, whatever the repetitions.
    found += _of_samples(r for r in run.records if (r.measurement, r.metric) not in figures)
    if empty := list(dict.fromkeys(record.case for record in run.records if _matches_nothing(record))):
        found.append(
            Remark(
                severity=Severity.WARNING,
                text=f"No row meets {listed(empty)}: a plan without files is the best of all layouts.",
                advice="Unless this is what is asked, give the filter values that the table has.",
            )
        )
    found += _not_measured(run.skipped)
    if (run.environment.get("git") or {}).get("dirty"):
        found.append(UNCOMMITTED)
    return tuple(sorted(found, key=lambda remark: remark.severity))


def interrupted(run_id: str) -> Remark:
    """What is said of a run without an end."""
    return Remark(
        severity=Severity.ERROR,
        text="This run was interrupted: what is missing here was not measured.",
        advice=f"Go on where it stopped: {shlex.join(['icebench', 'run', '--resume', run_id])}",
    )


def failures_of(run: Run) -> Sequence[Failure]:
    """The failures of a run, without the name of its workload if it has one only."""
    workloads = {each.case.workload for each in run.measured} | {each.workload for each in run.failures}
    if len(workloads - {"*"}) > 1:
        return run.failures
    return [replace(each, workload="*") for each in run.failures]


def _failed(failure: Failure) -> Remark:
    advice = "The case was not measured; the message above is the engine's own."
    if failure.kind == WRONG:
        text = f"{failure.engine} answers wrongly: {failure}"
        advice = "Its time in this case does not count, and is not shown. docs/design/interop.md lists what is known."
        return Remark(severity=Severity.ERROR, text=text, advice=advice)
    if failure.kind == "Disagreement":
        advice = "Engines gave different rows or files: their figures for this case do not count until one is fixed."
    return Remark(severity=Severity.ERROR, text=f"{failure.kind}: {failure}", advice=advice)


def _not_measured(skipped: Iterable[Skipped]) -> Iterator[Remark]:
    """One remark for each engine and reason, however many tables and cases it concerns."""
    measurements: dict[tuple[str, str], dict[str, None]] = {}
    for one in skipped:
        measurements.setdefault((one.engine, one.reason), {})[one.measurement] = None
    for (engine, reason), names in measurements.items():
        what = "at all" if list(names) == ["*"] else f"for {listed(list(names))}"
        who = "Nothing was measured" if engine == "*" else f"{engine} was not measured"
        yield Remark(
            severity=Severity.NOTE,
            text=f"{who} {what}: {reason}",
            advice="The figures of the others stand. If something is to be installed, 'icebench doctor' says what.",
        )


def _matches_nothing(record: Record) -> bool:
    return record.counters.get(kind_of(record.measurement).rows_counter) == 0


def is_timed(record: Record) -> bool:
    """Whether the record's samples come from a clock: only those have noise. A difference of two, which may be next to
    nothing, has no relative scatter; the noise is that of its scan."""
    kind = kind_of(record.measurement)
    clocked = record.unit in {"s", "ms", "us", "µs", "ns"} or record.unit.endswith("/s")
    return clocked and kind.timed and record.metric not in kind.differences


def is_noisy(record: Record) -> bool:
    """Whether the samples scatter so much that the median is doubtful."""
    return is_timed(record) and spread(record) > NOISY


def _of_samples(records: Iterable[Record]) -> Iterator[Remark]:
    """Timings that scatter too much, and too few samples for an interval of 95 %."""
    timed = [r for r in records if is_timed(r) and median(r) > 0]
    # A case is named once, whichever of its caches and metrics scatters most.
    worst = {r.key[:-2]: r for r in sorted((r for r in timed if is_noisy(r)), key=spread)}
    noisy = sorted(worst.values(), key=lambda r: -spread(r))
    if noisy:
        tables = table_names(timed)
        shown = [
            f"{r.engine} {r.measurement} {r.case} on {tables[r.workload, r.layout]} ({spread(r):.0%})"
            for r in noisy[:SHOWN]
        ]
        more = f", and {len(noisy) - SHOWN} more" if len(noisy) > SHOWN else ""
        yield Remark(
            severity=Severity.WARNING,
            text=f"In {count(len(noisy), 'case')} the middle half of the samples spreads over more than {NOISY:.0%} of "
            f"the median: {'; '.join(shown)}{more}.",
            advice="End other programs, raise 'repetitions', and distrust differences below the spread.",
        )
    few = [r for r in timed if len(r.samples) < FEWEST_REPETITIONS and r.measurement != BUILD]  # has its own interval
    if few:
        measurements = list(dict.fromkeys(r.measurement for r in few))
        cases = count(len({r.key[:-1] for r in timed if r.measurement in measurements}), "case")
        yield Remark(
            severity=Severity.WARNING,
            text=f"{listed(measurements).capitalize()}: fewer than {FEWEST_REPETITIONS} samples in "
            f"{len({r.key[:-1] for r in few}):,} of {cases}, at least {min(len(r.samples) for r in few)}.",
            advice=f"Small differences mean nothing here; set 'repetitions' to {FEWEST_REPETITIONS} or more.",
        )
