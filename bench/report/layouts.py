"""Layout x filter in bytes, in time, and in what an object store would take and charge: a report's opening."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from icebench.bench.costs.costing import Costing
from icebench.bench.costs.object_store import (
    MODEL_ERROR,
    THREADS,
    UNRANKED_SECONDS,
    Work,
    dollars_per_thousand_queries,
    icebench_work,
    seconds_on,
    undecided_up_to,
)
from icebench.bench.records.record import Record
from icebench.bench.report.compare import Records, median
from icebench.bench.report.model import Cell, Section, Table, Tone, plain
from icebench.bench.report.quantities import listed, quantity

NAMES = {"bytes": "Bytes read", "planned": "Planned", "time": "Time", "s3": "From S3", "dollars": "$ per 1,000"}
"""Quantity -> its short name."""
READS = ("bytes", "planned")
"""Of which the first that there is says what is read."""
READ = "storage_bytes_read"
"""The counter of bytes read, of engines that report it."""
_SCANS = ("scan_time_cold", "scan_time_warm")
_TIMED = {
    ("filtered", _SCANS[0]): "Time of the filtered read, cold",
    ("filtered", _SCANS[1]): "Time of the filtered read, warm",
    ("planning", "latency_cold"): "Time of a cold plan",
}
"""Out of which a query's time is, the first that there is: as a user's query opens its table, cold reads."""
_READ = {_SCANS[0]: "cold reads", _SCANS[1]: "warm reads", "latency_cold": "cold plans"}
_CPU = {_SCANS[0]: "scan_cpu_cold", _SCANS[1]: "scan_cpu_warm", "latency_cold": "cpu_cold"}
_DARKEST = 2.0
OF_MODEL = ("s3", "dollars")
"""Quantities that are modelled."""
MODEL_RANKS = (
    f"The model does not rank what is within {MODEL_ERROR:.0%} of the least or below {1e3 * UNRANKED_SECONDS:g} ms."
)
_MODELLED = (
    "A model of the counted requests and bytes, opened anew for every query; docs/design/object-store-costs.md. "
    f"{MODEL_RANKS}"
)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """One quantity by filter and layout, of one engine; `values` by (filter, layout)."""

    key: str
    title: str
    unit: str
    engine: str
    layouts: tuple[str, ...]
    values: Mapping[tuple[str, str], float]
    note: str = ""

    @property
    def cases(self) -> tuple[str, ...]:
        """The filters that at least two layouts have, in their order."""
        found = dict.fromkeys(case for case, _ in self.values)
        return tuple(case for case in found if sum((case, layout) in self.values for layout in self.layouts) > 1)

    def of(self, layout: str) -> dict[str, float]:
        """The figures of a layout by filter, for the filters that all layouts have."""
        return {case: self.values[case, layout] for case in self.cases if not self.lacking(case)}

    def lacking(self, case: str) -> list[str]:
        """The layouts that have no figure of a filter."""
        return [layout for layout in self.layouts if (case, layout) not in self.values]


def grids(records: Records, costing: Costing) -> list[Grid]:
    """What there is of bytes, time, and an object store's seconds and dollars; each of at least two layouts."""
    return [grid for grid in (_bytes(records), _time(records), *_object_store(records, costing)) if grid and grid.cases]


def left_out(found: Sequence[Grid], costing: Costing) -> str:
    """The filters that are asked and have no part in the means, and why, quantity by quantity where these differ:
    ``one_item, not measured on sorted``; empty where none is left out."""
    quantities: dict[str, list[str]] = {}
    for grid in found:
        for case in dict.fromkeys([*(case for case, _ in grid.values), *costing.weights]):
            if costing.weight(case) and (lacking := grid.lacking(case)):
                where = "" if len(lacking) == len(grid.layouts) else f" on {listed(lacking)}"
                quantities.setdefault(f"{case}, not measured{where}", []).append(NAMES[grid.key])
    every = len(found)
    return "; ".join(text if len(own) == every else f"{text} ({listed(own)})" for text, own in quantities.items())


def layouts_section(records: Records, costing: Costing | None = None) -> Section | None:
    """Heat maps: what each filter reads of each layout, and how long it takes; None of fewer than two layouts."""
    found = grids(records, costing or Costing())
    if len(records.names("layout")) < 2 or not found:
        return None
    return Section(
        key="layouts",
        title="Layouts by filter",
        explanation="The darker a cell, the further from the least of its column, on a logarithmic scale; the least is "
        "marked. Whether a time is less is a claim, which findings make, not the mark.",
        switch=tuple(replace(heat_map(grid), short=NAMES[grid.key]) for grid in found),
        opening=True,
    )


def heat_map(grid: Grid) -> Table:
    """A row for each layout, a column for each filter: layouts are the many."""
    by_filter = [
        heated([grid.values.get((case, name)) for name in grid.layouts], grid.unit, modelled=grid.key == "s3")
        for case in grid.cases
    ]
    rows = tuple(zip(map(plain, grid.layouts), *by_filter, strict=True))
    return Table(title=grid.title, columns=("Layout", *grid.cases), rows=rows, note=grid.note)


def heated(values: Sequence[float | None], unit: str, *, modelled: bool = False) -> Iterator[Cell]:
    """Cells that are to be compared with each other, as dark as they are far from the least, which is marked. The
    darkest is at least twice that. Of `modelled` seconds all are marked that may be the least, unless that is each."""
    known = [value for value in values if value is not None]
    least, most = (min(known), max(known)) if known else (0.0, 0.0)
    darkest = max(most, _DARKEST * least)
    marked = undecided_up_to(least) if modelled else least
    for value in values:
        if value is None:
            yield Cell(text="-", detail="not measured")
            continue
        heat = 0.0
        if value > least:
            heat = math.log(value / least) / math.log(darkest / least) if least > 0 else value / darkest
        tone = Tone.BEST if value <= marked < most else Tone.PLAIN
        yield Cell(text=quantity(value, unit), tone=tone, heat=heat)


def _bytes(records: Records) -> Grid | None:
    """Bytes that were read, by the engine that counts them; else the share of a layout's bytes that is planned, which
    layouts of other sizes have other bytes for."""
    if (counted := counted_bytes(records)) is not None:
        return counted
    planned = records.where(measurement="pruning", metric="bytes_planned_share")
    for engine in planned.engines[:1]:
        title = f"Share of the table's bytes planned ({engine}, counted)"
        return _grid(planned.where(engine=engine), "planned", title, "ratio", median)
    return None


def counted_bytes(records: Records) -> Grid | None:
    """Bytes that filtered reads read, by the engine that counts them; None where none does."""
    counted = _counted(records)
    if not counted:
        return None
    title = f"Bytes read under a filter, {_cache(counted)} ({counted.engines[0]}, counted)"
    return _grid(counted, "bytes", title, "bytes", lambda r: float(r.counters[READ]))


def timed_records(records: Records) -> Records:
    """Cold filtered reads of the engine that leads the report; else warm ones, else its cold plans."""
    for measurement, metric in _TIMED:
        timed = records.where(measurement=measurement, metric=metric).competing
        if timed:
            return timed.where(engine=timed.engines[0])
    return records.where(measurement="")


def read_words(records: Records) -> str:
    """What `timed_records` gave: ``cold reads``, ``warm reads`` or ``cold plans``."""
    return _READ[records.all[0].metric]


def processor_records(records: Records) -> Records:
    """The processor time of what `timed_records` has by the clock."""
    timed = timed_records(records)
    if not timed:
        return timed
    first = timed.all[0]
    return records.where(measurement=first.measurement, metric=_CPU[first.metric], engine=first.engine)


def _time(records: Records) -> Grid | None:
    timed = timed_records(records)
    if not timed:
        return None
    what = _TIMED[timed.all[0].measurement, timed.all[0].metric]
    return _grid(timed, "time", f"{what} ({timed.engines[0]}, median)", "s", median)


def _object_store(records: Records, costing: Costing) -> Iterator[Grid | None]:
    """What the counted requests and bytes would take and cost on S3: modelled, not measured."""

    def work(record: Record) -> Work:
        return icebench_work(record.counters, seconds=median(record), threads=THREADS)

    def seconds(record: Record) -> float:
        return seconds_on(work(record), costing.profile)

    def dollars(record: Record) -> float:
        return dollars_per_thousand_queries(work(record), costing.profile)

    counted = _counted(records)
    if counted:
        how = f"{costing.profile.name}, {_cache(counted)} ({counted.engines[0]}, modelled)"
        yield _grid(counted, "s3", f"Time of the filtered read from S3, {how}", "s", seconds)
        yield _grid(counted, "dollars", f"A thousand such reads at S3's prices, {how}", "$", dollars)


def _cache(scans: Records) -> str:
    """``cold`` or ``warm``."""
    return _READ[scans.all[0].metric].partition(" ")[0]


def _counted(records: Records) -> Records:
    """The filtered reads of the engine that counts what it asks of storage: the cold ones, or else the warm ones."""
    scans = [records.where(measurement="filtered", metric=metric).all for metric in _SCANS]
    counted = next((own for found in scans if (own := tuple(r for r in found if READ in r.counters))), ())
    engine = next((r.engine for r in counted), "")
    return Records(
        tuple(r for r in counted if r.engine == engine),
        layout_order=records.layout_order,
        engine_order=records.engine_order,
    )


def _grid(records: Records, key: str, title: str, unit: str, value: Callable[[Record], float]) -> Grid | None:
    if not records:
        return None
    present = records.names("layout")
    return Grid(
        key=key,
        title=title,
        unit=unit,
        engine=records.engines[0],
        layouts=tuple(name for name in records.layout_order or present if name in present),
        values={(r.case, r.layout): value(r) for r in records.all},
        note=_MODELLED if key in OF_MODEL else "",
    )
