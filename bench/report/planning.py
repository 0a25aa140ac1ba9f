"""The section on planning: times cold, warm and in fresh processes, memory, and this project's engine against each."""

from __future__ import annotations

from collections.abc import Callable

from bench.measure.record import Record
from bench.report import tables
from bench.report.charts import Chart, DotChart
from bench.report.compare import FLOOR, Records, ratio
from bench.report.model import Cell, Section, Table, Tone, plain
from bench.report.quantities import times
from bench.statistics.claims import Effect

OWN = "icebench"
"""The engine that is held against the others."""

_CHARTED = (("latency_cold", "cold"), ("latency_warm", "warm"))
_METRICS = (
    *((metric, f"Planning time, {words}") for metric, words in _CHARTED),
    ("cpu_cold", "Processor time of a cold plan"),
    ("cpu_warm", "Processor time of a warm plan"),
    ("latency_fresh", "From starting a process to its first plan"),
    ("cpu_fresh", "Processor time of a process until its first plan"),
    ("memory_peak", "Memory that the first plan of a process takes"),
)
_EXPLANATION = (
    "From an opened table to the complete list of files to read, with their deletes and residual filters. "
    "Cold: the first plan of a fresh table handle, nothing of the table cached in the process. Warm: another "
    "plan of the same handle, which may use whatever the engine keeps."
)
_FLOOR = (
    f" {FLOOR} is no engine: the same manifests' bytes inflated and nothing else, the least that planning from them "
    "can cost."
)


def planning_section(records: Records, draw: Callable[[Records, str], DotChart]) -> Section:
    """The section.

    Args:
        records: Of the measurement planning.
        draw: Charts the records of a metric under a caption.
    """
    charts: list[Chart] = []
    shown: list[Table] = []
    for metric, words in _CHARTED:
        if found := records.where(metric=metric):
            charts.append(draw(found, f"Planning time, {words}: median and interval."))
    for metric, title in _METRICS:
        if found := records.where(metric=metric):
            shown.append(tables.comparison(found, title=title, case_name="Filter"))
            shown += filter(None, [against(found, title)])
    return Section(
        key="planning",
        title="Planning latency",
        explanation=_EXPLANATION + (_FLOOR if FLOOR in records.engines else ""),
        charts=tuple(charts),
        tables=(*shown, *tables.lookups(records)),
    )


def against(records: Records, title: str) -> Table | None:
    """How many times what this project's engine takes the others take: more than 1 is an advantage; None without it."""
    others = [engine for engine in records.engines if engine != OWN]
    rows = []
    for case, layout, found in records.cases():
        own = found.one(engine=OWN)
        if own is not None:
            rows.append((plain(case), plain(layout), *(_advantage(own, found.one(engine=e)) for e in others)))
    if not rows or not others:
        return None
    return Table(
        title=f"{title}: how many times that of {OWN}",
        columns=("Filter", "Layout", *others),
        rows=tuple(rows),
        note="Ratio of paired samples and its interval; above 1 the other takes more.",
    )


def _advantage(own: Record, other: Record | None) -> Cell:
    found = None if other is None else ratio(own, other)
    if found is None:
        return tables.NOT_MEASURED
    return Cell(text=times(found.ratio), detail=f"[{times(found.low)}, {times(found.high)}]", tone=_tone(found, other))


def _tone(found: Effect, other: Record | None) -> Tone:
    if other is None or other.engine == FLOOR:
        return Tone.PLAIN
    return Tone.BEST if found.low > 1 else Tone.DOUBTFUL
