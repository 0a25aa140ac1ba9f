"""Reading in Arrow: what the storage of decimals, deletes and width add to a scan."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, ClassVar, cast

from icebench.bench.execution.measurement import (
    COLD_AND_WARM,
    SCAN_SERIES,
    Asked,
    MeasurementKind,
    Metric,
    Race,
    SectionText,
    cold_and_warm,
    races_of_scans,
)
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.engines.engine import AnyEngine
    from icebench.bench.workloads.definitions import EventsWorkload, ReadingWorkload, RowsWorkload
    from icebench.bench.workloads.workload import Workload

_CASES = 30
"""About, of an engine, in a workload of all parts."""


class _Kind(MeasurementKind):
    name = "reading"
    description = "what the storage of decimals, deletes and width add to a scan"
    made_by = "icebench.bench.trials.reading:measurements"
    series: ClassVar = {**SCAN_SERIES, "fresh": ("scan_fresh", "scan_cpu_first", "memory_peak")}
    units: ClassVar = {"maintenance_cpu": "s"}
    section = SectionText(
        title="Reading in Arrow",
        explanation=(
            "To the last value delivered as Arrow batches, in this process. The tables of a group were interleaved, "
            "and a difference is one between scans of the same round. Every engine was seen to deliver the same rows "
            "first; one that cannot read a kind of table is left out. " + COLD_AND_WARM
        ),
        metrics=(
            *cold_and_warm(
                Metric(name="scan_time", title="Time of the scan", added="scan_time_*_added"),
                Metric(name="scan_cpu", title="Processor time of the scan", added="scan_cpu_*_added", folded=True),
            ),
            Metric(name="scan_cpu_first", title="Processor time of the first scan of a process"),
            Metric(name="scan_cpu_second", title="Processor time of its second"),
            Metric(
                name="memory_peak", title="Rise of resident memory from when the engine was ready, by a process's scans"
            ),
            Metric(name="maintenance_cpu", title="Processor time that keeping the table took so far, timed once"),
        ),
        case="Scan",
        added=("{}: what is added", "the first scan of its group"),
    )
    races = (
        *races_of_scans("{} scanning"),
        Race(what="The first scan of a process (processor time)", metric="scan_cpu_first"),
    )

    def fits(self, workload: Workload) -> bool:
        if workload.gives is Gives.ROWS:
            return cast("RowsWorkload", workload).first_scans
        return workload.gives in (Gives.CELLS, Gives.HISTORIES)

    def floors(self, workload: Workload) -> Mapping[str, AnyEngine]:
        if workload.gives is not Gives.CELLS or "large" not in cast("ReadingWorkload", workload).parts:
            return {}
        floor = resolve_name("icebench.bench.engines.pyarrow_files:PyArrowFiles")()
        return {floor.name: floor}

    def cases(self, workload: Workload, asked: Asked) -> int:
        match workload.gives:
            case Gives.CELLS:
                return len(asked.engines) * _CASES
            case Gives.HISTORIES:
                own = cast("EventsWorkload", workload)
                readers_of = resolve_name("icebench.bench.engines.registry:readers_of")
                readers: int = sum(len(readers_of(kind, asked.engines)) for kind in own.deletes)
                states = (len(own.compact_every) + len(own.policies)) * len(own.measured)
                return readers * states * 2 * (1 + len(own.events.filters))
        return len(asked.engines)


KIND = _Kind()
