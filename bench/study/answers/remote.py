"""What a remote object store changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median as median_of

from icebench.bench.costs.object_store import CROSS_REGION, PROFILES, SAME_REGION, THREADS, icebench_work, seconds_on
from icebench.bench.execution.context import NO_DELAY
from icebench.bench.execution.run_file import Run
from icebench.bench.records.record import Record
from icebench.bench.report.charts import DotChart, DotPanel, DotRow
from icebench.bench.report.compare import Records, median
from icebench.bench.report.model import Cell, Table, Tone, plain
from icebench.bench.report.quantities import digits, listed, quantity, times
from icebench.bench.report.tables import NOT_MEASURED
from icebench.bench.statistics.claims import Effect
from icebench.bench.study.comparing import ALONE, FEW, FEWEST, MARK, choice, dot, effect, few, only, within
from icebench.bench.study.page import Page

NAMES = {NO_DELAY: "no delay", SAME_REGION.name: "same region", CROSS_REGION.name: "another region"}
BASE, LARGE, SORTED, ITEM = "unpartitioned", "large-files", "sorted", "one_item"


def answer(run: Run) -> Page:
    """What reads of each layout take from each store, in each engine, and what the model says of them."""
    records = Records(run.records).where(measurement="remote", metric="scan_time_cold")
    engine = records.engines[0]
    own = records.where(engine=engine)
    filters = tuple(dict.fromkeys(case.partition(", ")[2] for case in records.names("case")))
    said = [
        f"{each} {within(_slower(records.where(engine=each), SAME_REGION.name, filters))}" for each in records.engines
    ]
    near = f"a read from the same region ({engine})"
    errors = [abs(error) for *_, error in _foretold(own, filters)]
    return Page(
        answer=f"From a store in the same region a read takes, relative to one without delays: {listed(said)}; "
        f"the model predicts {engine} within {max(errors):.0%} (median {median_of(errors):.0%}).",
        chart=_chart(own, filters),
        tables=(_engines(records, filters), _slower_by_engine(records, filters), _model(own, filters)),
        limits=(_error(own, filters), *_ranks(records, filters)),
        model_error=f"{_error(own, filters)[:-1]} (remote.md).",
        choices=(
            choice(
                f"{_files(run, LARGE)} large files",
                f"{_files(run, BASE)} files",
                f"{near}, over all filters",
                _pairs(own, LARGE, BASE, filters),
            ),
            choice(
                "sort by the filtered column", "arrival order", f"{near}, {ITEM}", _pairs(own, SORTED, BASE, (ITEM,))
            ),
        ),
    )


def _files(run: Run, layout: str) -> str:
    return digits(median(only(Records(run.records), layout=layout, metric="build_files")))


def _pairs(records: Records, better: str, worse: str, filters: Sequence[str]) -> list[tuple[Record, Record]]:
    """Reads of two layouts from the same region."""
    cases = [f"{SAME_REGION.name}, {name}" for name in filters]
    return [(only(records, layout=better, case=case), only(records, layout=worse, case=case)) for case in cases]


def _far_and_near(records: Records, store: str, filters: Sequence[str]) -> list[tuple[Record, Record]]:
    """Reads without delays and from a store, of all layouts and filters."""
    return [
        (
            only(records, layout=layout, case=f"{NO_DELAY}, {name}"),
            only(records, layout=layout, case=f"{store}, {name}"),
        )
        for layout in records.names("layout")
        for name in filters
    ]


def _slower(records: Records, store: str, filters: Sequence[str]) -> Effect:
    """How many times as long as without delays reads take from a store, over all layouts and filters."""
    return effect(_far_and_near(records, store, filters))


def _stores(records: Records) -> list[str]:
    """Those that are far away, in the order of the run."""
    found = dict.fromkeys(case.partition(", ")[0] for case in records.names("case"))
    return [store for store in found if store != NO_DELAY]


def _foretold(own: Records, filters: Sequence[str]) -> Iterator[tuple[str, str, int, str, float, float, float]]:
    """Layout, filter, requests, store, seconds by the model and measured, and the error as a share, of one engine."""
    for layout in own.names("layout"):
        for name in filters:
            base = only(own, layout=layout, case=f"{NO_DELAY}, {name}")
            work = icebench_work(base.counters, seconds=median(base), threads=THREADS)
            for store in _stores(own):
                measured = median(only(own, layout=layout, case=f"{store}, {name}"))
                modelled = seconds_on(work, PROFILES[store])
                yield layout, name, work.requests, store, modelled, measured, modelled / measured - 1


def _error(own: Records, filters: Sequence[str]) -> str:
    """How far the model is off, and of which layout the most."""
    errors: dict[str, list[float]] = {}
    for layout, *_, error in _foretold(own, filters):
        errors.setdefault(layout, []).append(error)
    every = [abs(error) for found in errors.values() for error in found]
    worst = max(errors, key=lambda layout: max(map(abs, errors[layout])))
    ends = " to ".join(f"{error:+.0%}" for error in sorted(errors[worst], key=abs)[:: len(errors[worst]) - 1 or 1])
    return (
        f"The model predicts {own.engines[0]} within {max(every):.0%} of a server with such delays "
        f"(median {median_of(every):.0%}), and is off the most for {worst}: {ends}."
    )


def _chart(own: Records, filters: Sequence[str]) -> DotChart:
    layouts, stores = own.names("layout"), (NO_DELAY, *_stores(own))

    def points(store: str, name: str) -> DotRow:
        found = (dot(only(own, layout=layout, case=f"{store}, {name}"), layout) for layout in layouts)
        return DotRow(label=NAMES[store], points=tuple(found))

    def apart(store: str) -> float:
        """How many times the fastest layout of a filter the slowest takes, at most."""
        found = [[median(only(own, layout=layout, case=f"{store}, {name}")) for layout in layouts] for name in filters]
        return max(max(each) / min(each) for each in found)

    near, far = apart(NO_DELAY), apart(stores[-1])
    return DotChart(
        caption=f"Between the slowest and the fastest layout of a filter are up to {times(near)} without delays, and "
        f"{times(far)} from {NAMES[stores[-1]]} ({own.engines[0]}).",
        axis=f"seconds of a cold read ({own.engines[0]})",
        log=True,
        series=tuple(layouts),
        panels=tuple(DotPanel(title=name, rows=tuple(points(store, name) for store in stores)) for name in filters),
    )


def _engines(records: Records, filters: Sequence[str]) -> Table:
    store = SAME_REGION.name

    def cells(layout: str, name: str) -> Iterator[Cell]:
        found = [records.one(layout=layout, case=f"{store}, {name}", engine=engine) for engine in records.engines]
        least = min((each for each in found if each is not None), key=median)
        for each in found:
            if each is None:
                yield NOT_MEASURED
            else:
                is_least = each is least or not effect([(least, each)]).differs
                text = quantity(median(each), "s") + few(each)
                yield Cell(text=text, tone=Tone.BEST if is_least else Tone.PLAIN)

    return Table(
        title="Time from a store in the same region",
        columns=("Layout", "Filter", *records.engines),
        rows=tuple(
            (plain(layout), plain(name), *cells(layout, name)) for layout in records.names("layout") for name in filters
        ),
        note=f"Median of a cold read. The least of a row stands out, and what does not differ from it {ALONE}. {FEW}",
    )


def _slower_by_engine(records: Records, filters: Sequence[str]) -> Table:
    def cells(store: str, layout: str) -> Iterator[Cell]:
        for engine in records.engines:
            pairs = _far_and_near(records.where(engine=engine, layout=layout), store, filters)
            yield Cell(text=within(effect(pairs)) + max(few(*pair) for pair in pairs))

    return Table(
        title="In times of the same read without delays",
        columns=("Store", "Layout", *records.engines),
        rows=tuple(
            (plain(NAMES[store]), plain(layout), *cells(store, layout))
            for store in _stores(records)
            for layout in records.names("layout")
        ),
        note=f"Geometric mean over the filters, with its 95% interval, from samples of the same rounds. {MARK}: of "
        f"fewer than {FEWEST} under a filter.",
    )


def _model(own: Records, filters: Sequence[str]) -> Table:
    rows: dict[tuple[str, str], list[Cell]] = {}
    for layout, name, requests, _, modelled, measured, error in _foretold(own, filters):
        row = rows.setdefault((layout, name), [plain(layout), plain(name), Cell(text=str(requests))])
        row.append(Cell(text=f"{quantity(modelled, 's')} / {quantity(measured, 's')} ({error:+.0%})"))
    return Table(
        title=f"The model beside the server ({own.engines[0]})",
        columns=("Layout", "Filter", "Requests", *(NAMES[store] for store in _stores(own))),
        rows=tuple(map(tuple, rows.values())),
        note="Modelled from the read without delays and its counted requests and bytes, and measured.",
    )


def _ranks(records: Records, filters: Sequence[str]) -> Iterator[str]:
    """Where the engine that is fastest over all reads depends on the store."""

    def first(store: str) -> str:
        def total(engine: str) -> float:
            own = records.where(engine=engine)
            return sum(
                median(only(own, layout=layout, case=f"{store}, {name}"))
                for layout in own.names("layout")
                for name in filters
            )

        return min(records.engines, key=total)

    found = {store: first(store) for store in (NO_DELAY, *_stores(records))}
    if len(set(found.values())) > 1:
        said = listed([f"{engine} ({NAMES[store]})" for store, engine in found.items()])
        yield f"Which engine takes least for all reads together depends on the store: {said}."
