"""Deletes: what applying them adds to a scan of the same data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, ClassVar

from icebench.bench.definition import Definition
from icebench.bench.execution.measurement import (
    COLD_AND_WARM,
    SCAN_SERIES,
    Asked,
    Figure,
    MeasurementKind,
    Metric,
    SectionText,
    cold_and_warm,
    races_of_scans,
    shares,
)
from icebench.bench.records.case import Case
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.tables.delete_variants import DeleteDefinition
    from icebench.bench.workloads.workload import Workload


class _Kind(MeasurementKind):
    name = "deletes"
    description = "what applying deletes adds to a scan"
    series: ClassVar = SCAN_SERIES
    differences = frozenset({"delete_cost_cold", "delete_cost_warm"})
    suits = frozenset({Gives.ROWS, Gives.TABLE})
    made_by = "icebench.bench.trials.table_scans:deletes"
    section = SectionText(
        title="Delete-apply cost",
        explanation=(
            "The same data files scanned without and with delete files, in pairs of the same round; the difference is "
            "what finding, loading and applying the deletes costs. " + COLD_AND_WARM
        ),
        metrics=cold_and_warm(
            Metric(
                name="delete_cost_ratio",
                caption="Time that deletes add to a scan, as a share of the same scan without deletes: median and "
                "interval.",
                unit="ratio",
            ),
            Metric(name="scan_time", title="Time of the scan", added="delete_cost_ratio_*", folded=True),
        ),
        case="Deleted",
        added=("{}: what deletes add", "the same scan without deletes"),
    )
    races = races_of_scans("Deletes in {} scans", "base")

    def parse(self, values: Definition) -> DeleteDefinition:
        made: DeleteDefinition = resolve_name("icebench.bench.tables.delete_variants:DeleteDefinition").parse(values)
        return made

    def cases(self, workload: Workload, asked: Asked) -> int:
        return len(asked.engines) * (1 + asked.options.combinations)

    def against(
        self, pairs: Mapping[tuple[int, int], tuple[Figure, Figure]], case: Case
    ) -> Iterator[tuple[str, str, Mapping[tuple[int, int], float]]]:
        wall = {place: figures for place, (figures, _) in pairs.items()}
        yield f"delete_cost_{case.cache}", "s", {place: own - base for place, (own, base) in wall.items()}
        yield f"delete_cost_ratio_{case.cache}", "ratio", shares(wall)


KIND = _Kind()
