"""`icebench gate --tables`: what plans of one's own tables and layouts come to, compared with a committed baseline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import icebench
from icebench.bench.cli.run import CACHE
from icebench.bench.engines.access import TableAccess
from icebench.bench.errors import ConfigError
from icebench.bench.execution.spark_use import SparkUse
from icebench.bench.experiment import load_experiment
from icebench.bench.gate.cases.count_cases import NO_ROWS, environment
from icebench.bench.gate.cases.planned_work import GATED, planned_work
from icebench.bench.gate.decisions.baseline import Baseline, CaseResult
from icebench.bench.progress import silent
from icebench.bench.runs.preparation import Preparation
from icebench.bench.trials.planning import Planning
from icebench.bench.workloads.workload import TableWorkload

_ALL = "no-filter"


def baseline_of(definition: Path) -> Path:
    """Where the baseline of a definition is: beside it; raises ConfigError if there is no such definition."""
    if not definition.is_file():
        raise ConfigError("no such file; it is a definition, as 'icebench run' takes it", path=str(definition))
    return definition.parent / f"{definition.stem}.baseline.json"


def count_plans(definition: Path) -> Baseline:
    """The files, bytes and requests of a cold plan of each table or layout of a definition, under each of its filters.

    Args:
        definition: As `icebench run` takes it.

    Raises:
        ConfigError: No such table, or a table without named filters.
        BenchError: A table could not be made.
        EngineError: A table cannot be planned.
    """
    experiment = load_experiment(definition).adjusted(only=("planning",))
    found = [isinstance(workload, TableWorkload) for workload in experiment.workloads]
    if any(found) and not experiment.filters:
        raise ConfigError("name some: those that are chosen by a table's bounds change with it", path="filters")
    cases: dict[str, CaseResult] = {}
    access = TableAccess()
    cache = CACHE.resolve()
    with ExitStack() as resources:
        prepared = Preparation(
            experiment=experiment,
            cache=cache,
            spark=SparkUse(experiment.spark, cache / "iceberg_java"),
            progress=silent,
            engines={},
            resources=resources,
            access=access,
        )
        for planning in prepared.measurements():
            if isinstance(planning, Planning):
                # Workloads share the names of layouts and filters.
                prefix = "" if len(found) == 1 or all(found) else f"{planning.case.workload}/"
                for name, result in _counts(planning, access):
                    if cases.setdefault(f"{prefix}{name}", result) is not result:
                        raise ConfigError(f"two filters of a table are called {name!r}", path="filters")
    # What is generated depends on the libraries that write it; tables that are there do not.
    return Baseline(cases=cases, environment={} if all(found) else environment())


def _counts(planning: Planning, access: TableAccess) -> Iterator[tuple[str, CaseResult]]:
    for name, text in {_ALL: None, **planning.filters}.items():
        options = access(planning.location).options
        scan = icebench.load_table(planning.location, properties=options).scan(filter=text)
        counted = planned_work(scan).counters
        result = CaseResult(counters={counter: counted[counter] for counter in GATED}, checksum=NO_ROWS)
        yield f"{planning.case.layout}/{name}", result
