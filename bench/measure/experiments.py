"""Running an experiment: generated tables in every layout, and all measurements on each."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from bench.errors import ConfigError
from bench.experiment import Experiment
from bench.layouts.registry import LAYOUTS
from bench.measure.brute.metadata import TableJson, load_table_json
from bench.measure.brute.truth import filter_columns
from bench.measure.cache import DatasetCache
from bench.measure.datasets import Dataset, DatasetRequest, find_or_build
from bench.measure.run import RunPlan, RunResult, SparkUse, Surroundings, execute
from bench.measure.subject import Subject


def surroundings_of(workdir: Path) -> Surroundings:
    """The usual places below a directory: ``datasets/cache`` and ``results/runs``."""
    return Surroundings(cache=workdir / "datasets" / "cache", results=workdir / "results" / "runs")


def run_experiment(experiment: Experiment, *, where: Surroundings, only: Collection[str] | None = None) -> RunResult:
    """Generate what is not generated yet, measure, and record.

    Args:
        experiment: The definition.
        where: Directories, progress, session, clocks.
        only: Names of measurements; None makes all of the experiment's.

    Returns:
        The run. Look at `RunResult.failed`: engines that disagree, or that lose rows, are failures in it.

    Raises:
        ConfigError: A filter or column list names what the table does not have, or no engine can be made.
        DatasetFailed: A table could not be built.
        EngineError: This project's engine could not write a table.
        JavaMissing: Spark is needed, and there is no Java.
    """
    chosen = experiment if only is None else experiment.restricted(measurements=sorted(only))
    spark = SparkUse(chosen.spark, where)

    def subjects() -> list[Subject]:
        request = DatasetRequest(
            workload=chosen.workload,
            table=chosen.table,
            layouts=[LAYOUTS[name] for name in chosen.layouts],
            deletes=chosen.deletes if "deletes" in chosen.measurements else None,
        )
        datasets = find_or_build(request, DatasetCache(where.cache), spark=spark, progress=where.progress)
        return [_subject(chosen, dataset) for dataset in datasets]

    plan = RunPlan(
        name=chosen.name,
        workload=chosen.workload.kind,
        scale=chosen.workload.scale,
        engines=chosen.engines,
        measurements=chosen.measurements,
        repetitions=chosen.repetitions,
        seed=chosen.seed,
    )
    return execute(plan, subjects, spark=spark, where=where)


def _subject(experiment: Experiment, dataset: Dataset) -> Subject:
    table = load_table_json(dataset.metadata_location)
    for name, text in experiment.filters.items():
        try:
            filter_columns(text, table)
        except ConfigError as error:
            raise ConfigError(str(error), path=f"filters.{name}") from error
    decimals = decimal_columns(table)
    return Subject(
        layout=dataset.layout,
        metadata_location=dataset.metadata_location,
        filters=experiment.filters,
        decimal_columns=_known(experiment.columns, table, "decimals.columns") or decimals,
        delete_columns=_known(experiment.deletes.columns, table, "deletes.columns") or decimals,
        without_deletes=dataset.metadata_location,
        with_deletes=dataset.with_deletes,
        deleted_rows=dataset.deleted_rows,
    )


def decimal_columns(table: TableJson) -> tuple[str, ...]:
    """The table's decimal columns, in order."""
    return tuple(column.name for column in table.columns if column.type.startswith("decimal"))


def _known(columns: Collection[str], table: TableJson, path: str) -> tuple[str, ...]:
    known = {column.name for column in table.columns}
    for index, name in enumerate(columns):
        if name not in known:
            raise ConfigError(f"the table has no column {name!r}", path=f"{path}[{index}]")
    return tuple(columns)
