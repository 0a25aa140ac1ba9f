"""The power of engines: all queries one after the other, relative to one engine; and beside it their throughput, of
streams of all queries at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from icebench.bench.records.record import Record
from icebench.bench.report.compare import Records, bounds, median, pooled, ratio
from icebench.bench.report.model import Cell, Table, Tone, plain
from icebench.bench.report.quantities import interval, quantity, times
from icebench.bench.report.tables import NOT_MEASURED
from icebench.bench.statistics.claims import Effect

TIME, STREAMS_TIME, THROUGHPUT = "query_time", "streams_time", "throughput"
REFERENCE = "iceberg-java"
"""The engine whose times the others are compared with; where it was not measured, the first one."""


def power_tables(records: Records) -> Iterator[Table]:
    """A table for each set of tables, with a row for each engine: how many times what the reference takes, over the
    queries that both answered, and of streams at once. None with fewer than two engines or queries, unless there are
    streams. Then, where there are further tables of the same rows, how much longer these take."""
    layouts = records.names("layout")
    for layout in layouts:
        found = records.where(layout=layout)
        timed, streams = found.where(metric=TIME), found.where(metric=STREAMS_TIME)
        if timed and (streams or (len(timed.engines) > 1 and len(timed.names("case")) > 1)):
            over = f" over {layout}" if len(layouts) > 1 else ""
            yield _power_table(timed, streams, found.where(metric=THROUGHPUT), over)
    timed = records.where(metric=TIME)
    if len(timed.names("layout")) > 1:
        yield _stability_table(timed)


def _stability_table(timed: Records) -> Table:
    """What each engine's queries take over other tables of the same rows, relative to the first tables."""
    before, *after = timed.names("layout")
    rows = []
    for engine in timed.engines:
        own = timed.where(engine=engine)
        base, *others = ({r.case: r for r in own.where(layout=layout).all} for layout in (before, *after))
        ratios = [_mean(base, head, [query for query in base if query in head]) for head in others]
        rows.append((plain(engine), *map(_times, ratios)))
    return Table(
        title=f"Stability: all queries, relative to those over {before}",
        columns=("Engine", *after),
        rows=tuple(rows),
        note="Geometric mean of the ratios of single queries with its 95% interval, over the queries that were "
        "answered over both, from samples of the same rounds. The rows are the same.",
        short="stability",
    )


def _power_table(timed: Records, streams: Records, throughput: Records, over: str) -> Table:
    engines = timed.engines
    reference = REFERENCE if REFERENCE in engines else engines[0]
    queries = timed.names("case")
    of_engine = {engine: {r.case: r for r in timed.where(engine=engine).all} for engine in engines}
    base = of_engine[reference]
    every = [query for query in queries if all(query in own for own in of_engine.values())]
    rows = []
    for engine, own in of_engine.items():
        shared = [query for query in queries if query in own and query in base]
        ratios = [] if engine == reference else [_mean(base, own, shared), _sum(base, own, shared)]
        rows.append(
            (
                plain(engine),
                Cell(text=f"{len(own)} of {len(queries)}"),
                *(map(_times, ratios) if ratios else [Cell(text="1")] * 2),
                *(_seconds([median(own[query]) for query in every])),
                *(_throughput(streams, throughput, engine, reference) if streams else ()),
            )
        )
    note = (
        f"The geometric mean and the sum are ratios to {reference} with 95% intervals, from "
        f"samples of the same rounds, over the queries that both answered; seconds are of medians, over the "
        f"{len(every)} queries that all answered."
    )
    title = f"Power: all queries{over}, relative to {reference}"
    columns = ("Engine", "Queries", "Geometric mean", "Sum", "Geometric mean of seconds", "Sum of seconds")
    if not streams:
        return Table(title=title, columns=columns, rows=tuple(rows), note=note, short="power")
    (case,) = streams.names("case")
    return Table(
        title=f"{title}; throughput",
        columns=(*columns, f"Time of {case}", "Throughput"),
        rows=tuple(rows),
        note=f"{note} Of {case} that ask all queries at once, the time is a ratio to {reference}, too; the throughput "
        "is the median with its interval.",
        short="power",
    )


def _throughput(streams: Records, throughput: Records, engine: str, reference: str) -> Iterator[Cell]:
    """The time of all streams relative to the reference's, and how many queries they have answered in an hour."""
    base, head, found = (r.one(engine=e) for r, e in ((streams, reference), (streams, engine), (throughput, engine)))
    if head is None or found is None:
        yield from (NOT_MEASURED, NOT_MEASURED)
        return
    if engine == reference:
        yield Cell(text="1")
    else:
        yield _times(None if base is None else ratio(base, head))
    middle, ends = median(found), bounds(found)
    yield Cell(
        text=quantity(middle, found.unit), detail=interval(*ends, found.unit, like=middle) if ends else "", record=found
    )


def _mean(base: Mapping[str, Record], head: Mapping[str, Record], queries: Sequence[str]) -> Effect | None:
    """The geometric mean of the ratios."""
    return pooled([(base[query], head[query]) for query in queries])


def _sum(base: Mapping[str, Record], head: Mapping[str, Record], queries: Sequence[str]) -> Effect | None:
    """The ratio of what all queries take in a round; None without a round that all have."""
    sums = [_summed([own[query] for query in queries]) for own in (base, head)]
    return None if sums[0] is None or sums[1] is None else pooled([(sums[0], sums[1])])


def _summed(records: Sequence[Record]) -> Record | None:
    """What the records take together, round by round."""
    rounds = [dict(zip(record.places, record.samples, strict=True)) for record in records]
    shared = sorted(set.intersection(*map(set, rounds))) if rounds else []
    if not shared:
        return None
    first = records[0]
    return Record(
        workload=first.workload,
        layout=first.layout,
        engine=first.engine,
        engine_version=first.engine_version,
        measurement=first.measurement,
        case="all queries",
        metric=first.metric,
        unit=first.unit,
        samples=tuple(sum(own[place] for own in rounds) for place in shared),
        places=tuple(shared),
        spread=first.spread,
    )


def _times(found: Effect | None) -> Cell:
    if found is None:
        return NOT_MEASURED
    tone = Tone.PLAIN if found.differs else Tone.DOUBTFUL
    return Cell(text=times(found.ratio), detail=f"[{times(found.low)}, {times(found.high)}]", tone=tone)


def _seconds(medians: Sequence[float]) -> Iterator[Cell]:
    if not medians:
        yield from (Cell(text="-"), Cell(text="-"))
        return
    yield Cell(text=quantity(math.exp(sum(map(math.log, medians)) / len(medians)), "s"))
    yield Cell(text=quantity(sum(medians), "s"))
