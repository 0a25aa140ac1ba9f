"""The entry point of `icebench`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from bench.cli.context import Context
from bench.cli.doctor import doctor
from bench.cli.failures import run_guarded
from bench.cli.places import Places


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="icebench", prog_name="icebench")
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    envvar="ICEBENCH_RESULTS",
    show_default=True,
    help="The directory of runs, reports and baselines.",
)
@click.option("--debug", is_flag=True, envvar="ICEBENCH_DEBUG", help="Show tracebacks of all errors.")
@click.pass_context
def app(context: click.Context, results: Path, debug: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Measure what a layout, a configuration or an engine costs on an Apache Iceberg table."""
    context.obj = Context(places=Places(results), debug=debug)


app.add_command(doctor)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run_guarded(lambda: _invoke(given), debug=lambda: "--debug" in given))


def _invoke(arguments: list[str]) -> int:
    # Without standalone mode click returns what the command returns and raises what it raises.
    code = app.main(arguments, prog_name="icebench", standalone_mode=False)
    return int(code or 0)


if __name__ == "__main__":
    main()
