"""One run: engines made, tables measured one after the other, every finding appended to the run's file as it is made.

What cannot be measured is recorded as skipped, what goes wrong as a failure, and a run with a failure has failed; only
what keeps the whole run from starting is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TypeVar

from pyspark.sql import SparkSession

from bench.engines.engine import AnyEngine, EngineMissing
from bench.engines.registry import EngineContext, make_engine
from bench.errors import ConfigError
from bench.experiment import Repetitions, SparkDefinition
from bench.measure.environment import fingerprint
from bench.measure.interleave import ClockExecutor, Executor, out_of_collection
from bench.measure.measurements import measure
from bench.measure.progress import Progress, silent
from bench.measure.record import Failure, Record, Skipped
from bench.measure.recorder import CaseId, Recorder, RunContext
from bench.measure.run_file import RunWriter
from bench.measure.spark_use import spark_settings
from bench.measure.subject import Bench, Subject
from bench.spark_session import spark_session

S = TypeVar("S")

CHECKOUT = Path(__file__).resolve().parents[2]
"""The directory whose git revision a run records."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run found, and the file that holds it."""

    run_id: str
    path: Path
    records: tuple[Record, ...]
    skipped: tuple[Skipped, ...]
    failures: tuple[Failure, ...]

    @property
    def failed(self) -> bool:
        """Whether anything went wrong: a failed run's figures do not count."""
        return bool(self.failures)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a run takes from where it runs.

    Args:
        cache: Directory of generated tables.
        results: Directory of run files.
        progress: Told every step.
        session: Gives the Spark session; None starts one by the definition.
        executor: Runs and times.
        now: The wall clock, with a time zone.
        command: What was asked for, as arguments of the command line; kept in the run's file, to ask for it again.
    """

    cache: Path
    results: Path
    progress: Progress = silent
    session: Callable[[], SparkSession] | None = None
    executor: Executor = field(default_factory=ClockExecutor)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    command: tuple[str, ...] = ()


class SparkUse:
    """The session of a run, started by the first call, and remembered."""

    def __init__(self, definition: SparkDefinition, surroundings: Surroundings) -> None:
        self._definition = definition
        self._surroundings = surroundings
        self._started: SparkSession | None = None

    def __call__(self) -> SparkSession:
        """The session."""
        if self._started is None:
            given = self._surroundings.session
            settings = spark_settings(self._definition, self._surroundings.cache / "iceberg_java")
            self._started = spark_session(settings) if given is None else given()
        return self._started

    def facts(self) -> dict[str, str] | None:
        """What of the session bears on figures; None when none was started."""
        if self._started is None:
            return None
        names = ("spark.master", "spark.driver.memory", "spark.sql.shuffle.partitions")
        values = {name: self._started.conf.get(name, None) for name in names}
        return {"version": self._started.version, **{name: value for name, value in values.items() if value}}


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What a run measures.

    Args:
        name: Of the experiment.
        workload: In words.
        scale: Of the workload; None where nothing was generated.
        engines: Names out of the registry.
        measurements: Names out of `MEASUREMENTS`.
        repetitions: How often each timed measurement runs.
        seed: Orders the rounds.
    """

    name: str
    workload: str
    scale: float | None
    engines: Sequence[str]
    measurements: Collection[str]
    repetitions: Mapping[str, Repetitions]
    seed: int


def execute(
    plan: RunPlan, subjects: Callable[[], Sequence[Subject]], spark: SparkUse, where: Surroundings
) -> RunResult:
    """Make the engines, prepare the tables, and measure; see `execute_with`."""
    return execute_with(
        plan,
        subjects,
        lambda bench, subject: measure(bench, subject, plan.measurements, plan.repetitions),
        spark,
        where,
    )


def execute_with(
    plan: RunPlan,
    subjects: Callable[[], Sequence[S]],
    measuring: Callable[[Bench, S], None],
    spark: SparkUse,
    where: Surroundings,
    *,
    floor: AnyEngine | None = None,
) -> RunResult:
    """Make the engines, prepare the tables, and measure each.

    Args:
        plan: What to measure.
        subjects: Prepares the tables; called once, before the run's file is made, so that a run that never came to
            measure leaves none.
        spark: The run's session.
        where: Surroundings.
        measuring: Measures one of them.
        floor: Measured beside the engines, though it is none.

    Raises:
        ConfigError: None of the engines can be made.
        BenchError: Tables could not be prepared.
    """
    engines, missing = _make_engines(plan.engines, EngineContext(spark), where.progress)
    if floor is not None:
        engines[floor.name] = floor
    tables = subjects()
    versions = {name: engine.version for name, engine in engines.items()}
    environment = fingerprint(versions, spark=spark.facts(), checkout=CHECKOUT)
    run_id, path = _new_file(plan.name, where)
    # Not part of the environment's id: the same figures may be asked for in many ways.
    described = {**environment, "command": list(where.command)} if where.command else environment
    with RunWriter(path, run_id=run_id, environment=described) as writer:
        context = RunContext(
            run_id=run_id,
            experiment=plan.name,
            workload=plan.workload,
            scale=plan.scale,
            environment=environment["id"],
        )
        recorder = Recorder(writer, context, versions=versions, now=where.now)
        for name, reason in missing.items():
            recorder.skip(CaseId(layout="*", measurement="*", engine=name), reason)
        bench = Bench(
            engines=engines,
            recorder=recorder,
            executor=where.executor,
            random=Random(plan.seed),
            progress=where.progress,
        )
        with out_of_collection():
            for subject in tables:
                measuring(bench, subject)
        writer.close(failed=bool(recorder.failures))
    return RunResult(
        run_id=run_id,
        path=path,
        records=tuple(recorder.records),
        skipped=tuple(recorder.skipped),
        failures=tuple(recorder.failures),
    )


def _make_engines(
    names: Sequence[str], context: EngineContext, progress: Progress
) -> tuple[dict[str, AnyEngine], dict[str, str]]:
    """Engine name -> engine, and name -> reason for those that are missing here."""
    engines: dict[str, AnyEngine] = {}
    missing: dict[str, str] = {}
    for done, name in enumerate(names):
        progress("engines", name, done, len(names))
        try:
            engines[name] = make_engine(name, context)
        except EngineMissing as error:
            missing[name] = str(error)
    if not engines:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise ConfigError(f"none of the engines can run here ({reasons})", path="engines")
    return engines, missing


def _new_file(name: str, where: Surroundings) -> tuple[str, Path]:
    """A run id that starts with the time and is not taken, and its file."""
    stem = f"{where.now().astimezone(UTC):%Y%m%dT%H%M%SZ}-{name}"
    for ordinal in range(1, 1000):
        run_id = stem if ordinal == 1 else f"{stem}-{ordinal}"
        path = where.results / f"{run_id}.jsonl"
        if not path.exists():
            return run_id, path
    raise ConfigError("has too many runs of one second", path=str(where.results))
