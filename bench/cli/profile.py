"""`icebench profile`: the profile of a table."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.naming import open_table, table_argument, table_options
from icebench.bench.cli.places import write_whole
from icebench.bench.cli.terminal import write_text
from icebench.bench.report.profile import fix_commands, profile_report
from icebench.bench.report.profile_console import profile_lines

LINES = 40


@click.command("profile")
@table_argument()
@table_options
@click.option("--snapshot", type=int, metavar="ID", help="As of this snapshot; the current one by default.")
@click.option("--deep", is_flag=True, help="Open all data files: storage by column, and files unlike their entries.")
@click.option(
    "--sample", type=click.IntRange(min=1), help="Read that many files, to see if they are in their sort order."
)
@click.option(
    "--queries",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="Mark what queries, SQL or a log, filter by.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all figures as one object, for other programs.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page with plots."
)
@click.option("--lines", type=click.IntRange(min=10), default=LINES, show_default=True, help="Print at most that many.")
@pass_context
def profile(
    context: Context,
    *,
    words: tuple[str, ...],
    catalog: str | None,
    warehouse: str | None,
    snapshot: int | None,
    deep: bool,
    sample: int | None,
    queries: Path | None,
    as_json: bool,
    html: Path | None,
    lines: int,
) -> int:
    """Describe a table from its metadata: sizes, deletes, partitions, manifests, overlaps, and what costs most.

    PLACE is the table's directory or one of its metadata.json files; or, with TABLE, a catalog: a warehouse directory,
    an SQL database, the address of a REST catalog or a name of .pyiceberg.yaml. With --catalog, PLACE is the table's
    name there. Nothing is changed.
    """
    table, place = open_table(words, catalog, warehouse)
    found = table.maintenance.profile(snapshot_id=snapshot, deep=deep, sample_files=sample or 0)
    filtered: dict[str, float] = {}
    left_out: list[str] = []
    if queries is not None:
        # local import: sqlglot takes time, which only queries are worth
        from icebench.bench.advise.columns import filtered_shares
        from icebench.bench.advise.queries import read_queries

        asked = read_queries(queries, table)
        filtered = filtered_shares(table, asked.queries)
        left_out = [str(each) for each in asked.not_understood]
    out = context.terminal.out
    for each in left_out:
        context.terminal.err.print(f"not understood, not counted: {each}", markup=False, soft_wrap=True)
    if html is not None:
        # matplotlib takes a second, which only a page is worth.
        from icebench.bench.report.html import render  # local import: matplotlib takes a second

        write_whole(html, render(profile_report(found, place, filtered, left_out)))
        (context.terminal.err if as_json else out).print(str(html), markup=False, soft_wrap=True)
    if as_json:
        values = {
            **found.to_dict(),
            "commands": [asdict(each) for each in fix_commands(found, place)],
            "filtered": filtered,
            "not_understood": left_out,
        }
        write_text(out, f"{json.dumps(values)}\n")
    elif html is None:
        for part in profile_lines(found, place, out, lines=lines, filtered=filtered):
            out.print(part, crop=False)
    return 0
