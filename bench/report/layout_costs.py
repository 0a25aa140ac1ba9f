"""What each layout costs to build, to keep and to ask, and when the one pays over the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icebench.bench.costs.costing import Costing
from icebench.bench.costs.object_store import dollars_per_month
from icebench.bench.records.record import Record
from icebench.bench.report.charts import ScatterChart, ScatterPoint
from icebench.bench.report.compare import Records, median
from icebench.bench.report.findings import least_sure
from icebench.bench.report.layouts import Grid, grids, heated, timed_records
from icebench.bench.report.model import Cell, Finding, Section, Table, Tone, plain
from icebench.bench.report.quantities import count, digits, quantity
from icebench.bench.statistics.claims import Effect, Series, effect_of

BUILDS = {
    "seconds": ("Build", "s"),
    "compaction_seconds": ("Compaction", "s"),
    "bytes_written": ("Written", "bytes"),
    "bytes_compacted": ("Compacted", "bytes"),
    "bytes_on_disk": ("On disk", "bytes"),
    "files": ("Files", "files"),
    "manifests": ("Manifests", "manifests"),
}
"""Figure of a build, as `icebench.bench.tables.table_builder.BuildCost` has it -> its column and its unit."""
_EXPLANATION = (
    "A query is the mean over the filters, each as often as the definition's weights say. A layout pays over the "
    "baseline after as many queries as make up for what it takes longer to build, if that a query takes less can be "
    "claimed."
)


@dataclass(frozen=True, kw_only=True)
class LayoutCost:
    """One layout.

    Args:
        layout: Its name.
        build: Key of `BUILDS` -> what building it took and gave; nothing for a table that was there.
        query: Quantity -> the mean over the filters, by the keys of `icebench.bench.report.layouts.grids`.
        engine: Whose time of a query that is.
        saved: Seconds that a query takes less than on the baseline: low, middle, high; of a layout that takes longer
            negative; None where that is no claim.
        extra_seconds: What building it takes more than the baseline.
    """

    layout: str
    build: Mapping[str, float]
    query: Mapping[str, float]
    engine: str
    saved: tuple[float, float, float] | None
    extra_seconds: float | None

    def pays_after(self) -> tuple[float, float, float] | None:
        """Queries until it has paid over the baseline: at least, about, at most; zeros where it does at once, None
        where it never does or that is undecided."""
        if self.saved is None or self.saved[1] <= 0 or self.extra_seconds is None:
            return None
        least, middle, most = (max(0.0, self.extra_seconds / seconds) for seconds in self.saved)
        return most, middle, least  # saving most pays soonest


def layout_costs(records: Records, costing: Costing) -> list[LayoutCost]:
    """The costs of layouts of which queries and builds were measured; none of fewer than two. That a query takes less
    on one than on the baseline is a claim, corrected for all layouts."""
    found = grids(records, costing)
    timed = next((grid for grid in found if grid.key == "time"), None)
    builds = records.where(measurement="build")
    if timed is None or len(timed.layouts) < 2 or not builds:
        return []
    baseline = costing.baseline if costing.baseline in timed.layouts else timed.layouts[0]
    series = timed_records(records)
    built = {layout: _build(builds, layout) for layout in timed.layouts}
    means = {layout: _means_by_round(series, layout, timed, costing) for layout in timed.layouts}
    effects = {layout: _effect(means[baseline], means[layout]) for layout in timed.layouts if layout != baseline}
    least = least_sure([effect.p_value for effect in effects.values() if effect is not None])
    costs = []
    for layout in timed.layouts:
        effect = effects.get(layout)
        own, other = built[layout].get("seconds"), built[baseline].get("seconds")
        costs.append(
            LayoutCost(
                layout=layout,
                build=built[layout],
                query=_means(found, layout, costing),
                engine=timed.engine,
                saved=None if effect is None or effect.p_value > least else _saved(means[baseline], effect),
                extra_seconds=None if own is None or other is None else own - other,
            )
        )
    return costs


def costs_section(costs: Sequence[LayoutCost], costing: Costing) -> Section:
    """The tables, and the picture of asking against building."""
    placed = [cost for cost in costs if cost.build]
    charts = (_pareto(placed),) if len(placed) > 1 else ()
    return Section(
        key="costs",
        title="What a layout costs",
        explanation=_EXPLANATION,
        charts=charts,
        tables=(costs_table(costs, costing), builds_table(costs, costing)),
        opening=True,
    )


def costs_table(costs: Sequence[LayoutCost], costing: Costing) -> Table:
    """What a query takes and costs, and what storing a table does; a row for each layout."""
    where = costing.profile.name
    sizes = [c.build.get("bytes_on_disk") for c in costs]
    months = [None if size is None else dollars_per_month(int(size)) for size in sizes]
    columns = {
        "Time of a query": heated([c.query.get("time") for c in costs], "s"),
        f"From S3, {where}": heated([c.query.get("s3") for c in costs], "s"),
        "$ per 1,000 queries": heated([c.query.get("dollars") for c in costs], "$"),
        "$ per month": heated(months, "$"),
    }
    return Table(
        title=f"What each layout costs with {costs[0].engine}",
        columns=("Layout", *columns),
        rows=_by_layout(costs, columns),
        note=f"The time of a query is that of {costs[0].engine}. Seconds from S3 and dollars are modelled from counted "
        "requests and bytes, at list prices.",
    )


def builds_table(costs: Sequence[LayoutCost], costing: Costing) -> Table:
    """What building takes and gives, and after how many queries that has paid; a row for each layout."""
    baseline = _baseline(costs, costing)
    columns = {
        **{name: _cells([c.build.get(key) for c in costs], unit) for key, (name, unit) in BUILDS.items()},
        "A query": heated([c.query.get("time") for c in costs], "s"),
        "Pays": (_pays(c, is_baseline=c.layout == baseline) for c in costs),
    }
    return Table(
        title=f"What building a layout takes, and when it pays over {baseline}",
        columns=("Layout", *columns),
        rows=_by_layout(costs, columns),
        note="Compaction rewrites appended rows into the layout's order and files. Its seconds and bytes are part of "
        "those of the build.",
    )


def payments(costs: Sequence[LayoutCost], costing: Costing) -> list[Finding]:
    """The layouts that pay, the soonest first."""
    baseline = _baseline(costs, costing) if costs else ""
    paying = [(after, cost) for cost in costs if (after := cost.pays_after()) is not None]
    found = []
    for (low, about, high), cost in sorted(paying, key=lambda own: own[0][1]):
        assert cost.saved is not None
        when = "at once" if not high else f"after {count(max(1, round(about)), 'query', 'queries')}"
        less = quantity(cost.saved[1], "s")
        extra = cost.extra_seconds or 0.0
        built = f", building it {quantity(abs(extra), 's')} {'more' if extra > 0 else 'less'}" if extra else ""
        interval = (
            f" It pays after {max(1, round(low)):,} to {max(1, round(high)):,} queries (95% interval)." if high else ""
        )
        found.append(
            Finding(
                statement=f"{cost.layout} pays over {baseline} {when}.",
                evidence=f"A query takes {less} less{built}.{interval}",
            )
        )
    return found


def _baseline(costs: Sequence[LayoutCost], costing: Costing) -> str:
    return costing.baseline if costing.baseline in [c.layout for c in costs] else costs[0].layout


def _cells(values: Sequence[float | None], unit: str) -> Iterator[Cell]:
    """Less time and fewer bytes are better; of files and manifests that cannot be said."""
    for value, cell in zip(values, heated(values, unit), strict=True):
        yield Cell(text=digits(value)) if value is not None and unit not in ("s", "bytes") else cell


def _by_layout(costs: Sequence[LayoutCost], columns: Mapping[str, Iterable[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(zip((plain(c.layout) for c in costs), *columns.values(), strict=True))


def _pays(cost: LayoutCost, *, is_baseline: bool) -> Cell:
    if is_baseline:
        return Cell(text="baseline")
    after = cost.pays_after()
    if after is None:
        never = cost.saved is not None and cost.saved[1] < 0
        return Cell(text="never" if never else "undecided", tone=Tone.DOUBTFUL)
    low, about, high = (max(1, round(queries)) for queries in after)
    if not after[2]:
        return Cell(text="at once")
    return Cell(text=f"after {count(about, 'query', 'queries')}", detail=f"[{low:,}, {high:,}]")


def _means(found: Sequence[Grid], layout: str, costing: Costing) -> dict[str, float]:
    means = {grid.key: costing.mean(grid.of(layout)) for grid in found if layout in grid.layouts}
    return {key: value for key, value in means.items() if value is not None}


def _means_by_round(series: Records, layout: str, timed: Grid, costing: Costing) -> dict[tuple[int, int], float]:
    """The mean over the filters in each round in which a layout was asked all of them."""
    by_case = {case: series.one(layout=layout, case=case) for case in timed.of(layout)}
    known = {case: record for case, record in by_case.items() if record is not None}
    return _by_round(known, costing) if known and len(known) == len(by_case) else {}


def _effect(baseline: Mapping[tuple[int, int], float], layout: Mapping[tuple[int, int], float]) -> Effect | None:
    """How many times the base the other takes; None where no round has both."""
    if not baseline.keys() & layout.keys() or min(*baseline.values(), *layout.values()) <= 0:
        return None
    base, head = (Series(np.array(list(own.values())), np.array(list(own))) for own in (baseline, layout))
    return effect_of([(base, head)])


def _saved(baseline: Mapping[tuple[int, int], float], effect: Effect) -> tuple[float, float, float]:
    """Seconds of a query on the baseline that the effect saves: the least, about, the most."""
    seconds = float(np.median(list(baseline.values())))
    least, about, most = (seconds * (1 - share) for share in (effect.high, effect.ratio, effect.low))
    return least, about, most


def _by_round(records: Mapping[str, Record], costing: Costing) -> dict[tuple[int, int], float]:
    values = {case: dict(zip(record.places, record.samples, strict=True)) for case, record in records.items()}
    shared = set.intersection(*(set(own) for own in values.values()))
    means = {place: costing.mean({case: own[place] for case, own in values.items()}) for place in shared}
    return {place: mean for place, mean in means.items() if mean is not None}


def _build(builds: Records, layout: str) -> dict[str, float]:
    found = {key: builds.one(layout=layout, metric=f"build_{key}") for key in BUILDS}
    return {key: median(record) for key, record in found.items() if record is not None}


def _pareto(costs: Sequence[LayoutCost]) -> ScatterChart:
    def is_beaten(one: LayoutCost) -> bool:
        """Whether another is no worse in both and better in one."""
        own = (one.build["seconds"], one.query["time"])
        others = [(c.build["seconds"], c.query["time"]) for c in costs]
        return any(o != own and o[0] <= own[0] and o[1] <= own[1] for o in others)

    return ScatterChart(
        caption="Seconds to build a layout against the time of a query on it. None of those that are joined is beaten "
        "in both.",
        x_axis="seconds to build",
        y_axis="milliseconds of a query",
        points=tuple(
            ScatterPoint(label=c.layout, x=c.build["seconds"], y=1000 * c.query["time"], joined=not is_beaten(c))
            for c in costs
        ),
    )
