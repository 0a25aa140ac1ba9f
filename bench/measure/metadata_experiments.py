"""Running an experiment on tables that are metadata alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from bench.engines.iceberg_java import IcebergJava
from bench.engines.inflate import Inflate
from bench.errors import BenchError
from bench.measure.cache import DatasetCache
from bench.measure.commits import NAME as COMMITTING
from bench.measure.commits import CommitSubject, measure_commits
from bench.measure.metadata_planning import NAME, MetadataSubject, Patience, measure_metadata
from bench.measure.metadata_tables import find_or_build, rewritten_by_java
from bench.measure.recorder import CaseId
from bench.measure.run import RunPlan, RunResult, SparkUse, Surroundings, execute_with
from bench.measure.subject import Bench
from bench.metadata_experiment import COMMITS, KIND, MetadataExperiment, MetadataTable

JAVA = "iceberg-java"
PHASE = "tables"


@dataclass(frozen=True)
class _Built:
    """A table as this project's engine wrote it."""

    table: MetadataTable
    location: str


def run_metadata_experiment(experiment: MetadataExperiment, *, where: Surroundings) -> RunResult:
    """Make the tables that are not there yet, measure planning, or committing of their files, and record.

    Returns:
        The run. Look at `RunResult.failed`: a plan that lacks files is a failure in it.

    Raises:
        ConfigError: No engine can be made.
        DatasetFailed: A table could not be built.
        EngineError: This project's engine could not write a table.
    """
    spark = SparkUse(experiment.spark, where)
    cache = DatasetCache(where.cache)
    patience = Patience(
        often=experiment.repetitions, warm_seconds=experiment.warm_seconds, case_seconds=experiment.case_seconds
    )

    def built() -> list[_Built]:
        return [_Built(table, _location(table, cache, where)) for table in experiment.tables]

    def measuring(bench: Bench, found: _Built) -> None:
        if experiment.kind == COMMITS:
            measure_commits(bench, _commit_subject(found, where), patience)
            return
        for subject in _subjects(bench, found, cache):
            measure_metadata(bench, subject, patience)

    name, floor = (NAME, Inflate()) if experiment.kind == KIND else (COMMITTING, None)
    plan = RunPlan(
        name=experiment.name,
        workload=experiment.kind,
        scale=None,
        engines=experiment.engines,
        measurements=(name,),
        repetitions={name: experiment.repetitions},
        seed=experiment.seed,
    )
    return execute_with(plan, built, measuring, spark, where, floor=floor)


def _location(table: MetadataTable, cache: DatasetCache, where: Surroundings) -> str:
    def told(done: int) -> None:
        where.progress(PHASE, f"{table.name}: files", done, table.files.files)

    return find_or_build(table.files, cache, told=told)


def _commit_subject(found: _Built, where: Surroundings) -> CommitSubject:
    table = found.table
    return CommitSubject(
        name=table.name,
        metadata_location=found.location,
        files=table.files,
        engines=table.engines,
        workspace=where.cache,
    )


def _subjects(bench: Bench, found: _Built, cache: DatasetCache) -> Iterator[MetadataSubject]:
    """The table in the manifests of each of its writers."""
    table = found.table
    for writer in table.writers:
        name, location = table.name, found.location
        if writer == JAVA:
            name = f"{table.name}, written by {JAVA}"
            everything = CaseId(layout=name, measurement=NAME)
            if JAVA not in bench.engines:
                bench.recorder.skip(everything, f"{JAVA}, which would write the table, is missing")
                continue
            bench.progress(PHASE, f"{name}: manifests", 0, 1)
            try:
                location = rewritten_by_java(location, cast("IcebergJava", bench.engines[JAVA]), cache)
            except BenchError as error:
                bench.recorder.fail(everything, error)
                continue
        yield MetadataSubject(
            name=name,
            metadata_location=location,
            files=table.files,
            engines=(*table.engines, Inflate.name),
            fresh=table.fresh and writer != JAVA,
        )
