"""Many queries, each beside the same one of another engine or over other tables: by how much each gains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from icebench.bench.records.record import Record
from icebench.bench.report.charts import Line, LinePanel, LinePoint
from icebench.bench.report.compare import Records, median
from icebench.bench.report.model import Cell, Table, plain
from icebench.bench.report.quantities import quantity
from icebench.bench.statistics.claims import FALSE_CLAIMS, Effect, holm
from icebench.bench.study.comparing import effect, within

SHOWN = 5
"""The queries that gain and lose most, of each."""

Pairs = Mapping[str, tuple[Record, Record]]
"""By query: the record that others are compared with, and another."""
Ratios = Mapping[str, Effect]
"""By query, the least first."""


def pairs_of(base: Records, head: Records) -> Pairs:
    """The queries of both, where each has one record of a query."""
    known = {record.case: record for record in base.all}
    return {own.case: (known[own.case], own) for own in head.all if own.case in known}


def ratios_of(pairs: Pairs) -> Ratios:
    """How many times the first of each pair the second takes."""
    found = {query: effect([pair]) for query, pair in pairs.items()}
    return dict(sorted(found.items(), key=lambda item: item[1].ratio))


def decided(ratios: Mapping[str, Ratios]) -> str:
    """How many queries of each take less for certain, and how many more, in words; Holm's correction is over all."""
    every = [(name, found) for name, own in ratios.items() for found in own.values()]
    corrected = holm([found.p_value for _, found in every])
    counted = Counter((n, f.ratio < 1) for (n, f), p in zip(every, corrected, strict=True) if p < FALSE_CLAIMS)
    said = ", ".join(
        f"{name} {counted[name, True]} and {counted[name, False]} of {len(own)}" for name, own in ratios.items()
    )
    return f"{said}; all that is counted is right with a probability of {1 - FALSE_CLAIMS:.0%}"


def panel(title: str, ratios: Mapping[str, Ratios]) -> LinePanel:
    """A line for each, from the query that gains most on."""

    def line(name: str) -> Line:
        points = (LinePoint(x=place, y=found.ratio) for place, found in enumerate(ratios[name].values(), 1))
        return Line(series=name, points=tuple(points))

    return LinePanel(title=title, lines=tuple(map(line, ratios)))


def extremes(title: str, base: str, head: str, pairs: Pairs, ratios: Ratios) -> Table:
    """The queries that gain and lose most, with `base` and `head` above their seconds."""
    queries = list(ratios)
    shown = queries if len(queries) <= 2 * SHOWN else [*queries[:SHOWN], *queries[-SHOWN:]]
    return Table(
        title=title,
        columns=("Query", base, head, "Times"),
        rows=tuple(
            (
                plain(query),
                *(Cell(text=quantity(median(record), "s")) for record in pairs[query]),
                Cell(text=within(ratios[query])),
            )
            for query in shown
        ),
        note="Medians, and the ratio with its 95% interval, from samples of the same rounds.",
    )
