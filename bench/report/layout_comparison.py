"""Layouts of one run side by side: what each filter costs on each, and what each layout costs as it is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from icebench.bench.costs.costing import Costing
from icebench.bench.definition import one_of
from icebench.bench.errors import ConfigError
from icebench.bench.execution.measurement import BUILDER
from icebench.bench.execution.run_file import Run
from icebench.bench.report.compare import Records
from icebench.bench.report.findings import least_sure, p_values_of, races_of_layouts
from icebench.bench.report.layout_costs import (
    BUILDS,
    LayoutCost,
    builds_table,
    claimed,
    costs_p_values,
    layout_costs,
    payments,
)
from icebench.bench.report.layouts import NAMES, Grid, grids, heat_map, heated, read_words, timed_records
from icebench.bench.report.model import Comparison, Finding, Row, Table, plain
from icebench.bench.report.quantities import count, listed, times
from icebench.bench.statistics.claims import LEAST_EFFECT

_READS = ("bytes", "planned")


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
    found = [grid for grid in grids(records, costing) if grid.of(grid.layouts[0])]
    if len(chosen) < 2 or not found:
        raise ConfigError("has no two layouts with figures of the same filters to compare", path=run.run_id)
    asked = found[0].of(chosen[0])
    how = "by the run's weights" if costing.weights else "each asked as often as the others"
    timed = timed_records(records)
    races = races_of_layouts(timed)
    costs = layout_costs(records, costing)
    least = least_sure([*p_values_of(races.values()), *costs_p_values(costs)])
    costs = claimed(costs, least)
    summaries = (_summary(found, chosen, costing), *([builds_table(costs)] if costs else []))
    by = f", by {read_words(timed)}" if timed else ""
    engines = listed(list(dict.fromkeys(grid.engine for grid in found)))
    return Comparison(
        title=f"{listed(list(chosen))} in {run.run_id}: {engines}, {count(len(asked), 'filter')}, {how}{by}",
        findings=(*_by_filter(found, {c: race.finding(least) for c, race in races.items()}), *payments(costs)),
        tables=(*summaries, *map(heat_map, found)),
        notes=tuple(dict.fromkeys(grid.note for grid in found if grid.note)),
        rows=(*_rows(found, costing), *_build_rows(costs)),
        summaries=len(summaries),
    )


def _summary(found: Sequence[Grid], layouts: Sequence[str], costing: Costing) -> Table:
    """A row for each layout: the mean over the filters of each quantity."""
    columns = []
    for grid in found:
        means = [costing.mean(grid.of(layout)) if layout in grid.layouts else None for layout in layouts]
        columns.append(list(heated(means, grid.unit)))
    return Table(
        title="A query, in the mean over the filters",
        columns=("Layout", *(NAMES[grid.key] for grid in found)),
        rows=tuple((plain(layout), *cells) for layout, cells in zip(layouts, zip(*columns, strict=True), strict=True)),
    )


def _by_filter(found: Sequence[Grid], fastest: Mapping[str, Finding]) -> Iterator[Finding]:
    """For each filter the layout that is fastest, where that may be claimed, and the one of which the least is read,
    which is counted."""
    reads = next((grid for grid in found if grid.key in _READS), None)
    for case in dict.fromkeys(case for grid in found for case in grid.cases):
        said = [f"reads {_least(reads, case)}"] if reads is not None and case in reads.cases else []
        if case in fastest:
            said.append(fastest[case].statement.removeprefix(case).lstrip(": ").removesuffix("."))
        evidence = fastest[case].evidence if case in fastest else ""
        if said:
            is_read = said[0].startswith("reads")
            yield Finding(statement=f"{case}{'' if is_read else ':'} {'; '.join(said)}.", evidence=evidence)


def _least(grid: Grid, case: str) -> str:
    values = {layout: grid.values[case, layout] for layout in grid.layouts if (case, layout) in grid.values}
    first = min(values, key=lambda layout: values[layout])
    least = math.exp(LEAST_EFFECT)
    others = [f"{times(v / values[first])} on {n}" for n, v in values.items() if v > least * values[first] > 0]
    return f"least on {first} ({', '.join(others)})" if others else "as much on each layout"


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
