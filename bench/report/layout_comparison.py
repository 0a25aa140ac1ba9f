"""Layouts of one run side by side: what each filter costs on each, and what each layout costs as it is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from icebench.bench.costs.costing import Costing
from icebench.bench.definition import one_of
from icebench.bench.errors import ConfigError
from icebench.bench.execution.measurement import BUILDER
from icebench.bench.execution.run_file import Run
from icebench.bench.report.compare import Records, ordered
from icebench.bench.report.findings import Ranking, least_sure, p_values_of, races_of_layouts
from icebench.bench.report.layout_costs import (
    BUILDS,
    LayoutCost,
    builds_table,
    claimed,
    costs_p_values,
    has_builds,
    layout_costs,
    left_out_words,
    payments,
)
from icebench.bench.report.layouts import (
    NAMES,
    READS,
    Grid,
    grids,
    heat_map,
    heated,
    left_out,
    read_words,
    timed_records,
)
from icebench.bench.report.model import Comparison, Finding, Row, Table, plain
from icebench.bench.report.quantities import count, listed, times
from icebench.bench.report.remarks import Severity, remarks_of
from icebench.bench.statistics.claims import LEAST_EFFECT


def compare_layouts(run: Run, names: Sequence[str], costing: Costing) -> Comparison:
    """The layouts of these names, all of the run for none.

    Raises:
        ConfigError: The run has no such layout, or fewer than two are left, or nothing of two of them can be compared.
    """
    known = Records(run.records).names("layout")
    for name in names:
        one_of(name, known, "layout", run.run_id)
    chosen = tuple(name for name in known if not names or name in names)
    records = Records(tuple(r for r in run.records if r.layout in chosen), layout_order=chosen)
    parts = [part for workload, own in records.by_workload() if (part := _Part.of(workload, own, costing)) is not None]
    if len(chosen) < 2 or not parts:
        raise ConfigError("has no two layouts with figures of the same filters to compare", path=run.run_id)
    least = least_sure([p_value for part in parts for p_value in part.p_values])
    found = [grid for part in parts for grid in part.found]
    asked = {case for part in parts for case in part.found[0].of(part.found[0].layouts[0])}
    how = "by the run's weights" if costing.weights else "each asked as often as the others"
    by = f", by {read}" if (read := next((part.read for part in parts if part.read), "")) else ""
    engines = listed(list(dict.fromkeys(grid.engine for grid in found)))
    summaries = [table for part in parts for table in part.summaries(least)]
    errors = [remark.text for remark in remarks_of(run) if remark.severity is Severity.ERROR]
    return Comparison(
        title=f"{listed(list(chosen))} in {run.run_id}: {engines}, {count(len(asked), 'filter')}, {how}{by}",
        findings=tuple(finding for part in parts for finding in part.findings(least)),
        tables=(*summaries, *(heat_map(grid).of_workload(part.workload) for part in parts for grid in part.found)),
        notes=(*errors, *dict.fromkeys(grid.note for grid in found if grid.note)),
        rows=tuple(row for part in parts for row in part.rows(least)),
        summaries=len(summaries),
        errors=len(errors),
    )


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The layouts of one workload.

    Args:
        workload: Its name, in what is said where there are several; else empty.
        name: Its name.
        layouts: In their order.
        costing: What the cost of a layout is made from.
        found: Figures of at least one filter that all layouts have.
        read: Of what the times are, such as ``cold reads``; empty without times.
        races: By filter.
        costs: Not yet `claimed`; none where no table was built, as they are for what building takes.
    """

    workload: str
    name: str
    layouts: Sequence[str]
    costing: Costing
    found: Sequence[Grid]
    read: str
    races: Mapping[str, Ranking]
    costs: Sequence[LayoutCost]

    @classmethod
    def of(cls, workload: str, records: Records, costing: Costing) -> _Part | None:
        """None where nothing of two layouts can be compared."""
        found = [grid for grid in grids(records, costing) if grid.of(grid.layouts[0])]
        if not found:
            return None
        timed, costs = timed_records(records), layout_costs(records, costing)
        return cls(
            workload=workload,
            name=records.all[0].workload,
            layouts=ordered(records.names("layout"), records.layout_order),
            costing=costing,
            found=found,
            read=read_words(timed) if timed else "",
            races=races_of_layouts(timed),
            costs=costs if has_builds(costs) else (),
        )

    @property
    def p_values(self) -> list[float]:
        return [*p_values_of(self.races.values()), *costs_p_values(self.costs)]

    def summaries(self, least: float) -> list[Table]:
        costs = claimed(self.costs, least)
        made = (_summary(self.found, self.layouts, self.costing), *([builds_table(costs)] if costs else []))
        return [table.of_workload(self.workload) for table in made]

    def findings(self, least: float) -> list[Finding]:
        fastest = {case: race.finding(least) for case, race in self.races.items()}
        said = (*_by_filter(self.found, fastest), *payments(claimed(self.costs, least)))
        return [finding.of_workload(self.workload) for finding in said]

    def rows(self, least: float) -> Iterator[Row]:
        for row in (*_rows(self.found, self.costing), *_build_rows(claimed(self.costs, least))):
            yield {**row, "workload": self.name}


def _summary(found: Sequence[Grid], layouts: Sequence[str], costing: Costing) -> Table:
    """A row for each layout: the mean over the filters of each quantity."""
    columns = []
    several = len({grid.engine for grid in found}) > 1
    for grid in found:
        means = [costing.mean(grid.of(layout)) if layout in grid.layouts else None for layout in layouts]
        columns.append(list(heated(means, grid.unit, modelled=grid.key == "s3")))
    return Table(
        title="A query, in the mean over the filters",
        columns=("Layout", *(NAMES[grid.key] + (f", {grid.engine}" if several else "") for grid in found)),
        rows=tuple((plain(layout), *cells) for layout, cells in zip(layouts, zip(*columns, strict=True), strict=True)),
        note=left_out_words(left_out(found, costing)).lstrip(),
    )


def _by_filter(found: Sequence[Grid], fastest: Mapping[str, Finding]) -> Iterator[Finding]:
    """For each filter the layout that is fastest, where that may be claimed, and the one of which the least is read, or
    else planned, which is counted."""
    reads = next((grid for grid in found if grid.key in READS), None)
    for case in dict.fromkeys(case for grid in found for case in grid.cases):
        counted = [_least(reads, case)] if reads is not None and case in reads.cases else []
        said = [*counted]
        if case in fastest:
            said.append(fastest[case].statement.removeprefix(case).lstrip(": ").removesuffix("."))
        evidence = fastest[case].evidence if case in fastest else ""
        if said:
            yield Finding(statement=f"{case}{'' if counted else ':'} {'; '.join(said)}.", evidence=evidence)


def _least(grid: Grid, case: str) -> str:
    """The layout of which the least is read, in bytes, or planned, as a share of its own bytes; and how many times that
    of others."""
    values = {layout: grid.values[case, layout] for layout in grid.layouts if (case, layout) in grid.values}
    first = min(values, key=lambda layout: values[layout])
    least = values[first] * math.exp(LEAST_EFFECT)
    more = {name: value for name, value in values.items() if value > least}
    is_read = grid.key == "bytes"
    if not more:
        return "reads as much on each layout" if is_read else "plans the same share of bytes on each layout"
    others = [f"{times(value / values[first])} on {name}" for name, value in more.items() if values[first]]
    detail = ", ".join(others) or "nothing"
    return f"{'reads least' if is_read else 'plans the least share of bytes'} on {first} ({detail})"


def _rows(found: Sequence[Grid], costing: Costing) -> Iterator[Row]:
    for grid in found:
        for (case, layout), value in grid.values.items():
            yield {
                "layout": layout,
                "filter": case,
                "quantity": grid.key,
                "unit": grid.unit,
                "engine": grid.engine,
                "value": value,
            }
        for layout in grid.layouts:
            yield {
                "layout": layout,
                "filter": "*",
                "quantity": grid.key,
                "unit": grid.unit,
                "engine": grid.engine,
                "value": costing.mean(grid.of(layout)),
            }


def _build_rows(costs: Sequence[LayoutCost]) -> Iterator[Row]:
    """What building took, and the queries after which it has paid: at least, about and at most."""
    for cost in costs:
        row = {"layout": cost.layout, "filter": "", "engine": BUILDER}
        for key, value in cost.build.items():
            yield {**row, "quantity": f"build_{key}", "unit": BUILDS[key][1], "value": value}
        after = cost.pays_after() or ()
        for key, value in zip(("least", "median", "most"), after, strict=bool(after)):
            yield {**row, "quantity": f"pays_after_{key}", "unit": "queries", "engine": cost.engine, "value": value}
