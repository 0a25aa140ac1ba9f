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


def answer(run: Run) -> Page:
    """What the queries of each engine take over facts sorted by day, relative to facts in no order."""
    records = Records(run.records).where(metric=TIME)
    before, after = (records.where(layout=layout) for layout in records.names("layout"))
    pairs = {engine: pairs_of(before.where(engine=engine), after.where(engine=engine)) for engine in records.engines}
    ratios = {engine: ratios_of(own) for engine, own in pairs.items()}
    means = {engine: effect(list(own.values())) for engine, own in pairs.items()}
    gains = min(means, key=lambda engine: means[engine].ratio)
    queries = count(len(records.names("case")), "query", "queries")
    return Page(
        answer=f"Over {queries} of TPC-DS, with facts sorted by day relative to facts in no order "
        f"(geometric mean): {', '.join(f'{engine} {within(found)}' for engine, found in means.items())}.",
        chart=LineChart(
            caption=f"Queries that take less time over facts sorted by day, and more: {decided(ratios)}.",
            x_axis="queries, from the one that the engine gains most in",
            y_axis="time relative to facts in no order",
            series=tuple(ratios),
            panels=(panel("Time of a query", ratios),),
            log_x=False,
            level=1.0,
        ),
        tables=(
            *power_tables(Records(run.records)),
            *(
                extremes(f"{engine}: queries that gain and lose most", "no order", "sorted by day", own, ratios[engine])
                for engine, own in pairs.items()
            ),
        ),
        limits=tuple(_unanswered(records)),
        choices=(
            choice(
                "facts sorted by day",
                "facts in no order of days",
                f"a query of TPC-DS ({gains}), geometric mean",
                [(head, base) for base, head in pairs[gains].values()],
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
