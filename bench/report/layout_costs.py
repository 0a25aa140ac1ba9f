"""What each layout costs to build, to keep and to ask, and when the one pays over the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from icebench.bench.costs.costing import Costing
from icebench.bench.costs.object_store import dollars_per_month
from icebench.bench.execution.pace import FEWEST_BUILDS
from icebench.bench.records.record import Record
from icebench.bench.report.charts import ScatterChart, ScatterPoint
from icebench.bench.report.compare import Records, median, series_of
from icebench.bench.report.layouts import (
    MODEL_RANKS,
    OF_MODEL,
    READS,
    Grid,
    grids,
    heated,
    left_out,
    processor_records,
    read_words,
    timed_records,
)
from icebench.bench.report.model import Cell, Finding, Section, Table, Tone, plain
from icebench.bench.report.quantities import count, digits, quantity
from icebench.bench.statistics.break_even import Difference, Interval, difference_of, interval_of, pays_after
from icebench.bench.statistics.claims import Effect, Series, effect_of

BUILDS = {
    "cpu_seconds": ("Build", "s"),
    "seconds": ("By the clock", "s"),
    "compaction_seconds": ("Compaction", "s"),
    "bytes_written": ("Written", "bytes"),
    "bytes_compacted": ("Compacted", "bytes"),
    "bytes_on_disk": ("On disk", "bytes"),
    "files": ("Files", "files"),
    "manifests": ("Manifests", "manifests"),
}
"""Figure of a build, as its records name it after ``build_`` -> its column and its unit."""
_TIMES = {key for key, (_, unit) in BUILDS.items() if unit == "s"}
_NEVER = "never"
PROCESSOR, CLOCK = "processor time", "time by the clock"
_EXPLANATION = (
    "A query is the mean over the filters that all layouts have, each as often as the definition's weights say."
)
_OF_PAYING = (
    " A layout pays over the baseline after as many queries as make up for what it takes more to build, if that a "
    "query takes less can be claimed. Builds and queries both count in processor time, which other programs disturb "
    "least; by the clock where an engine does not report it. The interval has the error of both."
)


@dataclass(frozen=True, kw_only=True)
class LayoutCost:
    """One layout.

    Args:
        layout: Its name.
        build: Key of `BUILDS` -> what building it took and gave; nothing for a table that was there.
        query: Quantity -> the mean over the filters, by the keys of `icebench.bench.report.layouts.grids`.
        engine: Whose time of a query that is.
        modelled: The engine whose counted reads the seconds and dollars on an object store are of; empty without them.
        read: Of what the queries are, such as ``cold reads``.
        clock: In which time it pays: `PROCESSOR` or `CLOCK`.
        saved: Seconds that a query takes less than on the baseline; of a layout that takes longer negative; None where
            that is no claim, or was not measured.
        effect: How many times the baseline a query takes; None of the baseline, and where that was not measured.
        is_baseline: Whether the others are compared with it.
        extra: Seconds that building it takes more than the baseline; None where either was not built twice.
        taken: What building it takes by that clock: low, about, high; None where it was not built twice.
        left_out: The filters that have no part in a query, and why; empty where all have.
        builds_timed: Whether building it and the baseline was timed, though it may have been once.
    """

    layout: str
    build: Mapping[str, float]
    query: Mapping[str, float]
    engine: str
    read: str
    clock: str = PROCESSOR
    saved: Difference | None = None
    effect: Effect | None = None
    is_baseline: bool = False
    extra: Difference | None = None
    taken: Interval | None = None
    left_out: str = ""
    modelled: str = ""
    builds_timed: bool = True

    def pays_after(self) -> Interval | None:
        """Queries until it has paid over the baseline: at least, about, at most; zeros where it does at once, None
        where it never does, or that is undecided or was not measured."""
        return None if self.saved is None or self.extra is None else pays_after(self.extra, self.saved)


def layout_costs(records: Records, costing: Costing) -> list[LayoutCost]:
    """The costs of layouts of which queries were measured, with those of building them where tables were built; none of
    fewer than two. That a query takes less on one than on the baseline is a claim, which `claimed` corrects."""
    found = grids(records, costing)
    timed = next((grid for grid in found if grid.key == "time"), None)
    builds = records.where(measurement="build")
    if timed is None or len(timed.layouts) < 2:
        return []
    baseline = costing.baseline if costing.baseline in timed.layouts else timed.layouts[0]
    read = read_words(timed_records(records))
    clock, queries, built = _clocked(records, builds, timed, costing)
    effects = {layout: _effect(queries[baseline], queries[layout]) for layout in timed.layouts if layout != baseline}
    timed_builds = builds.where(metric="build_seconds").names("layout")
    missing = left_out([grid for grid in found if grid.key not in READS], costing)
    costs = []
    for layout in timed.layouts:
        effect = effects.get(layout)
        own, taken = built[layout], queries[layout]
        costs.append(
            LayoutCost(
                layout=layout,
                build=_build(builds, layout),
                query=_means(found, layout, costing),
                engine=timed.engine,
                read=read,
                clock=clock,
                saved=None if effect is None else _more(taken, queries[baseline]),
                effect=effect,
                is_baseline=layout == baseline,
                extra=_more(built[baseline], own) if layout in effects else None,
                taken=None if own is None else interval_of(own),
                left_out=missing,
                modelled=next((grid.engine for grid in found if grid.key in OF_MODEL), ""),
                builds_timed={layout, baseline} <= {*timed_builds},
            )
        )
    return costs


def has_builds(costs: Iterable[LayoutCost]) -> bool:
    """Whether anything is known of building a layout; not of tables that were there."""
    return any(cost.build for cost in costs)


def costs_p_values(costs: Iterable[LayoutCost]) -> list[float]:
    """Of the claims that queries take less."""
    return [cost.effect.p_value for cost in costs if cost.effect is not None]


def claimed(costs: Iterable[LayoutCost], least: float) -> list[LayoutCost]:
    """The costs with savings where they are claims; `least` is the largest p-value of a claim, corrected for all claims
    of the report (`least_sure`)."""
    return [replace(c, saved=None) if c.effect is not None and c.effect.p_value > least else c for c in costs]


def _clocked(
    records: Records, builds: Records, timed: Grid, costing: Costing
) -> tuple[str, dict[str, Series | None], dict[str, Series | None]]:
    """In which time a layout pays, what a query takes by layout in each round, and what a build does. Processor time
    where all of them have it; that of Java comes in hundredths of a second, and a query may take none of them."""

    def asked(series: Records) -> dict[str, Series | None]:
        return {layout: _means_by_round(series, layout, timed, costing) for layout in timed.layouts}

    clock, queries, metric = PROCESSOR, asked(processor_records(records)), "build_cpu_seconds"
    by_clock = asked(timed_records(records))
    if any(by_clock[layout] and not own for layout, own in queries.items()):
        clock, queries, metric = CLOCK, by_clock, "build_seconds"
    return clock, queries, {layout: _series(builds.one(layout=layout, metric=metric)) for layout in timed.layouts}


def costs_section(costs: Sequence[LayoutCost], costing: Costing) -> Section:
    """The tables, and the picture of asking against building."""
    placed = [cost for cost in costs if cost.taken is not None and "time" in cost.query]
    charts = (_pareto(placed),) if len(placed) > 1 else ()
    is_built = has_builds(costs)
    return Section(
        key="costs",
        title="What a layout costs",
        explanation=_EXPLANATION + (_OF_PAYING if is_built else ""),
        charts=charts,
        tables=(costs_table(costs, costing), *([builds_table(costs)] if is_built else [])),
        opening=True,
    )


def costs_table(costs: Sequence[LayoutCost], costing: Costing) -> Table:
    """What a query takes, and what it and storing a table cost, where that is known; a row for each layout."""
    where, engine, modelled = costing.profile.name, costs[0].engine, costs[0].modelled
    of, of_model = ("", "") if modelled in ("", engine) else (f", {engine}", f", {modelled}")
    sizes = [c.build.get("bytes_on_disk") for c in costs]
    months = [None if size is None else dollars_per_month(int(size)) for size in sizes]
    known = {
        f"From S3, {where}{of_model}": ([c.query.get("s3") for c in costs], "s"),
        f"$ per 1,000 queries{of_model}": ([c.query.get("dollars") for c in costs], "$"),
        "$ per month": (months, "$"),
    }
    columns = {
        f"Time of a query{of}": heated([c.query.get("time") for c in costs], "s"),
        **{
            name: heated(values, unit, modelled=unit == "s")
            for name, (values, unit) in known.items()
            if any(v is not None for v in values)
        },
    }
    priced = " Dollars are list prices." if "$ per month" in columns else ""
    if modelled:
        priced = (
            f" Seconds from S3 and dollars are modelled from counted requests and bytes of {modelled}, at list prices. "
            f"{MODEL_RANKS}"
        )
    return Table(
        title=f"What each layout costs{'' if of else f' with {engine}'}, by {costs[0].read}",
        columns=("Layout", *columns),
        rows=_by_layout(costs, columns),
        note=f"The time of a query is that of {engine}, by {costs[0].read}.{priced}{left_out_words(costs[0].left_out)}",
    )


def builds_table(costs: Sequence[LayoutCost]) -> Table:
    """What building takes and gives, and after how many queries that has paid; a row for each layout."""
    baseline = baseline_of(costs)
    columns = {
        "Pays": map(_pays, costs),  # what the others are for, so it is seen in a narrow window, too
        **{name: _cells([c.build.get(key) for c in costs], unit) for key, (name, unit) in BUILDS.items()},
        "A query": heated([c.query.get("time") for c in costs], "s"),
    }
    return Table(
        title=f"What building a layout takes, and when it pays over {baseline}",
        columns=("Layout", *columns),
        rows=_by_layout(costs, columns),
        note=f"A query is by {costs[0].read} of {costs[0].engine}. {_builds_words(costs)}"
        f"{left_out_words(costs[0].left_out)}",
    )


def _builds_words(costs: Sequence[LayoutCost]) -> str:
    """What the columns of building mean; nothing of times where none was taken."""
    compaction = "Compaction rewrites appended rows into the layout's order and files"
    if not any(cost.build.keys() & _TIMES for cost in costs):
        return f"{compaction}; its bytes are part of the build's."
    return (
        f"Build is {PROCESSOR}; the median of several builds of each table, interleaved with the queries. It pays by "
        f"{costs[0].clock}. {compaction}; its seconds by the clock, and its bytes, are part of the build's."
    )


def left_out_words(left_out: str) -> str:
    """The sentence, after others."""
    return f" Left out of the mean: {left_out}." if left_out else ""


def payments(costs: Sequence[LayoutCost]) -> list[Finding]:
    """The layouts that pay, the soonest first."""
    baseline = baseline_of(costs) if costs else ""
    paying = [(after, cost) for cost in costs if (after := cost.pays_after()) is not None]
    found = []
    for (low, about, high), cost in sorted(paying, key=lambda own: own[0][1]):
        assert cost.saved is not None
        assert cost.extra is not None
        when = _when(about)
        more = cost.extra.amount
        takes = f"building it {quantity(abs(more), 's')} {'more' if more > 0 else 'less'}"
        least = f"after {max(1, round(low)):,} to" if low else "at once or after at most"
        interval = f" It pays {least} {_queries(high)} (95% interval)." if high else ""
        found.append(
            Finding(
                statement=f"{cost.layout} pays over {baseline} {when}.",
                evidence=f"A query takes {quantity(cost.saved.amount, 's')} less of {cost.clock} by {cost.read}, "
                f"{takes}.{interval}{left_out_words(cost.left_out)}",
            )
        )
    return found


def _when(queries: float) -> str:
    return f"after {_queries(queries)}" if queries else "at once"


def _queries(queries: float) -> str:
    return count(max(1, round(queries)), "query", "queries")


def baseline_of(costs: Sequence[LayoutCost]) -> str:
    """The layout that the others are compared with."""
    return next(cost.layout for cost in costs if cost.is_baseline)


def _cells(values: Sequence[float | None], unit: str) -> Iterator[Cell]:
    """Less time and fewer bytes are better; of files and manifests that cannot be said."""
    for value, cell in zip(values, heated(values, unit), strict=True):
        yield Cell(text=digits(value)) if value is not None and unit not in ("s", "bytes") else cell


def _by_layout(costs: Sequence[LayoutCost], columns: Mapping[str, Iterable[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(zip((plain(c.layout) for c in costs), *columns.values(), strict=True))


def pays_words(cost: LayoutCost) -> tuple[str, str]:
    """When a layout pays, and its interval in brackets, where it has one."""
    after = cost.pays_after()
    if after is None:
        if cost.saved is not None and cost.saved.amount < 0:
            return _NEVER, ""
        return "undecided" if cost.builds_timed else "not measured", ""
    low, about, high = after
    if not high:
        return "at once", ""
    bounds = ", ".join(f"{max(1, round(own)):,}" if own else "at once" for own in (low, high))
    return _when(about), f"[{bounds}]"


def _pays(cost: LayoutCost) -> Cell:
    if cost.is_baseline:
        return Cell(text="baseline")
    text, detail = pays_words(cost)
    after = cost.pays_after()
    order = after[1] if after is not None else math.inf if text == _NEVER else None
    return Cell(text=text, detail=detail, tone=Tone.DOUBTFUL if after is None else Tone.PLAIN, order=order)


def _means(found: Sequence[Grid], layout: str, costing: Costing) -> dict[str, float]:
    means = {grid.key: costing.mean(grid.of(layout)) for grid in found if layout in grid.layouts}
    return {key: value for key, value in means.items() if value is not None}


def _means_by_round(series: Records, layout: str, timed: Grid, costing: Costing) -> Series | None:
    """The mean over the filters in each round in which a layout was asked all of them; None without one, or where a
    mean is nothing."""
    by_case = {case: series.one(layout=layout, case=case) for case in timed.of(layout)}
    known = {case: record for case, record in by_case.items() if record is not None}
    means = _by_round(known, costing) if known and len(known) == len(by_case) else {}
    if not means or min(means.values()) <= 0:
        return None
    return Series(np.array(list(means.values())), np.array(list(means)), next(iter(known.values())).spread)


def _series(record: Record | None) -> Series | None:
    """What building took each time; None of a single one, of which nobody knows how far it is off."""
    if record is None or len(record.samples) < FEWEST_BUILDS or min(record.samples) <= 0:
        return None
    return series_of(record)


def _effect(baseline: Series | None, layout: Series | None) -> Effect | None:
    """How many times the base the other takes; None where no round has both."""
    if baseline is None or layout is None:
        return None
    if not {*map(tuple, baseline.rounds.tolist())} & {*map(tuple, layout.rounds.tolist())}:
        return None
    return effect_of([(baseline, layout)])


def _more(base: Series | None, head: Series | None) -> Difference | None:
    return None if base is None or head is None else difference_of(base, head)


def _by_round(records: Mapping[str, Record], costing: Costing) -> dict[tuple[int, int], float]:
    values = {case: dict(zip(record.places, record.samples, strict=True)) for case, record in records.items()}
    shared = set.intersection(*(set(own) for own in values.values()))
    means = {place: costing.mean({case: own[place] for case, own in values.items()}) for place in shared}
    return {place: mean for place, mean in means.items() if mean is not None}


def _build(builds: Records, layout: str) -> dict[str, float]:
    found = {key: builds.one(layout=layout, metric=f"build_{key}") for key in BUILDS}
    return {key: median(record) for key, record in found.items() if record is not None}


def _pareto(costs: Sequence[LayoutCost]) -> ScatterChart:
    unit = "cpu_seconds" if costs[0].clock == PROCESSOR else "seconds"

    def is_beaten(one: LayoutCost) -> bool:
        """Whether another is no worse in both and better in one; in building, beyond the intervals of both."""
        return any(
            other.query["time"] <= one.query["time"]
            and other.build[unit] <= one.build[unit]
            and (other.query["time"] < one.query["time"] or _is_less(other.taken, one.taken))
            for other in costs
            if other is not one
        )

    return ScatterChart(
        caption=f"{costs[0].clock.capitalize()} of building a layout, with its 95% interval, against the time of a "
        "query on it. None of those that are joined is beaten in both.",
        x_axis="seconds to build",
        y_axis="milliseconds of a query",
        points=tuple(
            ScatterPoint(
                label=cost.layout,
                x=cost.build[unit],
                y=1000 * cost.query["time"],
                joined=not is_beaten(cost),
                reach=None if cost.taken is None else (cost.taken[0], cost.taken[2]),
            )
            for cost in costs
        ),
    )


def _is_less(one: Interval | None, other: Interval | None) -> bool:
    return one is not None and other is not None and one[2] < other[0]
