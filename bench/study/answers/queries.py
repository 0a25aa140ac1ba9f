"""How long whole queries take."""

from __future__ import annotations

from icebench.bench.execution.run_file import Run
from icebench.bench.report.charts import LineChart
from icebench.bench.report.compare import Records
from icebench.bench.report.power import REFERENCE, TIME, power_tables
from icebench.bench.report.quantities import count
from icebench.bench.study.comparing import choice, effect, within
from icebench.bench.study.page import Page
from icebench.bench.study.query_ratios import decided, extremes, pairs_of, panel, ratios_of


def answer(run: Run) -> Page:
    """What each engine takes for the queries, relative to Iceberg Java on Spark."""
    records = Records(run.records).where(metric=TIME)
    base = records.where(engine=REFERENCE)
    others = [engine for engine in records.engines if engine != REFERENCE]
    pairs = {engine: pairs_of(base, records.where(engine=engine)) for engine in others}
    ratios = {engine: ratios_of(own) for engine, own in pairs.items()}
    means = {engine: effect(list(own.values())) for engine, own in pairs.items()}
    fastest = min(means, key=lambda engine: means[engine].ratio)
    queries = count(len(records.names("case")), "query", "queries")
    return Page(
        answer=f"Over {queries} of TPC-DS, relative to Iceberg Java on Spark (geometric mean): "
        f"{', '.join(f'{engine} {within(found)}' for engine, found in means.items())}.",
        chart=LineChart(
            caption=f"Queries that take less time than with {REFERENCE}, and more: {decided(ratios)}.",
            x_axis="queries, from the one that the engine gains most in",
            y_axis=f"time relative to {REFERENCE}",
            series=tuple(ratios),
            panels=(panel("Time of a query", ratios),),
            log_x=False,
            level=1.0,
        ),
        tables=(
            *power_tables(Records(run.records)),
            *(
                extremes(f"{engine}: queries that it gains and loses most in", REFERENCE, engine, own, ratios[engine])
                for engine, own in pairs.items()
            ),
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
