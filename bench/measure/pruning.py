"""Pruning effectiveness: planned files against the files that hold a matching row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from bench.engines.engine import Ability
from bench.errors import BenchError, Disagreement
from bench.measure.brute.truth import GroundTruth
from bench.measure.plans import checked_plans, describe, plan_checksum
from bench.measure.recorder import CaseId, Evidence
from bench.measure.subject import Bench, Subject

NAME = "pruning"


@dataclass(frozen=True, kw_only=True)
class Effectiveness:
    """How a plan compares with the truth. Shares of nothing are 0, except `recall`, which is 1: nothing was missed."""

    recall: float
    false_positive_rate: float
    wasted_files_share: float
    files_planned_share: float
    bytes_planned_share: float
    files_matching_share: float


def effectiveness(sizes: Mapping[str, int], planned: Collection[str], matching: Collection[str]) -> Effectiveness:
    """The figures of one plan.

    Args:
        sizes: File -> bytes, for all files of the table.
        planned: The planned files, all among `sizes`.
        matching: The files that hold a matching row, all among `sizes`.
    """
    chosen, true = set(planned), set(matching)
    wasted = chosen - true
    return Effectiveness(
        recall=_share(len(chosen & true), len(true), of_nothing=1.0),
        false_positive_rate=_share(len(wasted), len(sizes) - len(true)),
        wasted_files_share=_share(len(wasted), len(chosen)),
        files_planned_share=_share(len(chosen), len(sizes)),
        bytes_planned_share=_share(sum(sizes[path] for path in chosen), sum(sizes.values())),
        files_matching_share=_share(len(true), len(sizes)),
    )


def measure_pruning(bench: Bench, subject: Subject, truth: GroundTruth) -> None:
    """Record the effectiveness of every filter for every engine that plans; a recall below 1 is a failure.

    Args:
        bench: The engines, and where to record.
        subject: The table.
        truth: Its files and rows.
    """
    engines = bench.able(Ability.PLAN, subject, NAME)
    sizes = {path: file.size_bytes for path, file in truth.files.items()}
    for done, (name, text) in enumerate(subject.filters.items()):
        bench.progress(NAME, f"{subject.layout}: {name}", done, len(subject.filters))
        case = CaseId(layout=subject.layout, measurement=NAME, case=name)
        try:
            matching = truth.matching(text)
        except BenchError as error:
            bench.recorder.fail(case, error)
            continue
        for engine, (_, plan) in checked_plans(bench, subject, engines, case, files=truth.files, filter=text).items():
            figures = effectiveness(sizes, plan.files, matching)
            counters = {
                **plan.counters,
                "files_total": len(sizes),
                "files_matching": len(matching),
                "files_wasted": len(plan.files - matching.keys()),
                "rows_matching": sum(matching.values()),
            }
            checksum = plan_checksum(plan, truth.files)
            evidence = Evidence(counters=counters, checksum=checksum, detail={"filter": text})
            for metric, value in asdict(figures).items():
                bench.recorder.record(case.of(engine), metric, "ratio", [value], evidence)
            if missed := matching.keys() - plan.files:
                rows = sum(matching[path] for path in missed)
                message = f"does not plan {describe(missed)} with {rows} matching rows: its scans lose rows"
                bench.recorder.fail(case.of(engine), Disagreement(message))


def _share(part: int, whole: int, *, of_nothing: float = 0.0) -> float:
    return part / whole if whole else of_nothing
