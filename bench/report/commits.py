"""The section on commits: time and processor time of one append, and this project's engine against each."""

from __future__ import annotations

from collections.abc import Callable

from bench.report import tables
from bench.report.charts import DotChart
from bench.report.compare import Records
from bench.report.model import Section
from bench.report.planning import against

_METRICS = (("latency_commit", "Time of a commit"), ("cpu_commit", "Processor time of a commit"))


def commits_section(records: Records, draw: Callable[[Records, str], DotChart]) -> Section:
    """The section.

    Args:
        records: Of the measurement commits.
        draw: Charts the records of a metric under a caption.
    """
    shown = []
    for metric, title in _METRICS:
        if found := records.where(metric=metric):
            shown.append(tables.comparison(found, title=title, case_name="Change"))
            shown += filter(None, [against(found, title)])
    latencies = records.where(metric=_METRICS[0][0])
    return Section(
        key="commits",
        title="Commit latency",
        explanation=(
            "One append of files that were described before, in the form in which each engine takes them, to an empty "
            "table: manifests, manifest list and metadata are written and the table's pointer moved. No data file is "
            "written or read. What was committed was read back, where possible by another engine, and seen to be right."
        ),
        charts=(draw(latencies, "Time of a commit: median and 95% interval."),) if latencies else (),
        tables=(*shown, *tables.lookups(records)),
    )
