"""What column metrics cost, and what they gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icebench.bench.execution.run_file import Run
from icebench.bench.experiment import parse_values
from icebench.bench.records.record import Record
from icebench.bench.report.charts import Line, LineChart, LinePanel, LinePoint
from icebench.bench.report.compare import Records, median
from icebench.bench.report.model import Cell, Table, plain
from icebench.bench.report.quantities import count, quantity
from icebench.bench.study.comparing import choice, effect, line_point, only, varied, within
from icebench.bench.study.page import Choice, Page
from icebench.bench.workloads.definitions import RowsWorkload

AXIS, NONE, USUAL = "metrics.default", "none", "truncate(16)"
ALONE, ALONE_LAYOUT = "filtered columns alone", "filtered-columns"
PLAN, READ, PLANNED = "latency_cold", "scan_time_cold", "files_planned_share"
FILTER, ALL = "one_percent", "all"


def answer(run: Run) -> Page:
    """What each mode adds to manifests and plans, and what its bounds save of a read."""
    records, columns = Records(run.records), _columns(run)
    modes = {**varied(run, AXIS), ALONE: ALONE_LAYOUT}
    engine = records.where(metric=PLAN).competing.engines[0]
    own = records.where(engine=engine)
    narrow, *_, wide = columns
    sizes = {mode: _bytes_of_an_entry(own.where(workload=wide, layout=modes[mode])) for mode in (NONE, USUAL, ALONE)}
    added = {mode: quantity(sizes[mode] - sizes[NONE], "bytes") for mode in (USUAL, ALONE)}
    planned = effect([_pair(own, wide, modes, PLAN, ALL)])
    reads = {workload: _pair(own, workload, modes, READ, FILTER) for workload in (narrow, wide)}
    said = " and ".join(f"{within(effect([pair]))} of {columns[own]:,} columns" for own, pair in reads.items())
    gains = choice(
        f"bounds of columns ({USUAL})",
        "no metrics",
        f"a cold read of 1 % of the rows, of {columns[narrow]:,} columns ({engine})",
        [reads[narrow][::-1]],
    )
    return Page(
        answer=f"Metrics in mode {USUAL} add {added[USUAL]} to a manifest for each file of "
        f"{count(columns[wide], 'column')}, and make a plan of all files {within(planned)} as long; a read of 1 % of "
        f"the rows takes {said} what it takes without metrics. Metrics of the filtered columns alone add "
        f"{added[ALONE]}.",
        chart=_chart(own, columns, modes),
        tables=(_table(own, columns, modes),),
        choices=(gains, *_of_filtered_columns(own, columns, modes, engine)),
    )


def _columns(run: Run) -> dict[str, int]:
    """Workload -> how many columns its table has, the fewest first."""
    workloads = parse_values(dict(run.environment["definition"])).workloads
    found = {each.name: len(each.rows.schema) for each in workloads if isinstance(each, RowsWorkload)}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _pair(own: Records, workload: str, modes: Mapping[str, str], metric: str, case: str) -> tuple[Record, Record]:
    """A record without metrics, and the same with the usual ones."""
    without, usual = (only(own, workload=workload, layout=modes[m], metric=metric, case=case) for m in (NONE, USUAL))
    return without, usual


def _of_filtered_columns(
    own: Records, columns: Mapping[str, int], modes: Mapping[str, str], engine: str
) -> Iterator[Choice]:
    *_, wide = columns
    alone, usual = (only(own, workload=wide, layout=modes[mode], metric=PLAN, case=FILTER) for mode in (ALONE, USUAL))
    yield choice(
        "metrics of the columns that filters name",
        f"metrics of all {columns[wide]:,} columns",
        f"a cold plan under a filter ({engine})",
        [(alone, usual)],
    )


def _bytes_of_an_entry(plans: Records) -> float:
    """The bytes of manifests as they are stored, headers included, for each of their files."""
    counters = only(plans, metric=PLAN, case=ALL).counters
    return counters["manifest_bytes_decoded"] / counters["entries_decoded"]


def _chart(own: Records, columns: Mapping[str, int], modes: Mapping[str, str]) -> LineChart:
    def sizes(mode: str) -> tuple[LinePoint, ...]:
        return tuple(
            LinePoint(x=number, y=_bytes_of_an_entry(own.where(workload=workload, layout=modes[mode])) / 1024)
            for workload, number in columns.items()
        )

    def timed(mode: str, metric: str, case: str) -> tuple[LinePoint, ...]:
        return tuple(
            line_point(number, only(own, workload=workload, layout=modes[mode], metric=metric, case=case), 1e3)
            for workload, number in columns.items()
        )

    *_, wide = columns
    planned, read = (effect([_pair(own, wide, modes, *what)]) for what in ((PLAN, ALL), (READ, FILTER)))
    return LineChart(
        caption=f"Of {count(columns[wide], 'column')}, relative to none: with {USUAL} a plan of all files takes "
        f"{within(planned)}, a read of 1 % of the rows {within(read)}.",
        x_axis="columns",
        y_axis="kilobytes; milliseconds",
        series=tuple(modes),
        panels=(
            LinePanel(
                title="Kilobytes of manifest for each file", lines=tuple(Line(series=m, points=sizes(m)) for m in modes)
            ),
            LinePanel(
                title="Milliseconds of a cold plan of all files",
                lines=tuple(Line(series=mode, points=timed(mode, PLAN, ALL)) for mode in modes),
            ),
            LinePanel(
                title="Milliseconds of a cold read of 1 % of the rows",
                lines=tuple(Line(series=mode, points=timed(mode, READ, FILTER)) for mode in modes),
            ),
        ),
    )


def _table(own: Records, columns: Mapping[str, int], modes: Mapping[str, str]) -> Table:
    def cells(workload: str, mode: str) -> Iterator[Cell]:
        table = own.where(workload=workload, layout=modes[mode])
        yield Cell(text=quantity(_bytes_of_an_entry(table), "bytes"))
        yield Cell(text=quantity(median(only(table, metric=PLAN, case=ALL)), "s"))
        for case in table.where(metric=READ).names("case"):
            planned = table.one(metric=PLANNED, case=case)
            yield Cell(text="-" if planned is None else quantity(median(planned), "ratio"))
            yield Cell(text=quantity(median(only(table, metric=READ, case=case)), "s"))

    cases = own.where(metric=READ).names("case")
    return Table(
        title="By columns and mode",
        columns=(
            "Columns",
            "Mode",
            "Manifest, for each file",
            "Plan of all",
            *(f"{case}: {what}" for case in cases for what in ("files planned", "read")),
        ),
        rows=tuple((Cell(text=f"{n:,}"), plain(mode), *cells(w, mode)) for w, n in columns.items() for mode in modes),
        note="Manifests are compressed, and their bytes include the header, which has the schema; times are medians of "
        "cold plans and reads.",
    )
