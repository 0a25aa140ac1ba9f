"""Commit latency: one append of described files."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, ClassVar, cast

from icebench.bench.execution.measurement import ANY, Asked, MeasurementKind, Metric, Race, SectionText
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.workloads.described import DescribedWorkload
    from icebench.bench.workloads.workload import Workload


class _Kind(MeasurementKind):
    name = "commits"
    description = "one append of files that are described and do not exist, alone and after another writer"
    suits = frozenset({Gives.DESCRIBED_FILES})
    made_by = "icebench.bench.trials.commits:measurements"
    seconds = 0.2
    series: ClassVar = {ANY: ("latency_commit", "cpu_commit", "memory_commit")}
    section = SectionText(
        title="Commit latency",
        explanation=(
            "One append of files that were described before, in the form in which each engine takes them, to an empty "
            "table: manifests, manifest list and metadata are written and the table's pointer moved. Overtaken: another"
            " writer has committed since the table was loaded. No data file is written or read. What was committed was "
            "read back, where possible by another engine, and seen to be right."
        ),
        metrics=(
            Metric(
                name="latency_commit", title="Time of a commit", caption="Time of a commit: median and 95% interval."
            ),
            Metric(name="cpu_commit", title="Processor time of a commit"),
        ),
        case="Change",
        against_own=True,
    )
    races = (Race(what="Committing described files", metric="latency_commit"),)

    def cases(self, workload: Workload, asked: Asked) -> int:
        engines = cast("DescribedWorkload", workload).engines or asked.engines
        return len(engines) * len(resolve_name("icebench.bench.trials.commits:WRITERS"))


KIND = _Kind()
