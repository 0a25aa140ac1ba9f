"""Filtered reads: the rows that a filter keeps delivered, and the work that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from icebench.bench.definition import Definition
from icebench.bench.execution.measurement import (
    COLD_AND_WARM,
    SCAN_SERIES,
    Asked,
    MeasurementKind,
    Metric,
    SectionText,
    cold_and_warm,
    races_of_scans,
)
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.workloads.workload import Workload


@dataclass(frozen=True, kw_only=True)
class FilteredReads:
    """What is read: columns, none for the workload's choice; whether without a filter, too; and the names of filters
    under which warm reads are measured beside cold ones."""

    columns: tuple[str, ...]
    everything: bool
    warm: tuple[str, ...] = ()


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
            "The rows that a filter keeps, of a few columns, to the last value delivered: planning, reading what was "
            "not pruned, and evaluating the filter. Every engine was seen to deliver the right rows. " + COLD_AND_WARM
        ),
        metrics=cold_and_warm(
            Metric(
                name="scan_time",
                title="Time of the filtered read",
                caption="Time to deliver the rows that a filter keeps: median and interval.",
            )
        ),
        case="Filter",
    )
    races = races_of_scans("{} reading under filters")
    rows_counter = "rows_returned"

    def parse(self, values: Definition) -> FilteredReads:
        return FilteredReads(
            columns=values.columns(),
            everything=values.flag("everything", default=False),
            warm=tuple(dict.fromkeys(values.columns("warm"))),
        )

    def cases(self, workload: Workload, asked: Asked) -> int:
        return len(asked.engines) * (asked.filters + asked.options.everything + len(asked.options.warm))


KIND = _Kind()
