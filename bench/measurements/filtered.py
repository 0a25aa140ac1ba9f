"""Filtered reads: the rows that a filter keeps delivered, and the work that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from icebench.bench.definition import Definition
from icebench.bench.execution.context import Context
from icebench.bench.execution.measurement import Asked, MeasurementKind, Metric, Race, SectionText
from icebench.bench.execution.trial import Measurement
from icebench.bench.measurements.scanning import SERIES, Scanning
from icebench.bench.measurements.subject import Subject
from icebench.bench.records.case import EVERYTHING
from icebench.bench.workloads.definitions import RowsWorkload, TableWorkload, Workload


@dataclass(frozen=True, kw_only=True)
class FilteredReads:
    """What is read: columns, none for the workload's choice; and whether without a filter, too."""

    columns: tuple[str, ...]
    everything: bool


class _Kind(MeasurementKind):
    name = "filtered"
    description = "rows delivered under each filter, and the work that it takes"
    seconds = 0.15
    series: ClassVar = SERIES
    section = SectionText(
        title="Filtered reads",
        explanation=(
            "The rows that a filter keeps, of a few columns, from an opened table to the last value delivered: "
            "planning, reading what was not pruned, and evaluating the filter. Every engine was seen to deliver the "
            "right rows."
        ),
        metrics=(
            Metric(
                name="scan_time",
                title="Time of the filtered read",
                caption="Time to deliver the rows that a filter keeps: median and interval.",
            ),
        ),
        case="Filter",
    )
    races = (Race(what="Reading under filters", metric="scan_time"),)
    rows_counter = "rows_returned"

    def fits(self, workload: Workload) -> bool:
        return isinstance(workload, RowsWorkload | TableWorkload)

    def parse(self, values: Definition) -> FilteredReads:
        return FilteredReads(columns=values.columns(), everything=values.flag("everything", default=False))

    def cases(self, workload: Workload, asked: Asked) -> int:
        return len(asked.engines) * (asked.filters + asked.options.everything)

    def measurements(self, subject: object, context: Context) -> Iterator[Measurement]:
        assert isinstance(subject, Subject)
        options: FilteredReads = context.options
        yield Scanning(
            case=subject.case(self.name),
            tables={"": subject.location},
            columns=subject.chosen(options.columns, subject.scanned, "filtered.columns"),
            filters={**({EVERYTHING: None} if options.everything else {}), **subject.filters},
            counts_work=True,
            truth=subject.truth,
        )


KIND = _Kind()
