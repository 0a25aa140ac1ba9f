"""Filtered reads: the rows that a filter keeps delivered, and the work that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from icebench.bench.definition import Definition
from icebench.bench.execution.measurement import SCAN_SERIES, Asked, MeasurementKind, Metric, Race, SectionText
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.workloads.definitions import Workload


@dataclass(frozen=True, kw_only=True)
class FilteredReads:
    """What is read: columns, none for the workload's choice; and whether without a filter, too."""

    columns: tuple[str, ...]
    everything: bool


class _Kind(MeasurementKind):
    name = "filtered"
    description = "rows delivered under each filter, and the work that it takes"
    seconds = 0.15
    series: ClassVar = SCAN_SERIES
    suits = frozenset({Gives.ROWS, Gives.TABLE})
    made_by = "icebench.bench.trials.table_scans:filtered"
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

    def parse(self, values: Definition) -> FilteredReads:
        return FilteredReads(columns=values.columns(), everything=values.flag("everything", default=False))

    def cases(self, workload: Workload, asked: Asked) -> int:
        return len(asked.engines) * (asked.filters + asked.options.everything)


KIND = _Kind()
