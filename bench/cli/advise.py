"""`icebench advise`: which layout would serve a table's queries."""

from __future__ import annotations

import json
from pathlib import Path

import click

import icebench
from icebench.bench.advise.advice import QUANTITIES, Options, Quantity, advise, profile_of
from icebench.bench.advise.queries import Queries, merged, read_queries, read_scans
from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.ignored_options import refuse_options
from icebench.bench.cli.naming import open_table, table_argument, table_options
from icebench.bench.cli.places import write_whole
from icebench.bench.cli.terminal import write_text
from icebench.bench.costs.object_store import PROFILES
from icebench.bench.errors import ConfigError
from icebench.bench.report.advice import advice_lines, advice_report, advice_values

_LINES = 25
_DEFAULT = Options()
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_LOG = click.Path(exists=True, path_type=Path)


@click.command("advise")
@table_argument()
@table_options
@click.option("--queries", type=_LOG, metavar="FILE", help="SQL, or a log of queries of Spark, Trino or DuckDB.")
@click.option("--scans", type=_FILE, metavar="FILE", help="Scans that this engine has reported, a JSON object a line.")
@click.option("--dialect", metavar="NAME", help="Of the SQL, such as spark, trino or duckdb.")
@click.option("--called", metavar="NAME", help="What the queries call the table; its own name by default.")
@click.option("--minimize", type=click.Choice(QUANTITIES), default=_DEFAULT.minimize, show_default=True)
@click.option(
    "--profile",
    "store",
    type=click.Choice(list(PROFILES)),
    help="Where queries stand to storage: local for files of this machine, same-region for others unless said.",
)
@click.option(
    "--queries-per-day",
    type=click.FloatRange(min=0, min_open=True),
    default=_DEFAULT.queries_per_day,
    show_default=True,
    help="All together; shows when a change pays off.",
)
@click.option("--sample-rows", type=click.IntRange(min=100), default=_DEFAULT.sample_rows, show_default=True)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=_DEFAULT.trials,
    show_default=True,
    help="Layouts to build for real.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all figures as one object, for other programs.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page with plots."
)
@click.option(
    "--lines", type=click.IntRange(min=10), default=_LINES, show_default=True, help="Print at most that many."
)
@pass_context
def advise_command(
    context: Context,
    *,
    words: tuple[str, ...],
    catalog: str | None,
    warehouse: str | None,
    queries: Path | None,
    scans: Path | None,
    dialect: str | None,
    called: str | None,
    minimize: Quantity,
    store: str | None,
    queries_per_day: float,
    sample_rows: int,
    trials: int,
    as_json: bool,
    html: Path | None,
    lines: int,
) -> int:
    """Recommend a layout for a table's queries: what the change costs, and when it pays off.

    PLACE is the table's directory or one of its metadata.json files; or, with TABLE, a catalog. With --catalog, PLACE
    is the table's name there. Layouts are modelled on a sample of the rows, and the best built from it in a temporary
    directory; the table is not changed.
    """
    if queries is None:
        refuse_options("dialect", "called", because="needs --queries")
    table, place = open_table(words, catalog, warehouse)
    asked = _asked(table, queries, scans, dialect, called)
    options = Options(
        minimize=minimize,
        profile=profile_of(table) if store is None else PROFILES[store],
        queries_per_day=queries_per_day,
        sample_rows=sample_rows,
        trials=trials,
    )
    with context.terminal.err.status("") as shown:
        advice = advise(table, asked, options, shown.update)
    out = context.terminal.out
    if html is not None:
        from icebench.bench.report.html import render  # local import: matplotlib takes a second

        write_whole(html, render(advice_report(advice, table, place)))
        (context.terminal.err if as_json else out).print(str(html), markup=False, soft_wrap=True)
    if as_json:
        write_text(out, f"{json.dumps(advice_values(advice, table, place))}\n")
    elif html is None:
        for part in advice_lines(advice, table, place, out, lines=lines):
            out.print(part, crop=False)
    return 0


def _asked(
    table: icebench.Table, queries: Path | None, scans: Path | None, dialect: str | None, called: str | None
) -> Queries:
    found = []
    if queries is not None:
        found.append(read_queries(queries, table, name=called, dialect=dialect))
    if scans is not None:
        found.append(read_scans(scans, table))
    if not found:
        raise ConfigError("say what is asked of the table: --queries FILE or --scans FILE", path="advise")
    every = [query for each in found for query in each.queries]
    return Queries(
        queries=merged(every),
        unused=tuple(left for each in found for left in each.unused),
        others=sum(each.others for each in found),
    )
