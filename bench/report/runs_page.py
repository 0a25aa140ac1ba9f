"""Two runs side by side in one page: what may be said of them, every case drawn, and its samples on demand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from icebench.bench.execution.run_file import Run
from icebench.bench.records.record import Record
from icebench.bench.report.charts import DotChart, DotPanel, DotRow, Point
from icebench.bench.report.compare import bounds, median, table_names
from icebench.bench.report.model import Comparison, Fact, Report, Section
from icebench.bench.report.quantities import count, scaled
from icebench.bench.report.remarks import is_timed
from icebench.bench.report.run_comparison import has_several_measurements, pairs_of

_SERIES = ("first run", "second run")


def runs_report(base: Run, head: Run, comparison: Comparison, names: Sequence[str]) -> Report:
    """The page of a comparison; `names` are the runs as they were named."""
    timed = [pair for pair in pairs_of(base, head) if is_timed(pair[0])]
    summary, *_ = comparison.tables
    return Report(
        title=f"{head.run_id} against {base.run_id}",
        subtitle=f"{count(len(timed), 'timed case')} that both runs have.",
        source=f"{base.run_id}, {head.run_id}",
        findings=comparison.findings,
        remarks=(),
        sections=(
            Section(
                key="summary",
                title="By engine",
                explanation=" ".join(comparison.notes),
                tables=(summary,),
                opening=True,
            ),
            Section(
                key="cases",
                title="Case by case",
                explanation="Medians with their intervals.",
                charts=tuple(_charts(timed)),
                tables=comparison.tables[comparison.summaries :],
            ),
        ),
        facts=tuple(_facts(base, head)),
        facts_title="The runs",
        reproduce=(shlex.join(["icebench", "compare", *names, "--html", "runs.html"]),),
    )


def _charts(timed: Sequence[tuple[Record, Record]]) -> Iterator[DotChart]:
    """One for each metric of a measurement, with a panel for each engine."""
    tables, several = table_names(head for _, head in timed), has_several_measurements(timed)
    for measurement, metric in dict.fromkeys((head.measurement, head.metric) for _, head in timed):
        own = [pair for pair in timed if (pair[1].measurement, pair[1].metric) == (measurement, metric)]
        scale, unit = scaled(max(median(record) for pair in own for record in pair), own[0][1].unit)
        panels = []
        for engine in dict.fromkeys(head.engine for _, head in own):
            rows = [
                DotRow(label=_label(pair[1], tables), points=tuple(_points(pair, scale)))
                for pair in own
                if pair[1].engine == engine
            ]
            panels.append(DotPanel(title=engine, rows=tuple(rows)))
        caption = f"{measurement}: {metric}" if several else metric
        yield DotChart(caption=caption, axis=unit, log=True, series=_SERIES, panels=tuple(panels))


def _label(record: Record, tables: Mapping[tuple[str, str], str]) -> str:
    table = tables[record.workload, record.layout]
    return f"{table}, {record.case}" if record.layout != record.workload else f"{table} {record.case}"


def _points(pair: tuple[Record, Record], scale: float) -> Iterator[Point]:
    for series, record in zip(_SERIES, pair, strict=True):
        low, high = bounds(record) or (None, None)
        yield Point(
            series=series,
            value=median(record) / scale,
            low=None if low is None else low / scale,
            high=None if high is None else high / scale,
        )


def _facts(base: Run, head: Run) -> Iterator[Fact]:
    for name, run in zip(("First run", "Second run"), (base, head), strict=True):
        git = run.environment.get("git") or {}
        revision = f", revision {git['revision'][:12]}" if git.get("revision") else ""
        yield Fact(name, f"{run.run_id}, {run.environment.get('started', 'at an unknown time')}{revision}")
