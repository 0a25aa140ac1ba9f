"""Planning latency: from an opened table to the list of files, cold and warm (see `bench.engines.engine`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from bench.engines.engine import Ability
from bench.experiment import Repetitions
from bench.measure.brute.manifests import FileEntry
from bench.measure.interleave import Case, interleave
from bench.measure.opened import Opened
from bench.measure.plans import checked_plans, plan_checksum
from bench.measure.recorder import CaseId, Evidence
from bench.measure.subject import Bench, Subject

NAME = "planning"
EVERYTHING = "all"
"""The case without a filter."""


def measure_planning(bench: Bench, subject: Subject, files: Mapping[str, FileEntry], often: Repetitions) -> None:
    """Record `latency_cold` and `latency_warm` of every filter, and of no filter, for every engine that plans.

    Args:
        bench: The engines, and where to record.
        subject: The table.
        files: Its data files by normalised path.
        often: How often each case runs.
    """
    engines = bench.able(Ability.PLAN, subject, NAME)
    filters: dict[str, str | None] = {EVERYTHING: None, **subject.filters}
    for done, (name, text) in enumerate(filters.items()):
        bench.progress(NAME, f"{subject.layout}: {name}", done, len(filters))
        case = CaseId(layout=subject.layout, measurement=NAME, case=name)
        made = checked_plans(bench, subject, engines, case, files=files, filter=text)
        for metric, prepare in (("latency_cold", _cold), ("latency_warm", _warm)):
            cases = [Case(engine, partial(prepare, opened)) for engine, (opened, _) in made.items()]
            timings = interleave(
                cases,
                repetitions=often.repetitions,
                warmups=often.warmups,
                random=bench.random,
                executor=bench.executor,
            )
            bench.recorder.fail_each(case, timings.errors)
            for engine, seconds in timings.seconds.items():
                plan = made[engine][1]
                bench.recorder.record(
                    case.of(engine),
                    metric,
                    "s",
                    seconds,
                    Evidence(
                        counters=plan.counters,
                        checksum=plan_checksum(plan, files),
                        detail={"filter": text or ""},
                    ),
                )


def _cold(opened: Opened) -> Callable[[], object]:
    fresh = opened.afresh()
    return lambda: fresh.engine.plan(fresh.handle, fresh.filter)


def _warm(opened: Opened) -> Callable[[], object]:
    return lambda: opened.engine.plan(opened.handle, opened.filter)
