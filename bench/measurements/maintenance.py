"""Maintenance of equal copies of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from icebench.bench.execution.measurement import ANY, Asked, MeasurementKind, Metric, Race, SectionText
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.workloads.definitions import MaintenanceWorkload
    from icebench.bench.workloads.workload import Workload


class _Kind(MeasurementKind):
    name = "maintenance"
    description = "maintenance of equal copies of a table: rewriting, expiry, orphans"
    suits = frozenset({Gives.WORN_TABLES})
    made_by = "icebench.bench.trials.maintenance:measurements"
    seconds = 4.0
    series: ClassVar = {
        ANY: ("maintenance_time", "maintenance_cpu", "maintenance_memory"),
        "fresh": ("maintenance_time", "maintenance_cpu", "memory_peak"),
    }
    units: ClassVar = {"bytes_written": "bytes", "files_written": "files", "files_deleted": "files"}
    section = SectionText(
        title="Maintenance",
        explanation=(
            "The same maintenance of equal copies of the same files: data files rewritten to a target size, as they "
            "are, sorted, or in Z-order; manifests rewritten by partition; all snapshots but the last expired; orphan "
            "files deleted. From the name of the table to the last commit and the last deleted file. After every run "
            "the table had the same rows, and files, sizes and order as asked for."
        ),
        metrics=(
            Metric(
                name="maintenance_time",
                title="Time of maintenance",
                caption="Time of maintenance: median and 95% interval.",
            ),
            Metric(name="maintenance_cpu", title="Processor time of maintenance"),
            Metric(name="bytes_written", title="Bytes written", counted=True),
            Metric(name="files_written", title="Files written", counted=True),
            Metric(name="files_deleted", title="Files deleted", counted=True),
            Metric(
                name="maintenance_memory",
                title="Rise of resident memory; a Java virtual machine keeps what earlier runs made it take",
                counted=True,
            ),
            Metric(
                name="memory_peak",
                title="Rise of resident memory from when the engine was ready, its virtual machine's included",
            ),
        ),
        case="Change",
        against_own=True,
    )
    races = (Race(what="Maintenance", metric="maintenance_time"),)

    def cases(self, workload: Workload, asked: Asked) -> int:
        return len(asked.engines) * len(cast("MaintenanceWorkload", workload).actions)


KIND = _Kind()
