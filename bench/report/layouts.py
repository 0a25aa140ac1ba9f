"""The opening of a report: layout x filter, in bytes, in time, and in what an object store would take and charge."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from bench.costs.object_store import SAME_REGION, Work, dollars_per_thousand_queries, icebench_work, seconds_on
from bench.measure.record import Record
from bench.report.compare import Records, median
from bench.report.model import Cell, Section, Table, Tone, plain
from bench.report.quantities import quantity

READ = "storage_bytes_read"
"""The counter of bytes, where an engine tells it."""
_THREADS = 4
"""Of the client that the object store's profile stands for; see docs/design/object-store-costs.md."""


def layouts_section(records: Records) -> Section | None:
    """Heat maps: what each filter reads of each layout, and how long it takes; None of fewer than two layouts."""
    if len(records.names("layout")) < 2:
        return None
    tables = [table for table in (_bytes(records), _time(records), *_object_store(records)) if table is not None]
    if not tables:
        return None
    return Section(
        key="layouts",
        title="Layouts by filter",
        explanation="The darker a cell, the further from the best of its row, on a logarithmic scale.",
        tables=tuple(tables),
    )


def _bytes(records: Records) -> Table | None:
    """Bytes that were read, by the engine that counts them; else the share of the table that is planned."""
    counted = _counted(records)
    if counted:
        read = {(r.case, r.layout): float(r.counters[READ]) for r in counted.all}
        return _map(counted, read, "bytes", f"Bytes read under a filter ({counted.engines[0]}, counted)")
    planned = records.where(measurement="pruning", metric="bytes_planned_share")
    for engine in planned.engines[:1]:
        own = planned.where(engine=engine)
        return _map(
            own, {(r.case, r.layout): median(r) for r in own.all}, "ratio", "Share of the table's bytes planned"
        )
    return None


def _counted(records: Records) -> Records:
    """The filtered reads of the engine that counts what it asks of storage."""
    scans = records.where(measurement="filtered", metric="scan_time")
    counted = tuple(r for r in scans.all if READ in r.counters)
    return Records(counted, layout_order=records.layout_order, engine_order=records.engine_order)


def _object_store(records: Records) -> Iterator[Table | None]:
    """What the counted requests and bytes would take and cost on S3: modelled, not measured."""

    def work(record: Record) -> Work:
        return icebench_work(record.counters, seconds=median(record), threads=_THREADS)

    counted = _counted(records)
    seconds = {(r.case, r.layout): seconds_on(work(r), SAME_REGION) for r in counted.all}
    dollars = {(r.case, r.layout): dollars_per_thousand_queries(work(r), SAME_REGION) for r in counted.all}
    note = "A model of the counted requests and bytes, opened anew for every query; docs/design/object-store-costs.md."
    for values, unit, title in (
        (seconds, "s", "Time of the filtered read from S3 in the client's region (modelled)"),
        (dollars, "$", "Requests of a thousand such reads at S3's prices (modelled)"),
    ):
        yield _map(counted, values, unit, title, note)


def _time(records: Records) -> Table | None:
    """Time of the filtered read, by the engine that leads the report; else of the cold plan."""
    for measurement, metric, title in (
        ("filtered", "scan_time", "Time of the filtered read"),
        ("planning", "latency_cold", "Time of a cold plan"),
    ):
        timed = records.where(measurement=measurement, metric=metric).competing
        for engine in timed.engines[:1]:
            own = timed.where(engine=engine)
            return _map(own, {(r.case, r.layout): median(r) for r in own.all}, "s", f"{title} ({engine}, median)")
    return None


def _map(
    records: Records, values: Mapping[tuple[str, str], float], unit: str, title: str, note: str = ""
) -> Table | None:
    layouts = [name for name in records.layout_order or records.names("layout") if name in records.names("layout")]
    cases = [case for case in records.names("case") if sum((case, layout) in values for layout in layouts) > 1]
    if not cases:
        return None
    rows = tuple((plain(case), *_cells([values.get((case, layout)) for layout in layouts], unit)) for case in cases)
    return Table(title=title, columns=("Filter", *layouts), rows=rows, note=note)


def _cells(values: list[float | None], unit: str) -> Iterator[Cell]:
    known = [value for value in values if value is not None]
    least, most = min(known), max(known)
    for value in values:
        if value is None:
            yield Cell(text="-", detail="not measured")
            continue
        heat = 0.0 if value == least else 1.0
        if least < value < most:
            heat = math.log(value / least) / math.log(most / least) if least > 0 else value / most
        tone = Tone.BEST if value == least < most else Tone.PLAIN
        yield Cell(text=quantity(value, unit), tone=tone, heat=heat)
