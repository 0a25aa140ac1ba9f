"""What whole queries gain from facts sorted by day."""

from __future__ import annotations

from collections.abc import Iterator

from icebench.bench.execution.run_file import Run
from icebench.bench.report.charts import LineChart
from icebench.bench.report.compare import Records
from icebench.bench.report.power import TIME, power_tables
from icebench.bench.report.quantities import count, listed
from icebench.bench.study.comparing import choice, effect, within
from icebench.bench.study.page import Page
from icebench.bench.study.query_ratios import decided, extremes, pairs_of, panel, ratios_of

SORTED = "sorted by day"


def answer(run: Run) -> Page:
    """What the queries of each engine take over facts sorted by day, in times of those over facts in no order."""
    records = Records(run.records).where(metric=TIME)
    before, *layouts = records.names("layout")
    base = records.where(layout=before)
    pairs = {
        (engine, layout): pairs_of(base.where(engine=engine), records.where(engine=engine, layout=layout))
        for engine in records.engines
        for layout in layouts
    }
    ratios = {each: ratios_of(own) for each, own in pairs.items()}
    means = {each: effect(list(own.values())) for each, own in pairs.items()}
    gains = min(records.engines, key=lambda engine: means[engine, SORTED].ratio)
    queries = count(len(records.names("case")), "query", "queries")
    said = [f"{layout} {', '.join(f'{e} {within(means[e, layout])}' for e in records.engines)}" for layout in layouts]
    return Page(
        answer=f"Over {queries} of TPC-DS, in times of the same over facts in no order of days (geometric mean): "
        f"{'; '.join(said)}.",
        chart=LineChart(
            caption="Queries that take less time than over facts in no order of days, and more: "
            f"{decided({' '.join(each): own for each, own in ratios.items()})}.",
            x_axis="queries, from the one that gains most",
            y_axis="times the query over facts in no order",
            series=tuple(layouts),
            panels=tuple(
                panel(f"Time of a query in {each}", {layout: ratios[each, layout] for layout in layouts})
                for each in records.engines
            ),
            log_x=False,
            level=1.0,
        ),
        tables=(
            *power_tables(Records(run.records)),
            *(
                extremes(f"{layout}: queries of {engine} that gain and lose most", before, layout, own)
                for (engine, layout), own in pairs.items()
            ),
        ),
        limits=tuple(_unanswered(records)),
        choices=(
            choice(
                "facts sorted by day",
                "facts in no order of days",
                f"a query of TPC-DS ({gains}), geometric mean",
                [(head, base) for base, head in pairs[gains, SORTED].values()],
            ),
        ),
    )


def _unanswered(records: Records) -> Iterator[str]:
    """The queries that an engine has no answer to over a layout, which are in none of its ratios."""
    every = records.names("case")
    for engine in records.engines:
        for layout in records.names("layout"):
            answered = records.where(engine=engine, layout=layout).names("case")
            missing = [query for query in every if query not in answered]
            if missing:
                yield f"{engine} gave no answer in time to {listed(missing)} over {layout}, so they are not compared."
