"""`icebench compare`: layouts of a run, or two runs, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.ignored_options import refuse_options
from icebench.bench.cli.places import write_whole
from icebench.bench.cli.report import find_run, formats, print_form
from icebench.bench.costs.costing import Costing
from icebench.bench.costs.object_store import PROFILES
from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError
from icebench.bench.execution.run_file import Run, read_run
from icebench.bench.report.console import compared
from icebench.bench.report.kept_runs import with_spread
from icebench.bench.report.layout_comparison import compare_layouts
from icebench.bench.report.run_comparison import PARTS, compare_runs, differences
from icebench.bench.report.runs_page import runs_report

LINES = 25


@click.command("compare")
@click.argument("names", nargs=-1, metavar="LAYOUT... | RUN RUN")
@click.option(
    "--run", "of", type=click.Path(path_type=Path), metavar="RUN", help="Layouts of this run, not the latest."
)
@click.option(
    "--force", multiple=True, type=click.Choice(PARTS), help="Runs: compare though they differ in this. Repeatable."
)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    help="Layouts: where the client stands to the object store; as in the run's definition by default.",
)
@click.option("--long", is_flag=True, help="All tables.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Runs: write a page that has both side by side.",
)
@formats
@pass_context
def compare(
    context: Context,
    *,
    names: tuple[str, ...],
    of: Path | None,
    force: tuple[str, ...],
    profile: str | None,
    long: bool,
    html: Path | None,
    form: str | None,
) -> None:
    """Compare layouts within a run, the latest unless --run says otherwise; or a second run with a first.

    All layouts of the run where none is named. Runs that are not comparable are refused, with what differs.
    """
    if form is not None:
        refuse_options("html", "long", because=f"goes without --{form}")
    if html is not None:
        refuse_options("long", because="goes without --html")
    runs = [_run_of(context, name) for name in names]
    if of is None and len(runs) == 2 and all(runs):
        refuse_options("profile", because="is for layouts")
        base, head = two_runs([run for run in runs if run is not None], force, context.places.all_runs())
        made = compare_runs(base, head)
        if html is not None:
            from icebench.bench.report.html import render  # local import: matplotlib takes a second

            write_whole(html, render(runs_report(base, head, made, names)))
            context.terminal.out.print(str(html), markup=False, soft_wrap=True)
            return
    elif any(runs):
        raise click.UsageError("either two runs, or names of layouts (of a run: --run)")
    else:
        refuse_options("force", "html", because="is for two runs")
        path = context.places.latest_run() if of is None else find_run(context, of)
        run = with_spread(read_run(path), context.places.all_runs())
        costing = Costing.parse(Definition(run.environment.get("definition") or {}))
        if profile is not None:
            costing = replace(costing, profile=PROFILES[profile])
        made = compare_layouts(run, names, costing)
    if form is not None:
        print_form(context, form, made)
        return
    out = context.terminal.out
    for part in compared(made, out, lines=None if long else LINES):
        out.print(part, crop=False)


def two_runs(paths: Sequence[Path], force: Sequence[str], kept: Sequence[Path]) -> tuple[Run, Run]:
    """Two runs to compare, the second with the first; `kept` are the runs that show what processes differ by.

    Raises:
        ConfigError: They are not comparable, in something that is not to be ignored.
    """
    base, head = (with_spread(read_run(path), kept) for path in paths)
    found = [each for each in differences(base, head) if each.part not in force]
    if found:
        needed = " ".join(f"--force {part}" for part in dict.fromkeys(each.part for each in found))
        raise ConfigError(f"not comparable: {'; '.join(map(str, found))}. To compare all the same: {needed}")
    return base, head


def _run_of(context: Context, name: str) -> Path | None:
    """The run of this name; None where there is none, as layouts have names too."""
    try:
        return find_run(context, Path(name))
    except ConfigError:
        return None
