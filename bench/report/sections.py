"""One section for each measurement: what it is, drawn, and in figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icebench.bench.measure.record import Record
from icebench.bench.report import tables
from icebench.bench.report.charts import DotChart, DotPanel, DotRow, Point
from icebench.bench.report.compare import FLOOR, Records, bounds, median
from icebench.bench.report.model import Section, Table
from icebench.bench.report.pruning import pruning_section

_LOG_FROM = 4.0
"""An axis is logarithmic when its largest value is this many times its smallest."""


@dataclass(frozen=True, kw_only=True)
class _Metric:
    """What a section says of a metric.

    Args:
        name: Of the metric.
        title: Of its table; empty where it is only drawn.
        caption: Of its chart; empty where it is only tabulated.
        unit: Of the chart.
        added: The metric of what a case adds to its base, in a table before.
        folded: Whether its table is only for looking things up.
        counted: Whether ratios of rounds say nothing: it is exact, or hangs on earlier runs.
    """

    name: str
    title: str = ""
    caption: str = ""
    unit: str = "s"
    added: str = ""
    folded: bool = False
    counted: bool = False


@dataclass(frozen=True, kw_only=True)
class _Measurement:
    """What a section is made from.

    Args:
        title: Of the section.
        explanation: What was measured.
        metrics: In their order.
        case: What a case is: a filter, a scan.
        added: Title of the tables of what cases add, for one with the metric's own title in it, and what that is a
            share of.
        against_own: Whether each table of what is timed is followed by one of ratios to this project's engine.
    """

    title: str
    explanation: str
    metrics: Sequence[_Metric]
    case: str
    added: tuple[str, str] = ("", "")
    against_own: bool = False


_COLD, _WARM = "Planning time, cold", "Planning time, warm"
_MEASUREMENTS = {
    "planning": _Measurement(
        title="Planning latency",
        explanation=(
            "From an opened table to the complete list of files to read, with their deletes and residual filters. "
            "Cold: the first plan of a fresh table handle, nothing of the table cached in the process. Warm: another "
            "plan of the same handle, which may use whatever the engine keeps."
        ),
        metrics=(
            _Metric(name="latency_cold", title=_COLD, caption=f"{_COLD}: median and interval."),
            _Metric(name="latency_warm", title=_WARM, caption=f"{_WARM}: median and interval."),
            _Metric(name="cpu_cold", title="Processor time of a cold plan"),
            _Metric(name="cpu_warm", title="Processor time of a warm plan"),
            _Metric(name="latency_fresh", title="From starting a process to its first plan"),
            _Metric(name="cpu_fresh", title="Processor time of a process until its first plan"),
            _Metric(name="memory_peak", title="Memory that the first plan of a process takes"),
        ),
        case="Filter",
        against_own=True,
    ),
    "decimals": _Measurement(
        title="Decimal throughput",
        explanation=(
            "All rows of the decimal columns, from an opened table to the last value delivered: as Arrow batches "
            "by Arrow engines, into Spark's noop sink by Spark engines. The values were seen to be equal first."
        ),
        metrics=(
            _Metric(
                name="rows_per_second",
                caption="Rows delivered in a second: median and interval. More is better.",
                unit="rows/s",
            ),
            _Metric(name="scan_time", title="Time of the scan"),
        ),
        case="Scan",
    ),
    "deletes": _Measurement(
        title="Delete-apply cost",
        explanation=(
            "The same data files scanned without and with delete files, in pairs of the same round; the difference is "
            "what finding, loading and applying the deletes costs."
        ),
        metrics=(
            _Metric(
                name="delete_cost_ratio",
                caption="Time that deletes add to a scan, as a share of the same scan without deletes: median and "
                "interval.",
                unit="ratio",
            ),
            _Metric(name="scan_time", title="Time of the scan", added="delete_cost_ratio", folded=True),
        ),
        case="Deleted",
        added=("What deletes add to a scan", "the same scan without deletes"),
    ),
    "filtered": _Measurement(
        title="Filtered reads",
        explanation=(
            "The rows that a filter keeps, of a few columns, from an opened table to the last value delivered: "
            "planning, reading what was not pruned, and evaluating the filter. Every engine was seen to deliver the "
            "right rows."
        ),
        metrics=(
            _Metric(
                name="scan_time",
                title="Time of the filtered read",
                caption="Time to deliver the rows that a filter keeps: median and interval.",
            ),
        ),
        case="Filter",
    ),
    "commits": _Measurement(
        title="Commit latency",
        explanation=(
            "One append of files that were described before, in the form in which each engine takes them, to an empty "
            "table: manifests, manifest list and metadata are written and the table's pointer moved. Overtaken: another"
            " writer has committed since the table was loaded. No data file is written or read. What was committed was "
            "read back, where possible by another engine, and seen to be right."
        ),
        metrics=(
            _Metric(
                name="latency_commit", title="Time of a commit", caption="Time of a commit: median and 95% interval."
            ),
            _Metric(name="cpu_commit", title="Processor time of a commit"),
        ),
        case="Change",
        against_own=True,
    ),
    "maintenance": _Measurement(
        title="Upkeep",
        explanation=(
            "The same upkeep of equal copies of the same files: data files rewritten to a target size, as they are, "
            "sorted, or in Z-order; manifests rewritten by partition; all snapshots but the last expired; orphan files "
            "deleted. From the name of the table to the last commit and the last deleted file. After every run the "
            "table had the same rows, and files, sizes and order as asked for."
        ),
        metrics=(
            _Metric(name="upkeep_time", title="Time of upkeep", caption="Time of upkeep: median and 95% interval."),
            _Metric(name="upkeep_cpu", title="Processor time of upkeep"),
            _Metric(name="bytes_written", title="Bytes written", counted=True),
            _Metric(name="files_written", title="Files written", counted=True),
            _Metric(name="files_deleted", title="Files deleted", counted=True),
            _Metric(
                name="upkeep_memory",
                title="Rise of resident memory; a Java virtual machine keeps what earlier runs made it take",
                counted=True,
            ),
            _Metric(name="memory_peak", title="Memory that a process took at most, its virtual machine's included"),
        ),
        case="Change",
        against_own=True,
    ),
    "reading": _Measurement(
        title="Reading in Arrow",
        explanation=(
            "From an opened table to the last value delivered as Arrow batches, in this process. The tables of a group "
            "were scanned in turn, and a difference is one between scans of the same round. Every engine was seen to "
            "deliver the same rows first; one that cannot read a kind of table is left out."
        ),
        metrics=(
            _Metric(name="scan_time", title="Time of the scan", added="scan_time_added"),
            _Metric(name="scan_cpu", title="Processor time of the scan", added="scan_cpu_added", folded=True),
            _Metric(name="scan_cpu_first", title="Processor time of the first scan of a process"),
            _Metric(name="scan_cpu_second", title="Processor time of its second"),
            _Metric(name="memory_peak", title="Memory that a process's scans took at most"),
        ),
        case="Scan",
        added=("{}: what is added", "the first scan of its group"),
    ),
}
_ORDER = ("planning", "pruning", "decimals", "deletes", "filtered", "commits", "maintenance", "reading")
_FLOOR = (
    f" {FLOOR} is no engine: the same manifests' bytes inflated and nothing else, the least that planning from them "
    "can cost."
)
_AGED = _Metric(
    name="scan_time_added",
    caption="What a table's batches add to a scan, beside the same rows compacted: median and interval of the same "
    "rounds.",
    unit="ratio",
)


def sections_of(records: Records) -> tuple[Section, ...]:
    """A section for each measurement that has records, in the order of the measurements."""
    layouts, engines = records.names("layout"), records.names("engine")
    made: list[Section] = []
    for name in _ORDER:
        if found := records.where(measurement=name):
            # Rows and colours stay the same from section to section, whatever a measurement lacks.
            own = Records(found.all, layout_order=layouts, engine_order=engines)
            made.append(pruning_section(own) if name == "pruning" else _section(name, own))
    return tuple(made)


def _section(key: str, records: Records) -> Section:
    of = _MEASUREMENTS[key]
    aged = tables.aged_scans(records)
    drawn = [(metric, records.where(metric=metric.name)) for metric in of.metrics if metric.caption]
    return Section(
        key=key,
        title=of.title,
        explanation=of.explanation + (_FLOOR if FLOOR in records.engines else ""),
        charts=tuple(_dots(found, metric) for metric, found in (*drawn, (_AGED, aged)) if found),
        tables=(
            *([tables.left_behind(aged)] if aged else []),
            *(table for metric in of.metrics for table in _tables(records, metric, of)),
            *tables.lookups(records),
        ),
    )


def _tables(records: Records, metric: _Metric, of: _Measurement) -> Iterator[Table]:
    found = records.where(metric=metric.name)
    if metric.added and (costs := records.where(metric=metric.added)):
        title, base = of.added
        yield tables.added_costs(costs, found, title=title.format(metric.title), case_name=of.case, base=base)
    if metric.title and found:
        yield tables.comparison(found, title=metric.title, case_name=of.case, folded=metric.folded)
        if of.against_own and not metric.counted and (table := tables.against_own(found, metric.title, of.case)):
            yield table


def _dots(records: Records, metric: _Metric) -> DotChart:
    values = [median(r) for r in records.all]
    log = metric.unit != "ratio" and min(values) > 0 and max(values) / min(values) >= _LOG_FROM
    scale, name = _axis_unit(values, metric.unit)
    panels: dict[str, list[DotRow]] = {}
    for case, layout, found in records.cases():
        row = DotRow(label=layout, points=tuple(_point(r, scale) for r in found.all))
        panels.setdefault(case, []).append(row)
    return DotChart(
        caption=metric.caption,
        axis=f"{name} (logarithmic)" if log else name,
        log=log,
        series=records.engines,
        panels=tuple(DotPanel(title=case, rows=tuple(rows)) for case, rows in panels.items()),
    )


def _point(record: Record, scale: float) -> Point:
    low, high = bounds(record) or (None, None)
    return Point(
        series=record.engine,
        value=median(record) / scale,
        low=None if low is None else low / scale,
        high=None if high is None else high / scale,
    )


def _axis_unit(values: Sequence[float], unit: str) -> tuple[float, str]:
    """What to divide by, and the name of what results, so that the typical value is easy to read."""
    largest = max(abs(v) for v in values)
    if unit == "s":
        return (1.0, "seconds") if largest >= 2 else (1e-3, "milliseconds")
    if unit == "ratio":
        return 0.01, "% added"
    return (1e6, "million rows a second") if largest >= 1e6 else (1e3, "thousand rows a second")
