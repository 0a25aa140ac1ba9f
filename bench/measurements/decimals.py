"""Decimals: all rows of a table's decimal columns delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from icebench.bench.definition import Definition
from icebench.bench.execution.measurement import SCAN_SERIES, MeasurementKind, Metric, Race, SectionText
from icebench.bench.records.case import Measured
from icebench.bench.workloads.gives import Gives


class _Kind(MeasurementKind):
    name = "decimals"
    description = "all rows of the decimal columns delivered"
    seconds = 0.8
    series: ClassVar = SCAN_SERIES
    suits = frozenset({Gives.ROWS, Gives.TABLE})
    made_by = "icebench.bench.trials.table_scans:decimals"
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

    def parse(self, values: Definition) -> tuple[str, ...]:
        """The columns that are scanned; none for every decimal one."""
        return values.columns()

    def further(self, measured: Measured) -> Iterator[tuple[str, str, Mapping[tuple[int, int], float]]]:
        rows, samples = measured.evidence.counters.get("rows_returned", 0), measured.samples
        if rows and all(sample.cost.wall > 0 for sample in samples):
            yield "rows_per_second", "rows/s", {sample.place: rows / sample.cost.wall for sample in samples}


KIND = _Kind()
