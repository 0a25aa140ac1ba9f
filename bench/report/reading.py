"""The section on reading in Arrow: scans by engine, and what decimals, deletes and width add to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bench.report import tables
from bench.report.charts import DotChart
from bench.report.compare import Records, median
from bench.report.model import Cell, Section, Table, plain
from bench.report.quantities import signed_percent

_EXPLANATION = (
    "From an opened table to the last value delivered as Arrow batches, in this process. The tables of a group were "
    "scanned in turn, and a difference is one between scans of the same round. Every engine was seen to deliver the "
    "same rows first; one that cannot read a kind of table is left out."
)
_AGED = "What a table's batches add to a scan, beside the same rows compacted: median and interval of the same rounds."
_METRICS = (
    ("scan_time", "scan_time_added", "Time of the scan"),
    ("scan_cpu", "scan_cpu_added", "Processor time of the scan"),
)
_FRESH = (
    ("scan_cpu_first", "Processor time of the first scan of a process"),
    ("scan_cpu_second", "Processor time of its second"),
    ("memory_peak", "Memory that a process's scans took at most"),
)


_LEFT_BEHIND = ("data_files", "data_bytes", "delete_files", "delete_records", "manifests")


def reading_section(records: Records, dots: Callable[[Records, str], DotChart]) -> Section:
    """The section, of records of the measurement reading; `dots` draws them."""
    aged = records.where(metric="scan_time_added")
    aged = replace(aged, all=tuple(each for each in aged.all if _LEFT_BEHIND[0] in each.counters))
    shown: list[Table] = [_left_behind(aged)] if aged else []
    for metric, added, title in _METRICS:
        scans, costs = records.where(metric=metric), records.where(metric=added)
        if costs:
            shown.append(
                tables.added_costs(
                    costs, scans, title=f"{title}: what is added", case_name="Scan", base="the first scan of its group"
                )
            )
        if scans:
            shown.append(tables.comparison(scans, title=title, case_name="Scan", folded=metric != "scan_time"))
    for metric, title in _FRESH:
        if found := records.where(metric=metric):
            shown.append(tables.comparison(found, title=title, case_name="Scan"))
    return Section(
        key="reading",
        title="Reading in Arrow",
        explanation=_EXPLANATION,
        charts=(dots(aged, _AGED),) if aged else (),
        tables=(*shown, *tables.lookups(records)),
    )


def _left_behind(aged: Records) -> Table:
    """What was added to scans beside what they went through."""
    rows = []
    for case, layout, found in aged.cases():
        counters = found.all[0].counters
        added = (found.one(engine=engine) for engine in aged.engines)
        counts = (Cell(text=f"{counters[name]:,}") for name in _LEFT_BEHIND)
        cells = (tables.NOT_MEASURED if each is None else Cell(text=signed_percent(median(each))) for each in added)
        rows.append((plain(layout), plain(case), *counts, *cells))
    return Table(
        title="What batches leave behind, and what it adds to a scan",
        columns=("Table", "Scan", *(name.replace("_", " ") for name in _LEFT_BEHIND), *aged.engines),
        rows=tuple(rows),
        note="Exact counts of the table; added time as a share of the scan of the same rows compacted.",
    )
