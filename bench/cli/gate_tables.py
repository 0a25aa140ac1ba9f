"""`icebench gate --tables`: what plans of one's own tables and layouts come to, compared with a committed baseline.

Plans are also checked against the rows that match: all of them before a baseline moves, and otherwise those with fewer
files than the baseline has, which lost rows would look like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import icebench
from icebench.bench.cli.baselines import read_baseline
from icebench.bench.cli.run import CACHE
from icebench.bench.engines.access import TableAccess
from icebench.bench.engines.engine import Plan
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.registry import EngineContext
from icebench.bench.errors import ConfigError, Disagreement, WrongAnswer
from icebench.bench.execution.spark_use import SparkUse
from icebench.bench.experiment import load_experiment
from icebench.bench.gate.cases.count_cases import environment
from icebench.bench.gate.cases.planned_work import FILES, GATED, PlannedWork, planned_checksum, planned_work
from icebench.bench.gate.decisions.baseline import Baseline, CaseResult
from icebench.bench.progress import silent
from icebench.bench.runs.preparation import Preparation
from icebench.bench.trials.planning import Planning
from icebench.bench.workloads.workload import TableWorkload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALL = "no-filter"


def baseline_of(definition: Path) -> Path:
    """Where the baseline of a definition is: beside it; raises ConfigError if there is no such definition."""
    if not definition.is_file():
        raise ConfigError("no such file; it is a definition, as 'icebench run' takes it", path=str(definition))
    return definition.parent / f"{definition.stem}.baseline.json"


def count_now(definition: Path, note: Callable[[str], None]) -> Baseline:
    """What is compared with the baseline of a definition; plans of fewer files than there are checked against rows.

    Args:
        definition: As `icebench run` takes it.
        note: Takes a line for each plan that cannot be checked.

    Raises:
        ConfigError: As `count_plans`, or the baseline cannot be decoded.
        BenchError: As `count_plans`.
        EngineError: As `count_plans`.
        WrongAnswer: As `count_plans`.
    """
    checks = RowChecks(before=read_baseline(baseline_of(definition)))
    now = count_plans(definition, checks)
    for case, reason in checks.unknown.items():
        note(f"{case}: plans fewer files, not checked against rows: {reason}")
    return now


def count_to_accept(definition: Path, note: Callable[[str], None]) -> list[Baseline]:
    """Two counts, of which the first has all plans checked against rows; arguments and errors as `count_now`."""
    checks = RowChecks(before=None)
    runs = [count_plans(definition, checks), count_plans(definition, RowChecks(before=Baseline()))]
    for case, reason in checks.unknown.items():
        note(f"{case}: not checked against rows: {reason}")
    return runs


@dataclass(kw_only=True)
class RowChecks:
    """Which plans are checked against the rows that match, which costs reading the filters' columns of whole tables,
    and what came of it.

    Args:
        before: The baseline, to check the cases that plan fewer files than there; None to check all.
        unknown: Why it is not known whether a plan lacks rows, by case.
        faults: What is wrong with a plan, by case.
    """

    before: Baseline | None
    unknown: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def check(self, case: str, planning: Planning, filter: str | None, planned: PlannedWork) -> None:
        """Check a plan; without a filter, it must have all files, which is always checked.

        Args:
            case: Its name in the baseline.
            planning: Of the table.
            filter: The name of the filter.
            planned: The plan under it.
        """
        if filter is not None and not self._is_doubtful(case, planned.files):
            return
        if filter is not None and (reason := planning.truth.doubt(filter)) is not None:
            self.unknown[case] = reason
            return
        files = planned.plan.files.column("file_path")
        try:
            planning.truth.check(Plan(files.to_pylist, lambda: planned.counters), _icebench(), filter)
        except Disagreement as error:
            self.faults[case] = str(error)

    def _is_doubtful(self, case: str, files: int) -> bool:
        if self.before is None:
            return True
        known = self.before.cases.get(case)
        return known is not None and files < known.counters.get(FILES, 0)


@cache
def _icebench() -> Icebench:
    def no_spark() -> SparkSession:
        raise AssertionError("plans need no Spark")

    return Icebench(EngineContext(spark=no_spark))


def count_plans(definition: Path, checks: RowChecks) -> Baseline:
    """The files, bytes and requests of a cold plan of each table or layout of a definition, under each of its filters.

    Args:
        definition: As `icebench run` takes it.
        checks: Checks plans against rows, and has what is not known of them.

    Raises:
        ConfigError: No such table, or a table without named filters.
        BenchError: A table could not be made.
        EngineError: A table cannot be planned.
        WrongAnswer: Plans lack files with matching rows; a line for each of them.
    """
    experiment = load_experiment(definition).adjusted(only=("planning",))
    found = [isinstance(workload, TableWorkload) for workload in experiment.workloads]
    if any(found) and not experiment.filters:
        raise ConfigError("name some: those that are chosen by a table's bounds change with it", path="filters")
    cases: dict[str, CaseResult] = {}
    access = TableAccess()
    folder = CACHE.resolve()
    with ExitStack() as resources:
        prepared = Preparation(
            experiment=experiment,
            cache=folder,
            spark=SparkUse(experiment.spark, folder / "iceberg_java"),
            progress=silent,
            engines={},
            resources=resources,
            access=access,
        )
        for planning in prepared.measurements():
            if isinstance(planning, Planning):
                # Workloads share the names of layouts and filters.
                prefix = "" if len(found) == 1 or all(found) else f"{planning.case.workload}/"
                for filter, planned in _plans(planning, access):
                    name = f"{prefix}{planning.case.layout}/{filter or _ALL}"
                    if name in cases:
                        raise ConfigError(f"two filters of a table are called {name!r}", path="filters")
                    cases[name] = _result(planned)
                    checks.check(name, planning, filter, planned)
    if checks.faults:
        raise WrongAnswer("\n".join(f"{name}: {fault}" for name, fault in checks.faults.items()))
    # What is generated depends on the libraries that write it; tables that are there do not.
    return Baseline(cases=cases, environment={} if all(found) else environment())


def _plans(planning: Planning, access: TableAccess) -> Iterator[tuple[str | None, PlannedWork]]:
    """The plan without a filter, and that of each."""
    options = access(planning.location).options
    filters: list[tuple[str | None, str | None]] = [(None, None), *planning.filters.items()]
    for name, text in filters:
        yield name, planned_work(icebench.load_table(planning.location, properties=options).scan(filter=text))


def _result(planned: PlannedWork) -> CaseResult:
    snapshot = planned.plan.snapshot
    return CaseResult(
        counters={counter: planned.counters[counter] for counter in GATED},
        checksum=planned_checksum(planned.plan),
        snapshot="none" if snapshot is None else str(snapshot.snapshot_id),
    )
