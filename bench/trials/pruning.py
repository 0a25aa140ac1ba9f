"""Pruning as a measurement: planned files against the files that hold a matching row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

from icebench.bench.engines.engine import Ability, AnyEngine, Plan
from icebench.bench.errors import BenchError, WrongAnswer
from icebench.bench.execution.context import Context
from icebench.bench.execution.opened import Opened, try_each
from icebench.bench.execution.trial import Bench, Measurement, Trial
from icebench.bench.records.case import Case, Evidence
from icebench.bench.trials.plans import check_files, check_rows, plan_checksum
from icebench.bench.trials.subject import Subject
from icebench.bench.truth.effectiveness import effectiveness
from icebench.bench.truth.rows import MatchingRows
from icebench.bench.truth.sql import NoTruth


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """The effectiveness of every filter for every engine that plans; a recall below 1 is a failure. Nothing is timed.

    Args:
        case: The table's, whatever the filter and engine.
        location: Its metadata file.
        filters: Name -> SQL text.
        truth: Gives its files and rows; called once.
    """

    case: Case
    location: str
    filters: Mapping[str, str]
    truth: Callable[[], MatchingRows]

    def trials(self, bench: Bench) -> Iterator[Trial]:
        try:
            truth = self.truth()
        except NoTruth as reason:
            bench.recorder.skip(replace(self.case, filter="*"), str(reason))
            return
        engines = bench.able(replace(self.case, filter="*"), Ability.PLAN)
        sizes = {path: file.size_bytes for path, file in truth.files.items()}
        for done, (name, text) in enumerate(self.filters.items()):
            bench.progress(self.case.measurement, f"{self.case.layout}: {name}", done, len(self.filters))
            case = replace(self.case, filter=name)
            try:
                matching = truth.matching(text)
            except NoTruth as reason:
                bench.recorder.skip(case, str(reason))
                continue
            except BenchError as error:
                bench.recorder.fail(case, error)
                continue
            plans = try_each(engines, partial(self._plan, truth, text), bench.recorder, case)
            for engine, plan in plans.items():
                counters = {
                    **plan.counters,
                    "files_total": len(sizes),
                    "files_matching": len(matching),
                    "files_wasted": len(plan.files - matching.keys()),
                    "rows_matching": sum(matching.values()),
                }
                evidence = Evidence(
                    counters=counters,
                    checksum=plan_checksum(plan, truth.files),
                    detail={"filter": text},
                    figures=asdict(effectiveness(sizes, plan.files, matching)),
                )
                yield Trial(case=case.of(engine), evidence=evidence)
                try:
                    check_rows(plan, matching)
                except WrongAnswer as error:
                    bench.recorder.fail(case.of(engine), error)

    def _plan(self, truth: MatchingRows, text: str, engine: AnyEngine) -> Plan:
        opened = Opened.of(engine, self.location, text)
        plan = engine.plan(opened.handle, opened.filter)
        check_files(plan, truth.files, everything=False)
        return plan


def measurements(subject: object, context: Context) -> Iterator[Measurement]:  # noqa: ARG001 - as all are called
    """Pruning of a table with rows."""
    assert isinstance(subject, Subject)
    case = subject.case("pruning")
    yield Pruning(case=case, location=subject.location, filters=subject.filters, truth=lambda: subject.matching)
