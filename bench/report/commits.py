"""The sections on what changes tables, commits and upkeep: time, processor time and what else an engine takes for it,
and this project's engine against each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.report import tables
from bench.report.charts import DotChart
from bench.report.compare import Records
from bench.report.model import Section
from bench.report.planning import against


@dataclass(frozen=True, kw_only=True)
class _Said:
    """`metrics` by what they are called, the first of them charted; `figures` are shown without a race."""

    title: str
    explanation: str
    metrics: Mapping[str, str]
    figures: Mapping[str, str]


_SECTIONS = {
    "commits": _Said(
        title="Commit latency",
        explanation=(
            "One append of files that were described before, in the form in which each engine takes them, to an empty "
            "table: manifests, manifest list and metadata are written and the table's pointer moved. No data file is "
            "written or read. What was committed was read back, where possible by another engine, and seen to be right."
        ),
        metrics={"latency_commit": "Time of a commit", "cpu_commit": "Processor time of a commit"},
        figures={},
    ),
    "maintenance": _Said(
        title="Upkeep",
        explanation=(
            "The same upkeep of equal copies of the same files: data files rewritten to a target size, as they are, "
            "sorted, or in Z-order; manifests rewritten by partition; all snapshots but the last expired; orphan files "
            "deleted. From the name of the table to the last commit and the last deleted file. After every run the "
            "table had the same rows, and files, sizes and order as asked for."
        ),
        metrics={"upkeep_time": "Time of upkeep", "upkeep_cpu": "Processor time of upkeep"},
        figures={
            "bytes_written": "Bytes written",
            "files_written": "Files written",
            "files_deleted": "Files deleted",
            "upkeep_memory": "Rise of resident memory; a Java virtual machine keeps what earlier runs made it take",
        },
    ),
}


def changes_section(records: Records, draw: Callable[[Records, str], DotChart]) -> Section:
    """The section.

    Args:
        records: Of one of these measurements.
        draw: Charts the records of a metric under a caption.
    """
    measurement = records.all[0].measurement
    said = _SECTIONS[measurement]
    shown = []
    for metric, title in {**said.metrics, **said.figures}.items():
        if found := records.where(metric=metric):
            shown.append(tables.comparison(found, title=title, case_name="Change"))
            shown += filter(None, [against(found, title)] if metric in said.metrics else ())
    charted, title = next(iter(said.metrics.items()))
    timed = records.where(metric=charted)
    return Section(
        key=measurement,
        title=said.title,
        explanation=said.explanation,
        charts=(draw(timed, f"{title}: median and 95% interval."),) if timed else (),
        tables=(*shown, *tables.lookups(records)),
    )
