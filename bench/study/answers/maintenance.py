"""What maintenance saves as a table ages."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from icebench.bench.execution.run_file import Run
from icebench.bench.records.record import Record
from icebench.bench.report.charts import Line, LineChart, LinePanel, LinePoint
from icebench.bench.report.compare import Records, bounds, median
from icebench.bench.report.model import Cell, Table, plain
from icebench.bench.report.quantities import count, digits, times
from icebench.bench.report.tables import NOT_MEASURED
from icebench.bench.statistics.claims import Effect
from icebench.bench.study.comparing import ATTAINED, attained, choice, effect, only, within
from icebench.bench.study.page import Page
from icebench.engine.display import size_text

METRIC = "scan_time_cold"
SCAN_CPU, MAINTENANCE_CPU = "scan_cpu_cold", "maintenance_cpu"
NEVER = "never compacted"
POLICY = "kept by policy default"
_EVERY = re.compile(r"^compacted every (\d+)$")
_STATE = re.compile(r"^after (\d+) batches$")


def answer(run: Run) -> Page:
    """What reading costs after so many batches, relative to the same rows compacted, by how the table is kept."""
    every = Records(run.records).where(measurement="reading")
    records = every.where(metric=METRIC)
    engine = records.engines[0]
    own = records.where(engine=engine)
    histories = {layout.split(", ", 1)[1]: layout for layout in own.names("layout")}
    last = max(_batches(own))
    ends = {how: _against_compacted(own.where(layout=layout), last) for how, layout in histories.items()}
    never, kept = (_pair(own.where(layout=histories[how]), last) for how in (NEVER, POLICY))
    said = ", ".join(f"{how} {within(found)}{_since_compaction(how, last)}" for how, found in ends.items())
    costs = [_Cost.of(every.where(engine=engine), how, histories, last) for how in histories]
    pays = ", ".join(f"{cost.how} {cost.pays}" for cost in costs if cost.how != NEVER)
    of = f"a scan here ({engine}) after {last} batches of changes"
    return Page(
        answer=f"After {last} batches a scan in {engine} takes, relative to the same rows compacted: {said}. By "
        f"processor time maintenance pays off from this many scans per batch on (in parentheses what an interval "
        f"attains where that is less than 95%): {pays}.",
        chart=_chart(records, histories),
        tables=(_ratios(records, histories), _costs(costs, last), _left_behind(own, histories, last)),
        limits=tuple(_against_rules(costs)),
        choices=(
            choice("compacting before a scan", f"{last} batches without maintenance", of, [never]),
            choice("the policy of 'icebench maintain run'", "no maintenance", of, [(kept[1], never[1])]),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Cost:
    """What a way of keeping a table takes over its history, and what its scans take.

    Args:
        how: The way.
        maintenance: The record of what it took.
        scan: Processor time of a scan, as the mean over the history, by round.
        batch: Processor time of the maintenance of a batch.
        saved: Processor time that a scan takes less than without maintenance, by round; None of that.
    """

    how: str
    maintenance: Record
    scan: Record
    batch: float
    saved: Record | None

    @classmethod
    def of(cls, own: Records, how: str, histories: Mapping[str, str], last: int) -> _Cost:
        maintenance = only(
            own, layout=histories[how], metric=MAINTENANCE_CPU, case=f"after {last} batches, maintenance"
        )
        scan = _mean_scan(own.where(layout=histories[how], metric=SCAN_CPU))
        never = dict(_by_round(_mean_scan(own.where(layout=histories[NEVER], metric=SCAN_CPU))))
        saved = {place: never[place] - seconds for place, seconds in _by_round(scan) if place in never}
        return cls(
            how=how,
            maintenance=maintenance,
            scan=scan,
            batch=maintenance.samples[0] / last,
            saved=None if how == NEVER else _series(scan, saved),
        )

    @property
    def pays(self) -> str:
        """From how many scans a batch on it takes less in all than no maintenance: ``0.52 [0.48, 0.57]``;
        ``from 0.48 on or never`` where some rounds save nothing; ``never``."""
        return "-" if self.saved is None else _pays(self.batch, self.saved)


def _against_rules(costs: Sequence[_Cost]) -> Iterator[str]:
    """From how many scans a batch on the policy takes less than every fixed rule, where at one it takes more."""

    def at_one(cost: _Cost) -> float:
        return cost.batch + median(cost.scan)

    policy = next(cost for cost in costs if cost.how == POLICY)
    rules = [cost for cost in costs if _EVERY.match(cost.how)]
    best = min(rules, key=at_one, default=policy)
    if at_one(policy) <= at_one(best):
        return
    own = dict(_by_round(policy.scan))
    needed: dict[str, tuple[float, str]] = {}
    for rule in rules:
        saved = _series(
            rule.scan, {place: seconds - own[place] for place, seconds in _by_round(rule.scan) if place in own}
        )
        more = policy.batch - rule.batch
        needed[rule.how] = (_scans(more, statistics.median(saved.samples)), _pays(more, saved))
    last = max(needed, key=lambda how: needed[how][0])
    ratio = times(at_one(policy) / at_one(best))
    yield (
        f"With one scan per batch, scans and maintenance take {ratio} the processor time {POLICY} as {best.how}. Scans "
        f"per batch from which on the policy takes less than every fixed rule: {needed[last][1]} (the last is {last})."
    )


def _pays(batch: float, saved: Record) -> str:
    """From how many scans a batch on maintenance of these seconds a batch is made up for by what a scan saves."""
    middle = statistics.median(_scans(batch, each) for each in saved.samples)
    ends = bounds(saved)
    if ends is None:
        return "never" if math.isinf(middle) else digits(middle)
    # It pays from the fewest scans on where a scan saves most.
    high, low = (_scans(batch, each) for each in ends)
    if math.isinf(low):
        return "never"
    if math.isinf(high):
        return f"from {digits(low)} on or never{attained(saved)}"
    return f"{digits(middle)} [{digits(low)}, {digits(high)}]{attained(saved)}"


def _scans(batch: float, saved: float) -> float:
    """Scans a batch that make up for its maintenance."""
    return batch / saved if saved > 0 else math.inf


def _by_round(record: Record) -> Iterator[tuple[tuple[int, int], float]]:
    return zip(record.places, record.samples, strict=True)


def _series(like: Record, values: Mapping[tuple[int, int], float]) -> Record:
    if not values:
        raise ValueError(f"no round has all scans of {like.layout}")
    places = tuple(sorted(values))
    return replace(like, samples=tuple(values[place] for place in places), places=places, summary={})


def _mean_scan(history: Records) -> Record:
    """A scan's cost as the mean over the batches, between which it is taken to change evenly, in each round that has
    all of the states."""
    batches = _batches(history)
    states = [only(history, case=f"after {batch} batches") for batch in batches]
    rounds = [dict(_by_round(state)) for state in states]
    shared = set.intersection(*(set(each) for each in rounds))
    span = batches[-1] - batches[0]
    return _series(
        states[0],
        {place: float(np.trapezoid([each[place] for each in rounds], batches)) / span for place in shared},
    )


def _costs(costs: Sequence[_Cost], last: int) -> Table:
    def row(cost: _Cost) -> Iterator[Cell]:
        yield plain(cost.how)
        yield Cell(text=f"{cost.maintenance.counters['maintenance_passes']:,}")
        yield Cell(text=size_text(cost.maintenance.counters["maintenance_bytes"]))
        yield Cell(text=f"{digits(cost.maintenance.samples[0])} s")
        yield Cell(text=f"{digits(1000 * median(cost.scan))} ms")
        yield Cell(text=cost.pays)

    return Table(
        title=f"What {last} batches of maintenance take",
        columns=("Maintenance", "passes", "bytes moved", "processor time", "a scan", "pays from, scans a batch"),
        rows=tuple(tuple(row(cost)) for cost in costs),
        note="Passes that changed the table, what they read and wrote of data and delete files, and their processor "
        "time, timed once; processor time of a scan as the mean over the history; and from how many scans a batch on "
        "both together are less than without maintenance, with the interval of the scans' rounds. "
        f"{ATTAINED}",
    )


def _since_compaction(how: str, batch: int) -> str:
    """How many batches came after the last compaction of a history that is compacted again and again."""
    found = _EVERY.match(how)
    return f" ({count(batch % int(found[1]), 'batch', 'batches')} after the last time)" if found else ""


def _batches(records: Records) -> list[int]:
    return sorted({int(found[1]) for case in records.names("case") if (found := _STATE.match(case))})


def _pair(history: Records, batch: int) -> tuple[Record, Record]:
    """The scan of the same rows compacted, and of the table as it was left."""
    state = f"after {batch} batches"
    return only(history, case=f"{state}, compacted"), only(history, case=state)


def _against_compacted(history: Records, batch: int) -> Effect:
    return effect([_pair(history, batch)])


def _chart(records: Records, histories: dict[str, str]) -> LineChart:
    def line(engine: str, how: str) -> Line:
        history = records.where(engine=engine, layout=histories[how])
        found = [(batch, _against_compacted(history, batch)) for batch in _batches(history)]
        return Line(series=how, points=tuple(LinePoint(x=b, y=it.ratio, low=it.low, high=it.high) for b, it in found))

    panels = tuple(
        LinePanel(title=f"Read by {engine}", lines=tuple(line(engine, how) for how in histories))
        for engine in records.engines
    )
    batch = max(_batches(records))
    worst = _against_compacted(records.where(engine=records.engines[0], layout=histories[NEVER]), batch)
    return LineChart(
        caption=f"Without maintenance a scan takes {within(worst)} the time of the compacted table after "
        f"{count(batch, 'batch', 'batches')} ({records.engines[0]}).",
        x_axis="batches of changes",
        y_axis="times a scan of the table compacted",
        series=tuple(histories),
        panels=panels,
        log_x=False,
        level=1.0,
    )


def _ratios(records: Records, histories: dict[str, str]) -> Table:
    def cells(how: str, batch: int) -> Iterator[Cell]:
        for engine in records.engines:
            history = records.where(engine=engine, layout=histories[how])
            known = history.one(case=f"after {batch} batches") is not None
            yield Cell(text=within(_against_compacted(history, batch))) if known else NOT_MEASURED

    return Table(
        title="By how the table is kept",
        columns=("Maintenance", "Batches", *records.engines),
        rows=tuple(
            (plain(how), Cell(text=f"{batch}"), *cells(how, batch)) for how in histories for batch in _batches(records)
        ),
        note="Times a scan of the same rows compacted, with the 95% interval, from samples of the same rounds.",
    )


def _left_behind(own: Records, histories: dict[str, str], batch: int) -> Table:
    """What a scan has to go through, exactly."""
    names = ("data_files", "delete_files", "delete_records", "manifests")
    found = {how: only(own, layout=layout, case=f"after {batch} batches") for how, layout in histories.items()}
    return Table(
        title=f"What {batch} batches leave behind",
        columns=("Maintenance", *(name.replace("_", " ") for name in names)),
        rows=tuple(
            (plain(how), *(Cell(text=f"{record.counters.get(name, 0):,}") for name in names))
            for how, record in found.items()
        ),
        note="Counted.",
    )
