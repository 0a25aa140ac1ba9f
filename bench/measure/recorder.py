"""Where measurements put what they find: into the run's file at once, and into memory for the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bench.measure.record import Failure, Record, Skipped
from bench.measure.run_file import RunWriter


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """What every record of a run has in common. `scale` is None for a table that was not generated here."""

    run_id: str
    experiment: str
    workload: str
    scale: float | None
    environment: str


@dataclass(frozen=True, kw_only=True)
class CaseId:
    """Which case a finding belongs to; "*" where all are meant."""

    layout: str
    measurement: str
    case: str = "*"
    engine: str = "*"

    def of(self, engine: str) -> CaseId:
        """The same case of one engine."""
        return replace(self, engine=engine)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a case did, whatever the clock says: see `Record` for the fields."""

    counters: Mapping[str, int] = field(default_factory=dict)
    checksum: str | None = None
    detail: Mapping[str, str] = field(default_factory=dict)


class Recorder:
    """Appends records, skipped cases and failures as they happen.

    Args:
        writer: The run's file.
        context: What goes into every record.
        versions: Engine name -> version.
        now: The wall clock, with a time zone.
    """

    def __init__(
        self, writer: RunWriter, context: RunContext, *, versions: Mapping[str, str], now: Callable[[], datetime]
    ) -> None:
        self._writer = writer
        self._context = context
        self._versions = versions
        self._now = now
        self.records: list[Record] = []
        self.skipped: list[Skipped] = []
        self.failures: list[Failure] = []

    def record(
        self,
        case: CaseId,
        metric: str,
        unit: str,
        samples: Sequence[float],
        evidence: Evidence,
    ) -> None:
        """One metric of a case."""
        context = self._context
        made = Record(
            run_id=context.run_id,
            time=self._now().isoformat(timespec="seconds"),
            experiment=context.experiment,
            workload=context.workload,
            scale=context.scale,
            layout=case.layout,
            engine=case.engine,
            engine_version=self._versions[case.engine],
            measurement=case.measurement,
            case=case.case,
            metric=metric,
            unit=unit,
            samples=tuple(samples),
            counters=dict(evidence.counters),
            checksum=evidence.checksum,
            environment=context.environment,
            detail=dict(evidence.detail),
        )
        self._writer.add(made)
        self.records.append(made)

    def skip(self, case: CaseId, reason: str) -> None:
        """A case that was asked for and cannot be measured."""
        made = Skipped(
            engine=case.engine, measurement=case.measurement, layout=case.layout, case=case.case, reason=reason
        )
        self._writer.add(made)
        self.skipped.append(made)

    def fail(self, case: CaseId, error: Exception | str, *, kind: str | None = None) -> None:
        """A case that went wrong; the run goes on, and fails at its end."""
        made = Failure(
            kind=kind or type(error).__name__,
            message=" ".join(str(error).split())[:2000] or repr(error),
            engine=case.engine,
            measurement=case.measurement,
            layout=case.layout,
            case=case.case,
        )
        self._writer.add(made)
        self.failures.append(made)

    def fail_each(self, case: CaseId, errors: Mapping[str, Exception]) -> None:
        """The errors of several engines at one case."""
        for engine, error in errors.items():
            self.fail(case.of(engine), error)
