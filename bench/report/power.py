"""The power of engines: all queries one after the other, in times of one engine's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from icebench.bench.records.record import Record
from icebench.bench.report.compare import Records, median, pooled
from icebench.bench.report.model import Cell, Table, Tone, plain
from icebench.bench.report.quantities import quantity, times
from icebench.bench.statistics.claims import Effect

TIME = "query_time"
REFERENCE = "iceberg-java"
"""The engine whose times the others are compared with; where it was not measured, the first one."""


def power_tables(records: Records) -> Iterator[Table]:
    """A table for each set of tables, with a row for each engine: how many times what the reference takes, over the
    queries that both answered. None with fewer than two engines or queries."""
    timed = records.where(metric=TIME)
    for layout in timed.names("layout"):
        found = timed.where(layout=layout)
        if len(found.engines) > 1 and len(found.names("case")) > 1:
            yield _power_table(found, layout)


def _power_table(records: Records, layout: str) -> Table:
    engines = records.engines
    reference = REFERENCE if REFERENCE in engines else engines[0]
    queries = records.names("case")
    of_engine = {engine: {r.case: r for r in records.where(engine=engine).all} for engine in engines}
    base = of_engine[reference]
    every = [query for query in queries if all(query in own for own in of_engine.values())]
    rows = []
    for engine, own in of_engine.items():
        shared = [query for query in queries if query in own and query in base]
        ratios = [None, None] if engine == reference else [_mean(base, own, shared), _sum(base, own, shared)]
        rows.append(
            (
                plain(engine),
                Cell(text=f"{len(own)} of {len(queries)}"),
                *(_times(ratio, is_reference=engine == reference) for ratio in ratios),
                *(_seconds([median(own[query]) for query in every])),
            )
        )
    return Table(
        title=f"Power: all queries, in times of {reference}",
        columns=("Engine", "Queries", "Geometric mean", "Sum", "Geometric mean of seconds", "Sum of seconds"),
        rows=tuple(rows),
        note=f"Of tables {layout}. The geometric mean and the sum are ratios to {reference} with 95% intervals, from "
        f"samples of the same rounds, over the queries that both answered; seconds are of medians, over the "
        f"{len(every)} queries that all answered.",
        short="power",
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


def _times(ratio: Effect | None, *, is_reference: bool) -> Cell:
    if is_reference:
        return Cell(text="1")
    if ratio is None:
        return Cell(text="-", detail="not measured")
    tone = Tone.PLAIN if ratio.differs else Tone.DOUBTFUL
    return Cell(text=times(ratio.ratio), detail=f"[{times(ratio.low)}, {times(ratio.high)}]", tone=tone)


def _seconds(medians: Sequence[float]) -> Iterator[Cell]:
    if not medians:
        yield from (Cell(text="-"), Cell(text="-"))
        return
    yield Cell(text=quantity(math.exp(sum(map(math.log, medians)) / len(medians)), "s"))
    yield Cell(text=quantity(sum(medians), "s"))
