"""`icebench report`: a run as an HTML page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.ignored_options import refuse_options
from icebench.bench.cli.places import write_whole
from icebench.bench.cli.terminal import write_text
from icebench.bench.errors import ConfigError
from icebench.bench.execution.run_file import Run, read_run
from icebench.bench.report.build import build_report
from icebench.bench.report.console import renderables, verdict
from icebench.bench.report.exports import comparison_of, exported
from icebench.bench.report.html import picture, render
from icebench.bench.report.kept_runs import with_spread
from icebench.bench.report.model import Comparison, Report


def formats(command: Callable[..., None]) -> Callable[..., None]:
    """The options that print the figures in another form, and nothing else."""
    for name, what in (
        ("markdown", "Print Markdown."),
        ("csv", "Print the figures as CSV."),
        ("json", "Print them as JSON."),
    ):
        command = click.option(f"--{name}", "form", flag_value=name, default=None, help=what)(command)
    return command


@click.command("report")
@click.argument("run", required=False, metavar="[RUN.jsonl]", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="FILE.html", type=click.Path(path_type=Path), help="Where to write the page.")
@click.option(
    "--charts", metavar="DIR", type=click.Path(path_type=Path, file_okay=False), help="Write each chart as SVG."
)
@click.option("--print", "printing", is_flag=True, help="Print the tables and findings too.")
@formats
@pass_context
def report(
    context: Context,
    *,
    run: Path | None,
    output: Path | None,
    charts: Path | None,
    printing: bool,
    form: str | None,
) -> None:
    """Write the report of a run, the latest unless a run file or a run id is given."""
    if form is not None:
        refuse_options("printing", because=f"goes without --{form}")
    path = context.places.latest_run() if run is None else find_run(context, run)
    found = with_spread(read_run(path), context.places.all_runs())
    made = build_report(found, results_file=str(path))
    if form is not None:
        print_form(context, form, comparison_of(made, found.records))
        if output is not None:
            write_report(context, made, path, output)
        if charts is not None:
            write_charts(made, charts)
        return
    if printing:
        print_report(context, made)
    written = [write_report(context, made, path, output)]
    if charts is not None:
        written += write_charts(made, charts)
    for each in written:
        context.terminal.out.print(str(each), markup=False, soft_wrap=True)


def find_run(context: Context, run: Path) -> Path:
    """The run file that the user means: a path, or the id of a run.

    Raises:
        ConfigError: There is none.
    """
    if run.is_file():
        return run
    named = context.places.runs / f"{run.name.removesuffix('.jsonl')}.jsonl"
    if run.parent == Path() and named.is_file():
        return named
    raise ConfigError("no such run; 'icebench list' shows the runs there are", path=str(run))


def write_report(context: Context, made: Report, run: Path, output: Path | None = None) -> Path:
    """Write the page, whole or not at all; give where it is."""
    target = output or context.places.report_of(run)
    if target.is_dir():
        raise ConfigError("is a directory; give the name of a file", path=str(target))
    write_whole(target, render(made))
    return target


def write_charts(made: Report, directory: Path) -> list[Path]:
    """Write every chart as an SVG file named by its section; give where they are."""
    written = []
    for section in made.sections:
        for number, chart in enumerate(section.charts, 1):
            written.append(directory / f"{section.anchor}-{number}.svg")
            write_whole(written[-1], picture(chart))
    return written


def print_report(context: Context, made: Report) -> None:
    """The tables and findings on the terminal."""
    for part in renderables(made):
        context.terminal.out.print(part, crop=False)


def print_verdict(context: Context, made: Report, *, lines: int) -> None:
    """The answer on the terminal, in a limited number of lines."""
    for part in verdict(made, context.terminal.out, lines=lines):
        context.terminal.out.print(part, crop=False)


def print_form(context: Context, form: str, made: Comparison) -> None:
    """The figures on standard output, as they are."""
    write_text(context.terminal.out, exported(made, form))


def outcome(run: Run) -> int:
    """The exit code of a run: 1 when anything in it failed."""
    return 1 if run.failures or not run.complete else 0
