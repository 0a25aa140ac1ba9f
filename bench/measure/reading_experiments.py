"""Running a reading experiment: its tables, and what is scanned side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from bench.engines.engine import AnyEngine
from bench.engines.pyarrow_files import PyArrowFiles
from bench.measure.cache import DatasetCache
from bench.measure.large_row_groups import LargeSubject, measure_large
from bench.measure.metadata_planning import Patience
from bench.measure.reading import NAME, ReadingSubject, measure_reading
from bench.measure.reading_tables import ReadingTables
from bench.measure.run import RunPlan, RunResult, SparkUse, Surroundings, execute_with
from bench.measure.subject import Bench
from bench.reading_experiment import KIND, ReadingExperiment
from bench.workloads.reading_files import CELL_COLUMNS, DELETE_COLUMNS, INTEGER_COLUMNS, KEY

PHASE = "tables"
NONE = "no deletes"
DELETE_ENGINES = {
    "vectors": ("icebench", "icebench-spark", "pyiceberg", "iceberg-java", "duckdb"),
    "positions": ("icebench", "icebench-spark", "pyiceberg", "iceberg-java", "duckdb", "polars"),
    "equality": ("icebench", "icebench-spark", "iceberg-java"),
}
"""Who reads which kind of deletes: PyIceberg and Polars read no equality deletes, and DuckDB 1.5 takes minutes for two
million rows with a hundred delete files of them."""
_KINDS = {"vectors": "deletion vectors", "positions": "position deletes", "equality": "equality deletes"}


def run_reading_experiment(experiment: ReadingExperiment, *, where: Surroundings) -> RunResult:
    """Make the tables that are not there yet, scan them, and record.

    Returns:
        The run. Look at `RunResult.failed`: engines that deliver other rows are failures in it.

    Raises:
        ConfigError: No engine can be made.
        DatasetFailed: A table could not be built.
        EngineError: This project's engine could not write a table.
    """
    patience = Patience(often=experiment.repetitions, warm_seconds=0, case_seconds=experiment.case_seconds)
    plan = RunPlan(
        name=experiment.name,
        workload=KIND,
        scale=None,
        engines=experiment.engines,
        measurements=(NAME,),
        repetitions={NAME: experiment.repetitions},
        seed=experiment.seed,
    )
    return execute_with(
        plan,
        lambda: list(subjects_of(experiment, where)),
        lambda bench, subject: _measure(bench, subject, patience),
        SparkUse(experiment.spark, where),
        where,
        floor=cast("AnyEngine", PyArrowFiles()) if "large" in experiment.parts else None,
    )


def _measure(bench: Bench, subject: ReadingSubject | LargeSubject, patience: Patience) -> None:
    if isinstance(subject, LargeSubject):
        measure_large(bench, subject, patience.often)
    else:
        measure_reading(bench, subject, patience)


def subjects_of(experiment: ReadingExperiment, where: Surroundings) -> Iterator[ReadingSubject | LargeSubject]:
    """What is measured, with its tables made."""
    tables = ReadingTables(DatasetCache(where.cache))
    makers: dict[str, Callable[[ReadingExperiment, ReadingTables], Iterator[ReadingSubject | LargeSubject]]]
    makers = {"integers": _integers, "decimals": _decimals, "deletes": _deletes, "wide": _wide, "large": _large}
    for done, part in enumerate(experiment.parts):
        where.progress(PHASE, part, done, len(experiment.parts))
        yield from makers[part](experiment, tables)


def _integers(experiment: ReadingExperiment, tables: ReadingTables) -> Iterator[ReadingSubject]:
    rows, seed = experiment.cell_rows, experiment.seed
    integers, decimals = f"{INTEGER_COLUMNS} int64", f"{INTEGER_COLUMNS} decimal(7,2)"
    yield ReadingSubject(
        name="decimals against integers",
        scans={
            integers: tables.integers(rows, seed, decimals=False),
            decimals: tables.integers(rows, seed, decimals=True),
        },
        columns=[f"c{i + 1}" for i in range(INTEGER_COLUMNS)],
        engines=experiment.engines,
        base=integers,
        rows={integers: rows, decimals: rows},
    )


def _decimals(experiment: ReadingExperiment, tables: ReadingTables) -> Iterator[ReadingSubject]:
    rows = experiment.cell_rows
    for cell in experiment.cells:
        yield ReadingSubject(
            name="decimals",
            scans={cell.name: tables.cell(cell, rows, experiment.seed)},
            columns=[f"d{i + 1}" for i in range(CELL_COLUMNS)],
            engines=experiment.engines,
            rows={cell.name: rows},
        )


def _deletes(experiment: ReadingExperiment, tables: ReadingTables) -> Iterator[ReadingSubject]:
    made = experiment.deletes
    total = made.rows_in_file * made.files
    for kind in experiment.delete_kinds:
        for pattern in experiment.patterns:
            scans = {NONE: tables.without_deletes(made, 3 if kind == "vectors" else 2)}
            rows = {NONE: total}
            for fraction in experiment.equality_fractions if kind == "equality" else experiment.fractions:
                for files in experiment.delete_files if kind == "equality" else (1,):
                    case = f"{fraction:.1%}" + (f", {files} delete files" if kind == "equality" else "")
                    scans[case] = tables.deleted(
                        made, kind, pattern, fraction, files=files, columns=experiment.equality_columns
                    )
                    gone = round(total * fraction) if pattern == "random" else None
                    rows[case] = total - (round(made.rows_in_file * fraction) * made.files if gone is None else gone)
            yield ReadingSubject(
                name=f"{_KINDS[kind]}, {pattern}",
                scans=scans,
                columns=[KEY, *(f"d{i + 1}" for i in range(DELETE_COLUMNS))],
                engines=[name for name in DELETE_ENGINES[kind] if name in experiment.engines],
                base=NONE,
                rows=rows,
            )


def _wide(experiment: ReadingExperiment, tables: ReadingTables) -> Iterator[ReadingSubject]:
    wide, seed = experiment.wide, experiment.seed
    every = wide.columns // wide.selected
    chosen = [f"c{1 + i * every}" for i in range(wide.selected)]
    alone, among = f"{wide.selected} columns", f"{wide.selected} of {wide.columns:,} columns"
    yield ReadingSubject(
        name="wide tables",
        scans={
            alone: tables.wide(wide.rows, wide.columns, seed, chosen=chosen),
            among: tables.wide(wide.rows, wide.columns, seed),
        },
        columns=chosen,
        engines=experiment.engines,
        base=alone,
        same_rows=True,
        rows={alone: wide.rows, among: wide.rows},
    )


def _large(experiment: ReadingExperiment, tables: ReadingTables) -> Iterator[LargeSubject]:
    rows = experiment.large_rows
    yield LargeSubject(
        name="large row groups",
        case=f"{INTEGER_COLUMNS} decimals, as Iceberg Java writes them",
        location=tables.by_iceberg_java(rows, experiment.seed),
        rows=rows,
        engines=experiment.engines,
    )
