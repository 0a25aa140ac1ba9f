"""Where measurements put what they find: into the run's file at once, and into memory for the caller."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from icebench.bench.errors import Disagreement
from icebench.bench.execution.metrics import records_of
from icebench.bench.execution.run_file import Run, RunWriter
from icebench.bench.records.case import Case, Evidence, Measured, Sample
from icebench.bench.records.record import Failure, Record, Skipped
from icebench.engine.errors import without_secrets

_CAUSE = re.compile(r"^Caused by: (.+)", re.MULTILINE)


class Recorder:
    """Appends cases, samples, skipped cases and failures as they happen.

    Args:
        writer: The run's file.
        versions: Engine name -> version.
        before: What an earlier attempt at the run, or another of its processes, recorded.
        check: Raises if the run is to stop; called where nothing is half recorded.
        shown: What may be recorded of a message of an engine, which may have secrets.
    """

    def __init__(
        self,
        writer: RunWriter,
        *,
        versions: Mapping[str, str],
        before: Run | None = None,
        check: Callable[[], None] = lambda: None,
        shown: Callable[[str], str] = without_secrets,
    ) -> None:
        self._writer = writer
        self._versions = versions
        self.check = check
        self._shown = shown
        self.measured: dict[Case, Measured] = {} if before is None else {each.case: each for each in before.measured}
        self.skipped: list[Skipped] = [] if before is None else list(before.skipped)
        self.failures: list[Failure] = [] if before is None else list(before.failures)

    @property
    def records(self) -> tuple[Record, ...]:
        """The series so far."""
        return records_of(self.measured.values())

    def case(self, case: Case, evidence: Evidence) -> None:
        """A case that was seen to be right, before it is timed.

        Raises:
            Disagreement: An earlier attempt, or another process, counted something else or delivered other rows.
        """
        made = Measured(case=case, engine_version=self._versions[case.engine], evidence=evidence)
        if case in self.measured:
            before = self.measured[case].evidence
            if (dict(before.counters), before.checksum) != (dict(evidence.counters), evidence.checksum):
                raise Disagreement("counts or delivers something else than earlier in this run")
            return
        self._writer.case(made)
        self.measured[case] = made
        self.check()

    def sample(self, case: Case, sample: Sample) -> None:
        """A recorded execution."""
        self._writer.sample(case, sample)
        found = self.measured[case]
        self.measured[case] = replace(found, samples=(*found.samples, sample))
        self.check()

    def drop(self, case: Case) -> None:
        """A case that failed while it was timed: its samples do not count."""
        self._writer.drop(case)
        del self.measured[case]

    def round(self, workload: str, process: int, ordinal: int, conditions: Mapping[str, float]) -> None:
        """A round is over, and what the machine did besides meanwhile."""
        self._writer.round(workload, process, ordinal, conditions)

    def skip(self, case: Case, reason: str) -> None:
        """A case that was asked for and cannot be measured."""
        made = Skipped(
            engine=case.engine,
            measurement=case.measurement,
            workload=case.workload,
            layout=case.layout,
            case=_label(case),
            reason=self._shown(reason),
        )
        if made not in self.skipped:
            self._writer.add(made)
            self.skipped.append(made)

    def fail(self, case: Case, error: Exception) -> None:
        """A case that went wrong; the run goes on, and fails at its end. What goes wrong once the run is to stop is no
        failure: it may have been stopped itself."""
        self.check()
        made = Failure(
            kind=type(error).__name__,
            message=self._shown(_said(error)),
            engine=case.engine,
            measurement=case.measurement,
            workload=case.workload,
            layout=case.layout,
            case=_label(case),
        )
        if made not in self.failures:
            self._writer.add(made)
            self.failures.append(made)


def _said(error: Exception) -> str:
    """What went wrong, on one line: of an error of Java, with its stack, the cause that it names last."""
    causes = _CAUSE.findall(str(error))
    return " ".join((causes[-1] if causes else str(error)).split())[:2000] or repr(error)


def _label(case: Case) -> str:
    """What sets the case apart; "*" where all are meant."""
    return case.label or "*"
