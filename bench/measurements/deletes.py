"""Deletes: what applying them adds to a scan of the same data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from icebench.bench.definition import Definition
from icebench.bench.execution.context import Context
from icebench.bench.execution.measurement import (
    Asked,
    Figure,
    MeasurementKind,
    Metric,
    Race,
    SectionText,
    shares,
)
from icebench.bench.execution.trial import Measurement
from icebench.bench.measurements.scanning import SERIES, Scanning
from icebench.bench.measurements.subject import Subject, Unmeasured
from icebench.bench.records.case import NONE
from icebench.bench.tables.delete_variants import DeleteDefinition
from icebench.bench.workloads.definitions import RowsWorkload, TableWorkload, Workload


class _Kind(MeasurementKind):
    name = "deletes"
    description = "what applying deletes adds to a scan"
    series: ClassVar = SERIES
    differences = frozenset({"delete_cost"})
    section = SectionText(
        title="Delete-apply cost",
        explanation=(
            "The same data files scanned without and with delete files, in pairs of the same round; the difference is "
            "what finding, loading and applying the deletes costs."
        ),
        metrics=(
            Metric(
                name="delete_cost_ratio",
                caption="Time that deletes add to a scan, as a share of the same scan without deletes: median and "
                "interval.",
                unit="ratio",
            ),
            Metric(name="scan_time", title="Time of the scan", added="delete_cost_ratio", folded=True),
        ),
        case="Deleted",
        added=("What deletes add to a scan", "the same scan without deletes"),
    )
    races = (Race(what="Deletes", metric="scan_time", between="base"),)

    def fits(self, workload: Workload) -> bool:
        return isinstance(workload, RowsWorkload | TableWorkload)

    def parse(self, values: Definition) -> DeleteDefinition:
        return DeleteDefinition.parse(values)

    def cases(self, workload: Workload, asked: Asked) -> int:
        return len(asked.engines) * (1 + asked.options.combinations)

    def measurements(self, subject: object, context: Context) -> Iterator[Measurement]:
        assert isinstance(subject, Subject)
        columns = subject.chosen(context.options.columns, subject.scanned, "deletes.columns")
        if subject.without_deletes is None or not subject.with_deletes:
            yield Unmeasured(case=subject.case(self.name), reason="the table has no deletes")
            return
        yield Scanning(
            case=subject.case(self.name),
            tables={NONE: subject.without_deletes, **subject.with_deletes},
            columns=columns,
            base=NONE,
            readers=subject.readers,
            counts_deleted=True,
            truth=subject.truth,
        )

    def against(
        self, pairs: Mapping[tuple[int, int], tuple[Figure, Figure]]
    ) -> Iterator[tuple[str, str, Mapping[tuple[int, int], float]]]:
        wall = {place: figures for place, (figures, _) in pairs.items()}
        yield "delete_cost", "s", {place: own - base for place, (own, base) in wall.items()}
        yield "delete_cost_ratio", "ratio", shares(wall)


KIND = _Kind()
