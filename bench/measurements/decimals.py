"""Decimals: all rows of a table's decimal columns delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from icebench.bench.definition import Definition
from icebench.bench.execution.context import Context
from icebench.bench.execution.measurement import MeasurementKind, Metric, Race, SectionText
from icebench.bench.execution.trial import Measurement
from icebench.bench.measurements.scanning import SERIES, Scanning
from icebench.bench.measurements.subject import Subject, Unmeasured
from icebench.bench.records.case import Measured
from icebench.bench.workloads.definitions import RowsWorkload, TableWorkload, Workload


class _Kind(MeasurementKind):
    name = "decimals"
    description = "all rows of the decimal columns delivered"
    seconds = 0.8
    series: ClassVar = SERIES
    section = SectionText(
        title="Decimal throughput",
        explanation=(
            "All rows of the decimal columns, from an opened table to the last value delivered: as Arrow batches "
            "by Arrow engines, into Spark's noop sink by Spark engines. The values were seen to be equal first."
        ),
        metrics=(
            Metric(
                name="rows_per_second",
                caption="Rows delivered in a second: median and interval.",
                unit="rows/s",
                more_is_better=True,
            ),
            Metric(name="scan_time", title="Time of the scan"),
        ),
        case="Scan",
    )
    races = (
        Race(what="A full scan of decimals", metric="scan_time", between="layouts"),
        Race(what="Scanning the decimal columns", metric="scan_time"),
    )

    def fits(self, workload: Workload) -> bool:
        return isinstance(workload, RowsWorkload | TableWorkload)

    def parse(self, values: Definition) -> tuple[str, ...]:
        """The columns that are scanned; none for every decimal one."""
        return values.columns()

    def measurements(self, subject: object, context: Context) -> Iterator[Measurement]:
        assert isinstance(subject, Subject)
        case = subject.case(self.name)
        columns = subject.chosen(context.options, subject.decimal_columns, "decimals.columns")
        if columns:
            yield Scanning(case=case, tables={"": subject.location}, columns=columns, truth=subject.truth)
        else:
            yield Unmeasured(case=case, reason="the table has no decimal column")

    def further(self, measured: Measured) -> Iterator[tuple[str, str, Mapping[tuple[int, int], float]]]:
        rows, samples = measured.evidence.counters.get("rows_returned", 0), measured.samples
        if rows and all(sample.cost.wall > 0 for sample in samples):
            yield "rows_per_second", "rows/s", {sample.place: rows / sample.cost.wall for sample in samples}


KIND = _Kind()
