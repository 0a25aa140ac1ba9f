"""`icebench dataset`: tables to measure that others made."""

from __future__ import annotations

from pathlib import Path

import click

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.progress import RunProgress
from icebench.bench.spark_session import SparkSettings, spark_session
from icebench.bench.workloads.dsdgen import DELETE, GENERATE, WRITE, write_store_sales

START = "starting Spark"
STEPS = (START, GENERATE, WRITE, DELETE)


@click.command("dataset")
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True)
@click.option("--seed", type=int, default=42, show_default=True, help="Chooses the dates whose sales are deleted.")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@pass_context
def dataset(context: Context, *, scale: float, seed: int, directory: Path) -> int:
    """Make TPC-DS store_sales with dsdgen, written and partly deleted by Iceberg Java, below DIRECTORY.

    The table is what 'icebench run --table' is for: one that this project's engine had no part in.
    """
    settings = SparkSettings.from_environment(iceberg_warehouse=str(directory.resolve()))
    with RunProgress(context.terminal.err) as progress:

        def show(step: str) -> None:
            progress("dataset", step, STEPS.index(step), len(STEPS))

        show(START)
        made = write_store_sales(
            spark_session(settings),
            directory.resolve(),
            catalog=settings.iceberg_catalog,
            scale=scale,
            seed=seed,
            progress=show,
        )
    context.terminal.out.print(
        f"{made.path}: {made.rows:,} rows, {made.deleted_rows:,} deleted by position-delete files", soft_wrap=True
    )
    context.terminal.out.print(f"icebench run --table {made.path}", markup=False, soft_wrap=True)
    return 0
