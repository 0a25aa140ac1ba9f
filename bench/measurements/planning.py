"""Planning latency: from an opened table to the list of files."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, ClassVar, cast

from icebench.bench.execution.measurement import Asked, MeasurementKind, Metric, Race, SectionText
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.engines.engine import AnyEngine
    from icebench.bench.workloads.described import DescribedWorkload
    from icebench.bench.workloads.workload import Workload

_COLD, _WARM = "Planning time, cold", "Planning time, warm"


class _Kind(MeasurementKind):
    name = "planning"
    description = "from an opened table to the list of files, cold and warm"
    suits = frozenset({Gives.ROWS, Gives.TABLE, Gives.DESCRIBED_FILES})
    made_by = "icebench.bench.trials.planning:measurements"
    seconds = 0.02
    series: ClassVar = {
        "cold": ("latency_cold", "cpu_cold", "memory_cold"),
        "warm": ("latency_warm", "cpu_warm", "memory_warm"),
        "disk": ("latency_disk", "cpu_disk", "memory_disk"),
        "fresh": ("latency_fresh", "cpu_fresh", "memory_peak"),
    }
    checksums_files = True
    section = SectionText(
        title="Planning latency",
        explanation=(
            "From an opened table to the complete list of files to read, with their deletes and residual filters. "
            "Cold: the first plan of a fresh table handle, nothing of the table cached in the process. Warm: another "
            "plan of the same handle, which may use whatever the engine keeps. From disk, where a definition asks for "
            "it: the first plan of a fresh handle, with decoded manifests that an earlier one left on a local disk."
        ),
        metrics=(
            Metric(name="latency_cold", title=_COLD, caption=f"{_COLD}: median and interval."),
            Metric(name="latency_warm", title=_WARM, caption=f"{_WARM}: median and interval."),
            Metric(name="cpu_cold", title="Processor time of a cold plan"),
            Metric(name="cpu_warm", title="Processor time of a warm plan"),
            Metric(name="latency_disk", title="Planning time, from the disk cache"),
            Metric(name="cpu_disk", title="Processor time of a plan from the disk cache"),
            Metric(name="latency_fresh", title="From starting a process to its first plan"),
            Metric(name="cpu_fresh", title="Processor time of a process until its first plan"),
            Metric(name="memory_peak", title="Memory that the first plan of a process takes"),
        ),
        case="Filter",
        against_own=True,
    )
    races = (Race(what="Cold planning", metric="latency_cold"), Race(what="Warm planning", metric="latency_warm"))

    def floors(self, workload: Workload) -> Mapping[str, AnyEngine]:
        if workload.gives is not Gives.DESCRIBED_FILES:
            return {}
        floor = resolve_name("icebench.bench.engines.inflate:Inflate")()
        return {floor.name: floor}

    def cases(self, workload: Workload, asked: Asked) -> int:
        if workload.gives is not Gives.DESCRIBED_FILES:
            return asked.planners * 2 * (1 + asked.filters)
        described = cast("DescribedWorkload", workload)
        engines = len(described.engines or asked.engines)
        # Engines are not created for an estimate; this one is known to keep manifests on disk.
        from_disk = described.disk_cache and "icebench" in (described.engines or asked.engines)
        return (engines * 2 + from_disk) * (1 + len(described.files.filters())) * len(described.writers)


KIND = _Kind()
