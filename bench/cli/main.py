"""The entry point of `icebench`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from icebench.bench.cli.completion import complete_place
from icebench.bench.cli.context import Context
from icebench.bench.cli.failures import CLOSED_PIPE, run_guarded
from icebench.bench.cli.places import Places


class Entry(NamedTuple):
    """Where a command is, and what it does in a line."""

    module: str
    name: str
    help: str


_DEBUG = "ICEBENCH_DEBUG"

COMMANDS = {
    "run": Entry("icebench.bench.cli.run", "run", "Measure an experiment or a table; compare layouts and engines."),
    "report": Entry("icebench.bench.cli.report", "report", "Write the HTML report of a run."),
    "compare": Entry("icebench.bench.cli.compare", "compare", "Compare layouts of a run, or two runs."),
    "study": Entry("icebench.bench.cli.study", "study", "Measure what layouts and configurations cost; write pages."),
    "case": Entry("icebench.bench.cli.case", "case", "Print or run a case of a run in its engine's own words."),
    "list": Entry(
        "icebench.bench.cli.listing", "listing", "Show experiments, layouts, engines, measurements and runs."
    ),
    "table": Entry(
        "icebench.bench.cli.table", "table", "Print a table's metadata tables: snapshots, files, manifests, ..."
    ),
    "profile": Entry(
        "icebench.bench.cli.profile", "profile", "Describe a table: files, deletes, overlaps, and what costs most."
    ),
    "sql": Entry("icebench.bench.cli.sql", "sql", "Answer a query over tables, with the work of their plans."),
    "advise": Entry(
        "icebench.bench.cli.advise",
        "advise_command",
        "Recommend a layout for a table's queries.",
    ),
    "maintain": Entry(
        "icebench.bench.cli.maintain", "maintain", "Maintain a table: compact it, expire, remove orphans."
    ),
    "dataset": Entry(
        "icebench.bench.cli.dataset", "dataset", "Make a TPC-DS table with dsdgen and Iceberg Java, to measure."
    ),
    "gate": Entry("icebench.bench.cli.gate", "gate", "Compare work with the baseline, or a revision with another."),
    "bisect": Entry("icebench.bench.cli.bisect", "bisect", "Find the commit that made something slower."),
    "history": Entry(
        "icebench.bench.cli.history", "history", "Show how work and time changed over revisions; record them."
    ),
    "calibrate": Entry(
        "icebench.bench.cli.calibrate", "calibrate", "Measure how often the gate is wrong on this machine."
    ),
    "doctor": Entry(
        "icebench.bench.cli.doctor", "doctor", "Examine this machine: Java, Spark, packages, memory, disk, CPU."
    ),
}


@contextmanager
def _ended_by_closed_pipe() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # What is left in the buffer would fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(CLOSED_PIPE) from None


class Commands(click.Group):
    """The commands, each imported when it is called: Spark, Numba and matplotlib take seconds that --help need not."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else getattr(import_module(entry.module), entry.name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; or else what shows a table, which gets all words, and fails with the error for an unknown
        command if the first of them is none of a table."""
        with suppress(click.exceptions.NoSuchCommand):
            name, command, rest = super().resolve_command(ctx, args)
            if command is not None:  # it is None, and no error, while a shell completes
                return name, command, rest
        # local import: as every command
        from icebench.bench.cli.overview import UNKNOWN_COMMAND, overview

        ctx.meta[UNKNOWN_COMMAND] = click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return "", overview, args

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - as click has it
    ) -> click.Context:
        """Read the options, of which --help and --version print; ends as `invoke` does."""
        with _ended_by_closed_pipe():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - what the command returns
        """Run the command; if the reader of its output is gone, end as a program that ``SIGPIPE`` ends."""
        with _ended_by_closed_pipe():
            code = super().invoke(ctx)
            sys.stdout.flush()
        return code

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The options, or else the commands, of which none is imported, and places and catalogs of a table to show."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        commands = (CompletionItem(name, help=entry.help) for name, entry in COMMANDS.items())
        return complete_place(incomplete, [each for each in commands if each.value.startswith(incomplete)])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(
    cls=Commands,
    subcommand_metavar="COMMAND [ARGS]... | TABLE",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="icebench", prog_name="icebench")
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    envvar="ICEBENCH_RESULTS",
    show_default=True,
    help="The directory of runs, reports and baselines.",
)
@click.option("--debug", is_flag=True, envvar=_DEBUG, expose_value=False, help="Show tracebacks of all errors.")
@click.pass_context
def app(context: click.Context, results: Path) -> None:
    """Measure what a layout, a configuration or an engine costs on an Apache Iceberg table.

    A TABLE alone (its directory, a metadata file, or CATALOG NAMESPACE.TABLE) is shown on one screen.
    """
    context.obj = Context(places=Places(results))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # what its encoding lacks is escaped, as on standard error
        sys.stdout.reconfigure(errors="backslashreplace")
    debug = "--debug" in given or os.environ.get(_DEBUG) or "no"
    sys.exit(run_guarded(lambda: _invoke(given), debug=lambda: click.BOOL(debug)))


def _invoke(arguments: list[str]) -> int:
    # Without standalone mode click returns what the command returns and raises what it raises.
    code = app.main(arguments, prog_name="icebench", standalone_mode=False)
    return int(code or 0)


if __name__ == "__main__":
    main()
