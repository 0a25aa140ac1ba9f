"""How large files and row groups should be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import geometric_mean

from icebench.bench.costs.costing import Costing
from icebench.bench.execution.run_file import Run
from icebench.bench.records.record import Record
from icebench.bench.report.charts import Line, LineChart, LinePanel, LinePoint
from icebench.bench.report.compare import Records, median
from icebench.bench.report.layouts import Grid, grids, timed_records
from icebench.bench.report.model import Cell, Table, Tone
from icebench.bench.report.quantities import BYTES_OF, MEGABYTE, listed, quantity, times
from icebench.bench.statistics.claims import Effect
from icebench.bench.study.comparing import ALONE, choice, effect, least_of, only, varied, within
from icebench.bench.study.page import Page

NEAR = 1.1
"""How many times the least a size takes at most to be as good."""
BY_FILTER = ("Files: time by filter", "Row groups: time by filter")

Sizes = Mapping[str, float]
"""Layout -> bytes of a file or row group of it."""


def answer(run: Run) -> Page:
    """What each size of files and of row groups takes."""
    records = Records(run.records)
    by_key = {grid.key: grid for grid in grids(records, Costing())}
    time, store, timed = by_key["time"], by_key["s3"], timed_records(records)
    files = {layout: _bytes_of_a_file(records, layout) for layout in varied(run, "files").values()}
    groups = {layout: _bytes_of(level) for level, layout in varied(run, "row-group-size-bytes").items()}
    of = f"a cold read here ({time.engine}), over {len(time.cases)} filters"
    said, choices = [], []
    for sizes, what in ((files, "files"), (groups, "row groups")):
        best, least = _best(time, sizes), min(sizes, key=lambda layout: sizes[layout])
        pairs = _pairs(timed, best, least, time.cases)
        good, small = (f"{what} of {quantity(sizes[layout], 'bytes')}" for layout in (best, least))
        near = f"{what} of {_range(time, sizes)} are within a tenth of the fastest"
        said.append(f"{near}, {small} take {within(effect(pairs))} the time of {good}")
        choices.append(choice(good, small, of, pairs))
    return Page(
        answer=f"In {time.engine}, for {quantity(max(files.values()), 'bytes')} of sorted rows {'; '.join(said)}.",
        chart=_chart(time, store, files, groups),
        tables=(
            _filters(time, store, files, BY_FILTER[0]),
            _filters(time, store, groups, BY_FILTER[1]),
            _engines(records, files, time.cases, "Files"),
            _engines(records, groups, time.cases, "Row groups"),
        ),
        limits=(
            *_by_filter(time, files, "files"),
            *_by_filter(time, groups, "row groups"),
            *_from_s3(time, store, files, "files"),
            *_from_s3(time, store, groups, "row groups"),
        ),
        choices=tuple(choices),
        modelled=BY_FILTER,
    )


def _bytes_of_a_file(records: Records, layout: str) -> float:
    total, files = (only(records, layout=layout, metric=f"build_{name}") for name in ("bytes_on_disk", "files"))
    return median(total) / median(files)


def _bytes_of(level: str) -> float:
    """The size that the label of an axis's value stands for."""
    number, unit = level.split()
    return float(number) * BYTES_OF[unit]


def _mean(grid: Grid, layout: str) -> float:
    return geometric_mean(grid.of(layout).values())


def _best(grid: Grid, layouts: Iterable[str]) -> str:
    return min(layouts, key=lambda layout: _mean(grid, layout))


def _range(grid: Grid, sizes: Sizes) -> str:
    """The sizes whose geometric mean over the filters is about the least."""
    least = _mean(grid, _best(grid, sizes))
    ordered = sorted(sizes, key=lambda layout: sizes[layout])
    found = groupby(ordered, lambda layout: _mean(grid, layout) <= NEAR * least)
    ends = [[quantity(sizes[layout], "bytes") for layout in layouts] for is_near, layouts in found if is_near]
    return listed([own[0] if len(own) == 1 else f"{own[0]} to {own[-1]}" for own in ends])


def _pairs(timed: Records, base: str, head: str, cases: Sequence[str]) -> list[tuple[Record, Record]]:
    return [(only(timed, layout=base, case=case), only(timed, layout=head, case=case)) for case in cases]


def _chart(time: Grid, store: Grid, files: Sizes, groups: Sizes) -> LineChart:
    def panel(title: str, grid: Grid, sizes: Sizes) -> LinePanel:
        lines = tuple(
            Line(
                series=case,
                points=tuple(
                    LinePoint(x=size / MEGABYTE, y=1e3 * grid.values[case, layout]) for layout, size in sizes.items()
                ),
            )
            for case in grid.cases
        )
        return LinePanel(title=title, lines=lines)

    def apart(grid: Grid, sizes: Sizes) -> str:
        """How many times the geometric mean of the best size that of the worst is."""
        means = [_mean(grid, layout) for layout in sizes]
        return times(max(means) / min(means))

    return LineChart(
        caption=f"The worst size of files takes {apart(time, files)} the time of the best here and "
        f"{apart(store, files)} from S3; the worst size of row groups {apart(time, groups)} and "
        f"{apart(store, groups)}.",
        x_axis="megabytes of a file or row group",
        y_axis="milliseconds of a read",
        series=time.cases,
        panels=(
            panel("Files, from this disk", time, files),
            panel("Files, from S3 (modelled)", store, files),
            panel("Row groups, from this disk", time, groups),
            panel("Row groups, from S3 (modelled)", store, groups),
        ),
    )


def _filters(time: Grid, store: Grid, sizes: Sizes, title: str) -> Table:
    """A row for each size: here and from S3 under each filter."""
    ordered = sorted(sizes, key=lambda layout: sizes[layout])

    def cell(grid: Grid, case: str, layout: str) -> Cell:
        value = grid.values[case, layout]
        is_least = value == min(grid.values[case, own] for own in ordered)
        return Cell(text=quantity(value, "s"), tone=Tone.BEST if is_least else Tone.PLAIN)

    return Table(
        title=title,
        columns=("Size", *time.cases, *(f"{case}, S3" for case in time.cases)),
        rows=tuple(
            (
                Cell(text=quantity(sizes[layout], "bytes")),
                *(cell(grid, case, layout) for grid in (time, store) for case in time.cases),
            )
            for layout in ordered
        ),
        note=f"Median of a cold filtered read here ({time.engine}), and from S3 in the same region, modelled from "
        "counted requests and bytes. The least of a column stands out, by however little.",
    )


def _engines(records: Records, sizes: Sizes, cases: Sequence[str], what: str) -> Table:
    """How many times the engine's own best size each takes."""
    timed = records.where(measurement="filtered", metric="scan_time_cold").competing
    ordered = sorted(sizes, key=lambda layout: sizes[layout])
    columns = []
    for engine in timed.engines:
        own = timed.where(engine=engine)

        def over(base: str, head: str, own: Records = own) -> Effect:
            return effect(_pairs(own, base, head, cases))

        best = least_of(ordered, over)
        found = [None if name == best else over(best, name) for name in ordered]
        columns.append(
            [
                Cell(text="1", tone=Tone.BEST)
                if each is None
                else Cell(text=within(each), tone=Tone.PLAIN if each.differs else Tone.BEST)
                for each in found
            ]
        )
    return Table(
        title=f"{what}: each engine, relative to its own best size",
        columns=("Size", *timed.engines),
        rows=tuple(
            (Cell(text=quantity(sizes[layout], "bytes")), *(own[place] for own in columns))
            for place, layout in enumerate(ordered)
        ),
        note="Geometric mean over the filters, with its 95% interval. The best size stands out, and what does not "
        f"differ from it {ALONE}.",
    )


def _by_filter(time: Grid, sizes: Sizes, what: str) -> Iterator[str]:
    """The filters for which another size is best by more than a little."""
    best = _best(time, sizes)
    other = []
    for case in time.cases:
        own = min(sizes, key=lambda layout: time.values[case, layout])
        if time.values[case, best] > NEAR * time.values[case, own]:
            other.append(f"{case} ({quantity(sizes[own], 'bytes')})")
    if other:
        yield f"Other sizes of {what} are best for {listed(other)}."


def _from_s3(time: Grid, store: Grid, sizes: Sizes, what: str) -> Iterator[str]:
    """Where the size that is best here takes more from an object store than the one that is best there."""
    here, there = _best(time, sizes), _best(store, sizes)
    ratios = {case: store.values[case, here] / store.values[case, there] for case in store.cases}
    most = max(ratios, key=ratios.__getitem__)
    if ratios[most] > NEAR:
        local, remote = (quantity(sizes[layout], "bytes") for layout in (here, there))
        mean = times(_mean(store, here) / _mean(store, there))
        yield (
            f"From S3 (modelled) {what} of {local}, the best here, take {mean} the time of those of {remote} "
            f"(geometric mean over the filters), and {times(ratios[most])} under {most}."
        )
