"""`icebench list`: what there is to run, and what was run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import click
from rich.table import Table

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.engines.registry import ENGINES, EngineEntry
from icebench.bench.errors import BenchError
from icebench.bench.execution.measurement import MEASUREMENTS, MeasurementKind
from icebench.bench.execution.run_file import read_run
from icebench.bench.experiment import description_of, known_experiments
from icebench.bench.layouts.registry import known_layouts
from icebench.bench.workloads.definitions import WORKLOADS, WorkloadEntry

SHOWN_RUNS = 20


@click.command("list")
@pass_context
def listing(context: Context) -> None:
    """Show experiments, layouts, workloads, engines, measurements and runs."""
    out = context.terminal.out
    for title, rows in (
        ("Experiments", [(name, _description(path)) for name, path in known_experiments().items()]),
        ("Layouts", [(name, layout.description) for name, layout in known_layouts().items()]),
        ("Workloads", _described(WORKLOADS)),
        ("Engines", _described(ENGINES)),
        ("Measurements", _described(MEASUREMENTS)),
        ("Runs, the latest last", [(p.stem, _run(p)) for p in context.places.all_runs()[-SHOWN_RUNS:]]),
    ):
        out.print(title, style="bold")
        out.print(_grid(rows) if rows else "  none yet: 'icebench run' makes one")


def _described(known: Mapping[str, WorkloadEntry | EngineEntry | MeasurementKind]) -> list[tuple[str, str]]:
    """Names and descriptions; of a thing whose package is broken, why."""
    found = []
    for name in known:
        try:
            found.append((name, known[name].description))
        except BenchError as error:
            found.append((name, f"cannot be used: {error}"))
    return found


def _grid(rows: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(f"  {name}", text)
    return grid


def _description(path: Path) -> str:
    try:
        return description_of(path)
    except BenchError as error:
        return f"cannot be used: {error}"


def _run(path: Path) -> str:
    try:
        run = read_run(path)
    except BenchError as error:
        return f"damaged: {error}"
    state = "interrupted" if not run.complete else f"{len(run.failures)} failed" if run.failures else "ok"
    return f"{run.experiment}: {len(run.measured):,} cases, {state}"
