"""What whole queries gain from facts sorted by day."""

from __future__ import annotations

from icebench.bench.execution.run_file import Run
from icebench.bench.report.charts import LineChart
from icebench.bench.report.compare import Records
from icebench.bench.report.power import TIME, power_tables
from icebench.bench.report.quantities import count
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
    engine = records.engines[0]
    queries = count(len(records.names("case")), "query", "queries")
    said = [f"{layout} {', '.join(f'{e} {within(means[e, layout])}' for e in records.engines)}" for layout in layouts]
    return Page(
        answer=f"Over {queries} of TPC-DS, in times of the same over facts in no order of days (geometric mean): "
        f"{'; '.join(said)}.",
        chart=LineChart(
            caption=f"Queries of {engine} that take less time than over facts in no order of days, and more: "
            f"{decided({layout: ratios[engine, layout] for layout in layouts})}.",
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
                extremes(
                    f"{layout}: queries of {engine} that gain and lose most", before, layout, pairs[engine, layout]
                )
                for layout in layouts
            ),
        ),
        choices=(
            choice(
                "facts sorted by day",
                "facts in no order of days",
                f"a query of TPC-DS ({engine}), geometric mean",
                [(head, base) for base, head in pairs[engine, SORTED].values()],
            ),
        ),
    )
