"""Decimals: all rows of a table's decimal columns delivered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from icebench.bench.definition import Definition
from icebench.bench.execution.measurement import (
    COLD_AND_WARM,
    SCAN_SERIES,
    MeasurementKind,
    Metric,
    SectionText,
    cold_and_warm,
    races_of_scans,
)
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
            "All rows of the decimal columns, to the last value delivered: as Arrow batches by Arrow engines, into "
            "Spark's noop sink by Spark engines. The values were seen to be equal first. " + COLD_AND_WARM
        ),
        metrics=cold_and_warm(
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
        *races_of_scans("A {} full scan of decimals", "layouts"),
        *races_of_scans("{} scanning of the decimal columns"),
    )

    def parse(self, values: Definition) -> tuple[str, ...]:
        """The columns that are scanned; none for every decimal one."""
        return values.columns()

    def further(self, measured: Measured) -> Iterator[tuple[str, str, Mapping[tuple[int, int], float]]]:
        rows, samples = measured.evidence.counters.get("rows_returned", 0), measured.samples
        if rows and all(sample.cost.wall > 0 for sample in samples):
            yield (
                f"rows_per_second_{measured.case.cache}",
                "rows/s",
                {sample.place: rows / sample.cost.wall for sample in samples},
            )


KIND = _Kind()
