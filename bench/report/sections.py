"""One section for each measurement: what it is, drawn, and in figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bench.measure.record import Record
from bench.report import tables
from bench.report.charts import DotChart, DotPanel, DotRow, Point
from bench.report.commits import changes_section
from bench.report.compare import Records, bounds, median
from bench.report.model import Section
from bench.report.planning import planning_section
from bench.report.pruning import pruning_section
from bench.report.reading import reading_section

_LOG_FROM = 4.0
"""An axis is logarithmic when its largest value is this many times its smallest."""


def sections_of(records: Records) -> tuple[Section, ...]:
    """A section for each measurement that has records, in the order of the measurements."""
    makers: Mapping[str, Callable[[Records], Section]] = {
        "planning": _planning,
        "pruning": pruning_section,
        "decimals": _decimals,
        "deletes": _deletes,
        "filtered": _filtered,
        "commits": _changes,
        "maintenance": _changes,
        "reading": _reading,
    }
    layouts, engines = records.names("layout"), records.names("engine")
    made: list[Section] = []
    for name, make in makers.items():
        found = records.where(measurement=name)
        if found:
            # Rows and colours stay the same from section to section, whatever a measurement lacks.
            made.append(make(Records(found.all, layout_order=layouts, engine_order=engines)))
    return tuple(made)


def _planning(records: Records) -> Section:
    return planning_section(records, lambda found, caption: _dots(found, caption=caption, unit="s"))


def _reading(records: Records) -> Section:
    return reading_section(records, lambda found, caption: _dots(found, caption=caption, unit="ratio", log=False))


def _changes(records: Records) -> Section:
    return changes_section(records, lambda found, caption: _dots(found, caption=caption, unit="s"))


def _decimals(records: Records) -> Section:
    rates, scans = records.where(metric="rows_per_second"), records.where(metric="scan_time")
    caption = "Rows delivered in a second: median and interval. More is better."
    shown = [tables.comparison(scans, title="Time of the scan", case_name="Scan")] if scans else []
    return Section(
        key="decimals",
        title="Decimal throughput",
        explanation=(
            "All rows of the decimal columns, from an opened table to the last value delivered: as Arrow batches "
            "by Arrow engines, into Spark's noop sink by Spark engines. The values were seen to be equal first."
        ),
        charts=(_dots(rates, caption=caption, unit="rows/s"),) if rates else (),
        tables=(*shown, *tables.lookups(records)),
    )


def _filtered(records: Records) -> Section:
    scans = records.where(metric="scan_time")
    caption = "Time to deliver the rows that a filter keeps: median and interval."
    return Section(
        key="filtered",
        title="Filtered reads",
        explanation=(
            "The rows that a filter keeps, of a few columns, from an opened table to the last value delivered: "
            "planning, reading what was not pruned, and evaluating the filter. Every engine was seen to deliver the "
            "right rows."
        ),
        charts=(_dots(scans, caption=caption, unit="s"),) if scans else (),
        tables=(
            *([tables.comparison(scans, title="Time of the filtered read", case_name="Filter")] if scans else []),
            *tables.lookups(records),
        ),
    )


def _deletes(records: Records) -> Section:
    costs, scans = records.where(metric="delete_cost_ratio"), records.where(metric="scan_time")
    caption = "Time that deletes add to a scan, as a share of the same scan without deletes: median and interval."
    shown = [tables.added_costs(costs, scans)] if costs else []
    if scans:
        shown.append(tables.comparison(scans, title="Time of the scan", case_name="Deleted", folded=bool(costs)))
    return Section(
        key="deletes",
        title="Delete-apply cost",
        explanation=(
            "The same data files scanned without and with delete files, in pairs of the same round; the difference is "
            "what finding, loading and applying the deletes costs."
        ),
        charts=(_dots(costs, caption=caption, unit="ratio", log=False),) if costs else (),
        tables=(*shown, *tables.lookups(records)),
    )


def _dots(records: Records, *, caption: str, unit: str, log: bool | None = None) -> DotChart:
    values = [median(r) for r in records.all]
    if log is None:
        log = min(values) > 0 and max(values) / min(values) >= _LOG_FROM
    scale, name = _axis_unit(values, unit)
    panels: dict[str, list[DotRow]] = {}
    for case, layout, found in records.cases():
        row = DotRow(label=layout, points=tuple(_point(r, scale) for r in found.all))
        panels.setdefault(case, []).append(row)
    return DotChart(
        caption=caption,
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
