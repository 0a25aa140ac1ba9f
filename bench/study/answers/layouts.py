"""Which layout suits which filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import geometric_mean

from icebench.bench.costs.costing import Costing
from icebench.bench.costs.object_store import MODEL_ERROR, UNRANKED_SECONDS, undecided_up_to
from icebench.bench.execution.run_file import Run
from icebench.bench.report.charts import DotChart, DotPanel, DotRow, Point
from icebench.bench.report.compare import Records
from icebench.bench.report.layouts import Grid, grids, timed_records
from icebench.bench.report.model import Cell, Table, Tone, plain
from icebench.bench.report.quantities import MEGABYTE, count, digits, listed, quantity, times
from icebench.bench.statistics.claims import Effect
from icebench.bench.study.comparing import ALONE, choice, effect, least_of, only, rows_of, within
from icebench.bench.study.page import Choice, Page

BASE = "unpartitioned"
DRAWN = (BASE, "monthly", "sorted", "monthly-sorted", "hilbert", "indexed")
CHOICES = (
    ("one_item", "sorted", "sort by the column that filters select on", "arrival order"),
    ("one_month", "monthly", "partition by the month that filters select on", "arrival in no order of dates"),
    (
        "one_customer",
        "indexed",
        "a Bloom filter and a file index, for keys that nothing is arranged by",
        "arrival order",
    ),
)
"""Filter, layout, and what is chosen instead of what."""
MODELLED = "The same from S3, modelled"
WORSE = 1.5
"""How many times the least a layout takes where it is said not to suit."""
TIED = 1.01
"""How many times the fewest bytes a layout reads at most where it is said to read as few."""


def answer(run: Run) -> Page:
    """What each layout costs under each filter, and which costs least."""
    records = Records(run.records)
    by_key = {grid.key: grid for grid in grids(records, Costing())}
    kept = _kept(run)
    time, read, store = by_key["time"], by_key["bytes"], by_key["s3"]
    timed = timed_records(records)
    filters = time.cases

    def over(base: str, head: str) -> Effect:
        return effect([(only(timed, layout=base, case=f), only(timed, layout=head, case=f)) for f in filters])

    best = least_of(time.layouts, over)
    alike = [name for name in time.layouts if name != best and not over(best, name).differs]
    beside = f" ({listed(alike)} {'does' if len(alike) == 1 else 'do'} not differ from it {ALONE})" if alike else ""
    return Page(
        answer=f"No layout suits all {len(filters)} filters: {_fewest_bytes(read)}. Over all filters {best} is the "
        f"fastest here{beside}, and arrival order without partitions takes {within(over(best, BASE))} its time.",
        chart=_chart(read, kept),
        tables=(_times(time, timed, kept), _modelled(store, kept)),
        limits=(*_losses(time, best), _object_store(store, best)),
        choices=tuple(_choices(timed)),
        modelled=(MODELLED,),
    )


def _kept(run: Run) -> Mapping[str, float]:
    """The share of the rows that each filter keeps."""
    total = rows_of(run)
    pruned = Records(run.records).where(measurement="pruning", metric="recall", layout=BASE)
    return {r.case: r.counters["rows_matching"] / total for r in pruned.all}


def _least(grid: Grid, case: str) -> str:
    return min(grid.layouts, key=lambda layout: grid.values[case, layout])


def _near_least(grid: Grid, case: str, factor: float) -> list[str]:
    """The layouts of which a filter takes at most this many times the least."""
    least = grid.values[case, _least(grid, case)]
    return [layout for layout in grid.layouts if grid.values[case, layout] <= factor * least]


def _fewest_bytes(read: Grid) -> str:
    """Under how many filters each layout reads the fewest bytes, and which of them are tied."""
    least = {case: tuple(_near_least(read, case, TIED)) for case in read.cases}
    counted = Counter(layout for own in least.values() for layout in own)
    said = listed([f"{layout} ({count(number, 'filter')})" for layout, number in counted.most_common()])
    tied: dict[tuple[str, ...], list[str]] = {}
    for case, own in least.items():
        if len(own) > 1:
            tied.setdefault(own, []).append(case)
    ties = "".join(f"; {listed(list(own))} are tied under {listed(cases)}" for own, cases in tied.items())
    return f"the fewest bytes, to within {TIED - 1:.0%}, are read with {said}{ties}"


def _chart(read: Grid, kept: Mapping[str, float]) -> DotChart:
    series = tuple(name for name in DRAWN if name in read.layouts)
    rows = tuple(
        DotRow(
            label=f"{case} ({quantity(kept[case], 'ratio')})",
            points=tuple(Point(series=name, value=max(read.values[case, name], 1.0) / MEGABYTE) for name in series),
        )
        for case in read.cases
    )
    case, layout = max(
        read.values, key=lambda place: read.values[place] / read.values[place[0], _least(read, place[0])]
    )
    most = read.values[case, layout] / read.values[case, _least(read, case)]
    return DotChart(
        caption=f"What a filter reads depends on the layout by up to {times(most)}: {case} on {layout}, and on "
        f"{_least(read, case)}. In brackets the share of the rows that a filter keeps.",
        axis=f"megabytes read ({read.engine}, counted)",
        log=True,
        series=series,
        panels=(DotPanel(title="Bytes read under a filter", rows=rows),),
    )


def _times(time: Grid, timed: Records, kept: Mapping[str, float]) -> Table:
    rows = []
    for layout in time.layouts:
        cells = []
        for case in time.cases:
            best, own = (only(timed, layout=name, case=case) for name in (_least(time, case), layout))
            is_best = best is own or not effect([(best, own)]).differs
            text = quantity(time.values[case, layout], "s")
            cells.append(Cell(text=text, tone=Tone.BEST if is_best else Tone.PLAIN))
        rows.append((plain(layout), *cells))
    return Table(
        title="Time under each filter",
        columns=_columns(time, kept),
        rows=tuple(rows),
        note=f"Median of a cold filtered read here ({time.engine}). The least of a filter stands out, and what does "
        f"not differ from it {ALONE}. In brackets the share of the rows that a filter keeps.",
    )


def _modelled(store: Grid, kept: Mapping[str, float]) -> Table:
    most = {case: undecided_up_to(store.values[case, _least(store, case)]) for case in store.cases}

    def cell(case: str, layout: str) -> Cell:
        value = store.values[case, layout]
        return Cell(text=quantity(value, "s"), tone=Tone.BEST if value <= most[case] else Tone.PLAIN)

    return Table(
        title=MODELLED,
        columns=_columns(store, kept),
        rows=tuple((plain(layout), *(cell(case, layout) for case in store.cases)) for layout in store.layouts),
        note="Of the counted requests and bytes, from a client in the same region. What is within "
        f"{MODEL_ERROR:.0%} of the least of a filter, or below {1e3 * UNRANKED_SECONDS:g} ms, stands out, which the "
        "model does not decide between.",
    )


def _columns(grid: Grid, kept: Mapping[str, float]) -> tuple[str, ...]:
    return ("Layout", *(f"{case} ({quantity(kept[case], 'ratio')})" for case in grid.cases))


def _losses(time: Grid, best: str) -> list[str]:
    """The filters for which the layout that is best over all takes far more than the least."""
    lost = []
    for case in time.cases:
        ratio = time.values[case, best] / time.values[case, least := _least(time, case)]
        if ratio > WORSE:
            lost.append(f"{case} ({least} is {times(ratio)} as fast)")
    return [f"{best} is the fastest over all filters, and not for {listed(lost)}."] if lost else []


def _object_store(store: Grid, best: str) -> str:
    """The layouts that take least from an object store over all filters, as far as its model distinguishes them."""
    means = {name: geometric_mean(store.of(name).values()) for name in store.layouts}
    least = min(means.values())
    near = sorted((name for name in means if means[name] <= undecided_up_to(least)), key=means.__getitem__)
    of = f"{listed(near)} {'takes' if len(near) == 1 else 'take'} least over all filters"
    also = "" if best in near else f", and {best} {times(means[best] / least)} that"
    return (
        f"From S3 (modelled) {of} (geometric mean {digits(1e3 * least)} ms; the model does not decide between layouts "
        f"within {MODEL_ERROR:.0%} of each other or below {1e3 * UNRANKED_SECONDS:g} ms){also}."
    )


def _choices(timed: Records) -> list[Choice]:
    of = f"a cold read here ({timed.engines[0]})"
    found = []
    for case, layout, better, worse in CHOICES:
        chosen, base = (only(timed, layout=name, case=case) for name in (layout, BASE))
        found.append(choice(better, worse, f"{of} under {case}", [(chosen, base)]))
    return found
