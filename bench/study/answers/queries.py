"""How long whole queries take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from icebench.bench.execution.run_file import Run
from icebench.bench.records.record import Record
from icebench.bench.report.charts import Line, LineChart, LinePanel, LinePoint
from icebench.bench.report.compare import Records, median
from icebench.bench.report.model import Cell, Table, plain
from icebench.bench.report.power import REFERENCE, TIME, power_tables
from icebench.bench.report.quantities import count, quantity
from icebench.bench.statistics.claims import FALSE_CLAIMS, Effect, holm
from icebench.bench.study.comparing import choice, effect, within
from icebench.bench.study.page import Page

SHOWN = 5
"""Of each engine, the queries that it gains and loses most in."""

Pairs = Mapping[str, tuple[Record, Record]]
"""By query: the reference's record and an engine's."""


def answer(run: Run) -> Page:
    """What each engine takes for the queries, in times of Iceberg Java on Spark."""
    records = Records(run.records).where(metric=TIME)
    pairs = {engine: _pairs(records, engine) for engine in records.engines if engine != REFERENCE}
    means = {engine: effect(list(own.values())) for engine, own in pairs.items()}
    fastest = min(means, key=lambda engine: means[engine].ratio)
    queries = count(len(records.names("case")), "query", "queries")
    return Page(
        answer=f"Over {queries} of TPC-DS, in times of Iceberg Java on Spark (geometric mean): "
        f"{', '.join(f'{engine} {within(found)}' for engine, found in means.items())}.",
        chart=_chart({engine: _ratios(own) for engine, own in pairs.items()}),
        tables=(
            *power_tables(Records(run.records)),
            *(_extremes(engine, own, _ratios(own)) for engine, own in pairs.items()),
        ),
        choices=(
            choice(
                f"{fastest} for queries of a small database",
                "Iceberg Java on Spark",
                "a query of TPC-DS, geometric mean",
                [(head, base) for base, head in pairs[fastest].values()],
            ),
        ),
    )


def _pairs(records: Records, engine: str) -> Pairs:
    base = {record.case: record for record in records.where(engine=REFERENCE).all}
    return {own.case: (base[own.case], own) for own in records.where(engine=engine).all if own.case in base}


def _ratios(pairs: Pairs) -> dict[str, Effect]:
    """By query, the least first."""
    found = {query: effect([pair]) for query, pair in pairs.items()}
    return dict(sorted(found.items(), key=lambda item: item[1].ratio))


def _chart(ratios: Mapping[str, Mapping[str, Effect]]) -> LineChart:
    def line(engine: str) -> Line:
        points = (LinePoint(x=place, y=found.ratio) for place, found in enumerate(ratios[engine].values(), 1))
        return Line(series=engine, points=tuple(points))

    every = [(engine, found) for engine, own in ratios.items() for found in own.values()]
    corrected = holm([found.p_value for _, found in every])
    decided = Counter((e, f.ratio < 1) for (e, f), p in zip(every, corrected, strict=True) if p < FALSE_CLAIMS)
    said = [f"{e} {decided[e, True]} and {decided[e, False]} of {len(own)}" for e, own in ratios.items()]
    return LineChart(
        caption=f"Queries that take less time than with {REFERENCE}, and more: {', '.join(said)}; all that is counted "
        f"is right with a probability of {1 - FALSE_CLAIMS:.0%}.",
        x_axis="queries, from the one that the engine gains most in",
        y_axis=f"times what {REFERENCE} takes",
        series=tuple(ratios),
        panels=(LinePanel(title="Time of a query", lines=tuple(map(line, ratios))),),
        log_x=False,
        level=1.0,
    )


def _extremes(engine: str, pairs: Pairs, ratios: Mapping[str, Effect]) -> Table:
    queries = list(ratios)
    shown = queries if len(queries) <= 2 * SHOWN else [*queries[:SHOWN], *queries[-SHOWN:]]
    return Table(
        title=f"{engine}: queries that it gains and loses most in",
        columns=("Query", REFERENCE, engine, "Times"),
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
