"""What a reader must know before believing a figure: typed, with advice, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from bench.measure.record import Failure, Record, Skipped
from bench.measure.run_file import Run
from bench.report.compare import median, spread
from bench.report.quantities import count, listed

NOISY = 0.15
"""An interquartile range above this share of the median makes a figure doubtful."""

FEWEST_REPETITIONS = 6
"""Fewer pairs than this cannot give an interval of 95% by the signed-rank test."""

SHOWN = 5


class Severity(IntEnum):
    """How much a remark takes away from the report."""

    ERROR = 0
    WARNING = 1
    NOTE = 2


class Remark(Protocol):
    """`text` says what is the matter in one sentence, `advice` what to do about it."""

    @property
    def severity(self) -> Severity: ...

    @property
    def text(self) -> str: ...

    @property
    def advice(self) -> str: ...


@dataclass(frozen=True)
class Interrupted:
    """The run has no end: it was stopped, or the machine was."""

    severity: Severity = Severity.ERROR
    text: str = "This run was interrupted: what is missing here was not measured."
    advice: str = "Run it again; datasets that were built are kept, so it will be quicker."


@dataclass(frozen=True)
class Failed:
    """Something went wrong during the run."""

    failure: Failure
    severity: Severity = Severity.ERROR

    @property
    def text(self) -> str:
        return f"{self.failure.kind}: {self.failure}"

    @property
    def advice(self) -> str:
        if self.failure.kind == "Disagreement":
            return "Engines gave different rows or files: their figures for this case do not count until one is mended."
        return "The case was not measured; the message above is the engine's own."


@dataclass(frozen=True)
class NotMeasured:
    """What was asked for and could not be measured, for one reason."""

    engine: str
    measurements: tuple[str, ...]
    reason: str
    severity: Severity = Severity.NOTE

    @property
    def text(self) -> str:
        what = "at all" if self.measurements == ("*",) else f"for {listed(list(self.measurements))}"
        who = "Nothing" if self.engine == "*" else self.engine
        verb = "was measured" if self.engine == "*" else "was not measured"
        return f"{who} {verb} {what}: {self.reason}"

    @property
    def advice(self) -> str:
        return "The figures of the others stand. If something is to be installed, 'icebench doctor' says what."


@dataclass(frozen=True)
class NoisySamples:
    """Timings that scatter too much."""

    cases: tuple[tuple[str, float], ...]
    """Names and spreads, the worst first."""
    severity: Severity = Severity.WARNING

    @property
    def text(self) -> str:
        shown = [f"{name} ({share:.0%})" for name, share in self.cases[:SHOWN]]
        more = f", and {len(self.cases) - SHOWN} more" if len(self.cases) > SHOWN else ""
        return (
            f"In {count(len(self.cases), 'case')} the middle half of the samples spreads over more than {NOISY:.0%} of "
            f"the median: {'; '.join(shown)}{more}."
        )

    @property
    def advice(self) -> str:
        return "End other programs, raise 'repetitions', and distrust differences below the spread."


@dataclass(frozen=True)
class FewRepetitions:
    """Too few samples for a confidence interval of 95%."""

    measurements: tuple[str, ...]
    fewest: int
    severity: Severity = Severity.WARNING

    @property
    def text(self) -> str:
        return f"{listed(list(self.measurements)).capitalize()}: only {count(self.fewest, 'sample')} a case."

    @property
    def advice(self) -> str:
        return f"Small differences mean nothing here; set 'repetitions' to {FEWEST_REPETITIONS} or more."


@dataclass(frozen=True)
class NoMatchingRows:
    """Filters that no row of the table meets."""

    filters: tuple[str, ...]
    severity: Severity = Severity.WARNING

    @property
    def text(self) -> str:
        return f"No row meets {listed(list(self.filters))}: a plan without files is the best of all layouts."

    @property
    def advice(self) -> str:
        return "Unless this is what is asked, give the filter values that the table has."


@dataclass(frozen=True)
class UncommittedChanges:
    """The code that ran is not the code of the revision."""

    severity: Severity = Severity.NOTE
    text: str = "The checkout had uncommitted changes, so the revision below is not exactly what ran."
    advice: str = "Commit before a run that is to be kept."


def remarks_of(run: Run) -> tuple[Remark, ...]:
    """Everything to be said of a run, worst first."""
    found: list[Remark] = [] if run.complete else [Interrupted()]
    found += [Failed(failure) for failure in run.failures]
    found += _of_samples(run.records)
    if empty := tuple(dict.fromkeys(record.case for record in run.records if _matches_nothing(record))):
        found.append(NoMatchingRows(empty))
    found += _not_measured(run.skipped)
    if (run.environment.get("git") or {}).get("dirty"):
        found.append(UncommittedChanges())
    return tuple(sorted(found, key=lambda remark: remark.severity))


def _not_measured(skipped: Iterable[Skipped]) -> Iterator[Remark]:
    """One remark for each engine and reason, however many tables and cases it concerns."""
    measurements: dict[tuple[str, str], dict[str, None]] = {}
    for one in skipped:
        measurements.setdefault((one.engine, one.reason), {})[one.measurement] = None
    for (engine, reason), names in measurements.items():
        yield NotMeasured(engine, tuple(names), reason)


def _matches_nothing(record: Record) -> bool:
    name = {"pruning": "rows_matching", "filtered": "rows_returned"}.get(record.measurement, "")
    return record.counters.get(name) == 0


def is_timed(record: Record) -> bool:
    """Whether the record's samples come from a clock: only those have noise. A difference of two, which may be next to
    nothing, has no share of itself to scatter by; its scan tells the noise. A table is built once."""
    clocked = record.unit in {"s", "ms", "us", "µs", "ns"} or record.unit.endswith("/s")
    return clocked and record.metric != "delete_cost" and record.measurement != "build"


def is_noisy(record: Record) -> bool:
    """Whether the samples scatter so much that the median is doubtful."""
    return is_timed(record) and spread(record) > NOISY


def _of_samples(records: Iterable[Record]) -> Iterator[Remark]:
    timed = [r for r in records if is_timed(r) and median(r) > 0]
    noisy = sorted(((_name(r), spread(r)) for r in timed if is_noisy(r)), key=lambda case: -case[1])
    if noisy:
        yield NoisySamples(tuple(noisy))
    few = [r for r in timed if len(r.samples) < FEWEST_REPETITIONS]
    if few:
        measurements = tuple(dict.fromkeys(r.measurement for r in few))
        yield FewRepetitions(measurements, min(len(r.samples) for r in few))


def _name(record: Record) -> str:
    return f"{record.engine} {record.measurement} {record.case} on {record.layout}"
