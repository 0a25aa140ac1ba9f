"""The section on reading in Arrow: scans by engine, and what decimals, deletes and width add to them."""

from __future__ import annotations

from bench.report import tables
from bench.report.compare import Records
from bench.report.model import Section, Table

_EXPLANATION = (
    "From an opened table to the last value delivered as Arrow batches, in this process. The tables of a group were "
    "scanned in turn, and a difference is one between scans of the same round. Every engine was seen to deliver the "
    "same rows first; one that cannot read a kind of table is left out."
)
_METRICS = (
    ("scan_time", "scan_time_added", "Time of the scan"),
    ("scan_cpu", "scan_cpu_added", "Processor time of the scan"),
)
_FRESH = (
    ("scan_cpu_first", "Processor time of the first scan of a process"),
    ("scan_cpu_second", "Processor time of its second"),
    ("memory_peak", "Memory that a process's scans took at most"),
)


def reading_section(records: Records) -> Section:
    """The section, of records of the measurement reading."""
    shown: list[Table] = []
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
        tables=(*shown, *tables.lookups(records)),
    )
