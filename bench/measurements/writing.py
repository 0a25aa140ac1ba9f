"""Writing: rows in memory appended to an empty table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from icebench.bench.definition import Definition
from icebench.bench.execution.measurement import ANY, Asked, MeasurementKind, Metric, Race, SectionText

if TYPE_CHECKING:
    from icebench.bench.workloads.definitions import Workload

_ROWS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class WrittenRows:
    """At most how many rows of the table are written, which are held in memory."""

    rows: int


class _Kind(MeasurementKind):
    name = "writing"
    description = "rows in memory appended to an empty table, or written to a Parquet file"
    made_by = "icebench.bench.trials.writing:measurements"
    is_usual = False
    seconds = 1.0
    series: ClassVar = {ANY: ("write_time", "write_cpu", "write_memory")}
    section = SectionText(
        title="Writing",
        explanation=(
            "The table's rows, in memory in the form in which each engine has rows, appended to an empty table of the "
            "same columns and partitions: data files, manifests and metadata are written and the table's pointer moved."
            " DuckDB and Polars write no table but one Parquet file, without partitions. Files are as each engine makes"
            " them by default, compressed by zstd; how many and how large they are is among the counters. What was "
            "written was read back, where possible by another engine, and seen to be right."
        ),
        metrics=(
            Metric(name="write_time", title="Time of an append", caption="Time of an append: median and interval."),
            Metric(name="write_cpu", title="Processor time of an append"),
        ),
        case="Rows",
        against_own=True,
    )
    races = (Race(what="Writing rows", metric="write_time"),)

    def parse(self, values: Definition) -> WrittenRows:
        return WrittenRows(rows=values.whole("rows", _ROWS, least=1))

    def cases(self, workload: Workload, asked: Asked) -> int:
        return len(asked.engines)


KIND = _Kind()
