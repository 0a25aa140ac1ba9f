"""`icebench run`: measure an experiment, or a table of one's own, and say what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import click

from bench.cli.context import Context, pass_context
from bench.cli.progress import RunProgress
from bench.cli.report import print_report, write_report
from bench.engines.registry import ENGINES
from bench.errors import ConfigError
from bench.experiment import MEASUREMENTS, Experiment, Repetitions, load_experiment
from bench.layouts.registry import LAYOUTS
from bench.measure.experiments import run_experiment
from bench.measure.metadata_experiments import run_metadata_experiment
from bench.measure.reading_experiments import run_reading_experiment
from bench.measure.run import RunResult, Surroundings
from bench.measure.run_file import read_run
from bench.measure.tables import TableRequest, run_table
from bench.metadata_experiment import load_metadata_experiment
from bench.reading_experiment import load_reading_experiment
from bench.report.build import build_report

CACHE = Path("datasets/cache")
FEWEST, MOST = 1, 1000


@click.command("run")
@click.argument("experiment", required=False, metavar="[EXPERIMENT.toml]")
@click.option("--table", metavar="PATH", help="Measure this table instead: its directory or a metadata.json.")
@click.option("--filter", "filters", multiple=True, metavar="SQL", help="With --table: a filter to plan. Repeatable.")
@click.option("--relocate", multiple=True, metavar="OLD=NEW", help="With --table: where its files are now. Repeatable.")
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), help="Another scale factor of the workload.")
@click.option("--repetitions", type=click.IntRange(FEWEST, MOST), help="How often each timed case runs.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this layout, engine or measurement. Repeatable.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE.html", help="Where to write the report.")
@pass_context
def run(
    context: Context, *, experiment: str | None, table: str | None, filters: tuple[str, ...], relocate: tuple[str, ...],
    scale: float | None, repetitions: int | None, only: tuple[str, ...], output: Path | None,
) -> int:  # fmt: skip
    """Measure, print the comparison, and write the report; exit code 1 when engines fail or disagree.

    EXPERIMENT is a TOML file or the name of one that comes with the project ('icebench list' shows them).
    """
    asked = arguments(
        experiment,
        {"--table": table, "--filter": filters, "--relocate": relocate, "--scale": scale, "--repetitions": repetitions,
         "--only": only},
    )  # fmt: skip
    if table is None:
        if filters or relocate:
            raise click.UsageError("--filter and --relocate need --table")
        measure = _measure(experiment or "default", scale=scale, repetitions=repetitions, only=only)
        with RunProgress(context.terminal.err) as progress:
            result = measure(where=_surroundings(context, progress, asked))
    else:
        if experiment is not None or scale is not None:
            raise click.UsageError("--table measures a table as it is: no experiment, no --scale")
        request = table_request(table, filters, relocate, repetitions=repetitions, only=only)
        with RunProgress(context.terminal.err) as progress:
            measured = run_table(request, where=_surroundings(context, progress, asked))
        for choice in measured.chosen:
            context.terminal.err.print(f"filter chosen: {choice.name}: {choice.text}", markup=False, soft_wrap=True)
        result = measured.run
    return _conclude(context, result, output)


class _Measure(Protocol):
    """Runs an experiment."""

    def __call__(self, *, where: Surroundings) -> RunResult: ...


def _measure(name: str, *, scale: float | None, repetitions: int | None, only: Sequence[str]) -> _Measure:
    """What runs the experiment, of whatever kind it is, with what the command line says otherwise."""
    planning = load_metadata_experiment(name)
    if planning is not None:
        _refuse_scale(planning.name, scale)
        return partial(run_metadata_experiment, planning.restricted(only, repetitions))
    reading = load_reading_experiment(name)
    if reading is not None:
        _refuse_scale(reading.name, scale)
        return partial(run_reading_experiment, reading.restricted(only, repetitions))
    chosen = adjusted(load_experiment(name), scale=scale, repetitions=repetitions, only=only)
    return partial(run_experiment, chosen)


def _refuse_scale(name: str, scale: float | None) -> None:
    if scale is not None:
        raise click.UsageError(f"{name} has tables of fixed sizes: no --scale")


def adjusted(
    experiment: Experiment, *, scale: float | None, repetitions: int | None, only: Sequence[str]
) -> Experiment:
    """The experiment with what the command line says otherwise.

    Raises:
        ConfigError: `only` holds an unknown name, or leaves nothing to measure.
    """
    kinds = sort_names(only)
    chosen = experiment.restricted(
        layouts=kinds.get("layout"), engines=kinds.get("engine"), measurements=kinds.get("measurement")
    )
    if scale is not None:
        chosen = replace(chosen, workload=replace(chosen.workload, scale=scale))
    if repetitions is not None:
        often = {name: replace(own, repetitions=repetitions) for name, own in chosen.repetitions.items()}
        chosen = replace(chosen, repetitions=often)
    return chosen


def table_request(
    path: str, filters: Sequence[str], relocate: Sequence[str], *, repetitions: int | None, only: Sequence[str]
) -> TableRequest:
    """What to measure of a table, from the command line.

    Raises:
        ConfigError: `only` holds an unknown name or a layout, or `relocate` is not OLD=NEW.
    """
    kinds = sort_names(only)
    if "layout" in kinds:
        raise ConfigError(f"{kinds['layout'][0]!r} is a layout, and a table has its own", path="--only")
    request = TableRequest(path=path, filters=tuple(filters), relocate=dict(_pair(text) for text in relocate))
    if "engine" in kinds:
        request = replace(request, engines=tuple(kinds["engine"]))
    if "measurement" in kinds:
        request = replace(request, measurements=tuple(kinds["measurement"]))
    if repetitions is not None:
        often = Repetitions(repetitions=repetitions, warmups=request.repetitions.warmups)
        request = replace(request, repetitions=often)
    return request


def sort_names(only: Sequence[str]) -> Mapping[str, list[str]]:
    """The names by what they name; kinds without a name are absent.

    Raises:
        ConfigError: A name is nothing that is known.
    """
    known = {
        **dict.fromkeys(MEASUREMENTS, "measurement"),
        **dict.fromkeys(ENGINES, "engine"),
        **dict.fromkeys(LAYOUTS, "layout"),
    }
    kinds: dict[str, list[str]] = {}
    for name in only:
        if name not in known:
            raise ConfigError(f"unknown name {name!r}; known: {', '.join(known)}", path="--only")
        kinds.setdefault(known[name], []).append(name)
    return kinds


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise ConfigError(f"{text!r} is not OLD=NEW, two prefixes of locations", path="--relocate")
    return old, new


def arguments(experiment: str | None, options: Mapping[str, object]) -> tuple[str, ...]:
    """What was asked for, as it could be typed again; options that were not given are left out."""
    words = ["run", *([experiment] if experiment else [])]
    for name, value in options.items():
        for one in value if isinstance(value, tuple) else () if value is None else (value,):
            words += [name, f"{one:g}" if isinstance(one, float) else str(one)]
    return tuple(words)


def _surroundings(context: Context, progress: RunProgress, asked: tuple[str, ...]) -> Surroundings:
    # Tables hold absolute paths, and some engines take no others.
    return Surroundings(cache=CACHE.resolve(), results=context.places.runs, progress=progress, command=asked)


def _conclude(context: Context, result: RunResult, output: Path | None) -> int:
    """Print the comparison, write the report, and say where both are."""
    made = build_report(read_run(result.path), results_file=str(result.path))
    print_report(context, made)
    page = write_report(context, made, result.path, output)
    context.terminal.out.print(f"\nresults: {result.path}\nreport:  {page}", markup=False, soft_wrap=True)
    return 1 if result.failed else 0
