"""One section for each measurement: what it is, drawn, and in figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pkgutil import resolve_name

from icebench.bench.execution.measurement import BUILD, MEASUREMENTS, Metric, SectionText, kind_of
from icebench.bench.records.record import Record
from icebench.bench.report import tables
from icebench.bench.report.charts import DotChart, DotPanel, DotRow, Point
from icebench.bench.report.compare import FLOOR, Records, bounds, median, table_names
from icebench.bench.report.model import Section, Table

_LOG_FROM = 4.0
"""An axis is logarithmic when its largest value is this many times its smallest."""


_FLOOR = (
    f" {FLOOR} is no engine: the same manifests' bytes inflated and nothing else, the least that planning from them "
    "can cost."
)
_AGED = tuple(
    Metric(
        name=name,
        caption=f"What a table's batches add to a {cache} scan, beside the same rows compacted: median and interval of "
        "the same rounds.",
        unit="ratio",
    )
    for cache, name in tables.AGED.items()
)


def sections_of(records: Records) -> tuple[Section, ...]:
    """A section for each measurement that has records, in the order of the measurements; of workloads that share
    layouts one for each."""
    layouts, engines = records.names("layout"), records.names("engine")
    measured = records.names("measurement")
    made: list[Section] = []
    known = [name for name in MEASUREMENTS if name in measured]
    for name in (*known, *(name for name in measured if name not in (*known, BUILD.name))):
        # Rows and colours stay the same from section to section, whatever a measurement lacks.
        every = Records(records.where(measurement=name).all, layout_order=layouts, engine_order=engines)
        for number, (workload, own) in enumerate(_apart(every), 1):
            match kind_of(name).section:
                case SectionText() as text:
                    made.append(_section(name, text, own).of_workload(workload, number))
                case str() as drawn:
                    made.append(resolve_name(drawn)(own).of_workload(workload, number))
    return tuple(made)


def _apart(records: Records) -> Iterator[tuple[str, Records]]:
    """The workloads, where a row of a table, which names its layout, does not say of which it is."""
    if len(table_names(records.all)) > len(records.names("layout")):
        yield from records.by_workload()
    else:
        yield "", records


def _section(key: str, of: SectionText, records: Records) -> Section:
    aged = {cache: tables.aged_scans(records, name) for cache, name in tables.AGED.items()}
    drawn = [(metric, records.where(metric=metric.name)) for metric in of.metrics if metric.caption]
    return Section(
        key=key,
        title=of.title,
        explanation=of.explanation + (_FLOOR if FLOOR in records.engines else ""),
        charts=tuple(
            _dots(found, metric) for metric, found in (*drawn, *zip(_AGED, aged.values(), strict=True)) if found
        ),
        tables=(
            *(resolve_name(of.summary)(records) if of.summary else ()),
            *(tables.left_behind(found, cache) for cache, found in aged.items() if found),
            *(table for metric in of.metrics for table in _tables(records, metric, of)),
            *([kept] if (kept := tables.kept_warm(records)) is not None else []),
            *tables.lookups(records),
        ),
    )


def _tables(records: Records, metric: Metric, of: SectionText) -> Iterator[Table]:
    found = records.where(metric=metric.name)
    if metric.added and (costs := records.where(metric=metric.added)):
        title, base = of.added
        yield tables.added_costs(costs, found, title=title.format(metric.title), case_name=of.case, base=base)
    if metric.title and found:
        yield tables.comparison(found, title=metric.title, case_name=of.case, folded=metric.folded)
        if of.against_own and not metric.counted and (table := tables.against_own(found, metric.title, of.case)):
            yield table


def _dots(records: Records, metric: Metric) -> DotChart:
    values = [median(r) for r in records.all]
    log = metric.unit != "ratio" and min(values) > 0 and max(values) / min(values) >= _LOG_FROM
    scale, name = _axis_unit(values, metric.unit)
    panels: dict[str, list[DotRow]] = {}
    for case, layout, found in records.cases():
        row = DotRow(label=layout, points=tuple(_point(r, scale) for r in found.all))
        panels.setdefault(case, []).append(row)
    return DotChart(
        caption=f"{metric.caption} More is better." if metric.more_is_better else metric.caption,
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
    if unit == "rows/s":
        return (1e6, "million rows a second") if largest >= 1e6 else (1e3, "thousand rows a second")
    return 1.0, unit
