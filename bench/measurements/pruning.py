"""Pruning effectiveness: planned files against those that hold a matching row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icebench.bench.execution.measurement import Asked, MeasurementKind
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.workloads.workload import Workload


class _Kind(MeasurementKind):
    name = "pruning"
    description = "planned files against the files that hold a matching row"
    suits = frozenset({Gives.ROWS, Gives.TABLE})
    made_by = "icebench.bench.trials.pruning:measurements"
    timed = False
    section = "icebench.bench.report.pruning:pruning_section"
    faults = "icebench.bench.report.pruning:lost_files"
    findings = "icebench.bench.report.pruning:layouts_by_filter"
    rows_counter = "rows_matching"
    checksums_files = True

    def cases(self, workload: Workload, asked: Asked) -> int:
        return asked.planners * asked.filters


KIND = _Kind()
