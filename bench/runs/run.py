"""One run: engines made, tables found or made, every case checked, then timed in rounds, and every finding appended to
the run's file as it is made.

What cannot be measured is recorded as skipped, what goes wrong as a failure, and a run with a failure has failed; only
what keeps the whole run from starting is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import product
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from pyspark.sql import SparkSession

from icebench.bench.engines.access import TableAccess, scheme_of
from icebench.bench.engines.engine import AnyEngine, EngineMissing
from icebench.bench.engines.registry import ENGINES, EngineContext, make_engine
from icebench.bench.errors import BenchError, ConfigError, CorruptRecords
from icebench.bench.execution.environment import facts_of, fingerprint
from icebench.bench.execution.interruption import Interruption
from icebench.bench.execution.measurement import BUILDER, MEASUREMENTS
from icebench.bench.execution.recorder import Recorder
from icebench.bench.execution.run_file import Run, RunWriter, read_run
from icebench.bench.execution.run_lock import run_lock
from icebench.bench.execution.runner import ClockExecutor, Executor, Runner
from icebench.bench.execution.spark_use import SparkUse
from icebench.bench.execution.trial import Bench, Measurement, Trial
from icebench.bench.experiment import Experiment, parse_values
from icebench.bench.layouts.registry import ADDED as LAYOUTS
from icebench.bench.progress import Progress, silent
from icebench.bench.records.case import Case
from icebench.bench.records.record import Record
from icebench.bench.runs.preparation import Preparation
from icebench.bench.runs.table_locations import location_of
from icebench.bench.s3_jars import S3_SCHEMES
from icebench.bench.truth.rows import GroundTruth, truth_at
from icebench.bench.workloads.definitions import WORKLOADS
from icebench.bench.workloads.workload import Workload

CHECKOUT = Path(__file__).resolve().parents[2]
"""The directory whose git revision a run records."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a run takes from where it runs.

    Args:
        cache: Directory of generated tables.
        results: Directory of run files.
        progress: Called at every step.
        session: Gives the Spark session; None starts one by the definition.
        executor: Runs and measures.
        clock: Monotonic seconds, for what checking takes.
        now: The wall clock, with a time zone.
        launch: Runs a further process of a run, given its file, the process's number and the descriptor of the file's
            lock (see `resume_run`); None where there is no way to start one.
        command: What was asked for, as arguments of the command line; kept in the run's file, to ask for it again.
        interruption: Asks the run to stop.
    """

    cache: Path
    results: Path
    progress: Progress = silent
    session: Callable[[], SparkSession] | None = None
    executor: Executor = field(default_factory=ClockExecutor)
    clock: Callable[[], float] = time.perf_counter
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    launch: Callable[[Path, int, int], None] | None = None
    command: tuple[str, ...] = ()
    interruption: Interruption = field(default_factory=lambda: Interruption(say=lambda _: None))


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run that came to its end, and its file."""

    path: Path
    run: Run

    @property
    def records(self) -> tuple[Record, ...]:
        """What reports show."""
        return self.run.records

    @property
    def failed(self) -> bool:
        """Whether anything went wrong: engines that disagree, or that lose rows, are failures in it."""
        return self.run.failed


def surroundings_of(workdir: Path) -> Surroundings:
    """The usual places below a directory: ``datasets/cache`` and ``results/runs``."""
    return Surroundings(cache=workdir / "datasets" / "cache", results=workdir / "results" / "runs")


def run_experiment(experiment: Experiment, *, where: Surroundings) -> Finished:
    """Make what is not made yet, measure, and record.

    Raises:
        ConfigError: No engine can be made, or a name is none of a table.
        DatasetFailed: A table could not be built.
        EngineError: This project's engine could not write a table.
        JavaMissing: Spark is needed, and there is no Java.
        Stopped: It was asked to stop.
    """
    if experiment.processes > 1 and where.launch is None:
        raise ConfigError("there is no way to start another process here", path="processes")
    with ExitStack() as held:
        path, lock = _Attempt(experiment, where).execute(lambda path: held.enter_context(run_lock(path)))
        return _finished(path, experiment, where, lock)


def resume_run(path: Path, *, where: Surroundings, process: int | None = None, lock: int | None = None) -> Finished:
    """Go on with a run that was interrupted, from its file: samples that are there are not taken again, and those that
    are taken count as a further process's.

    Args:
        path: The run's file.
        where: Surroundings.
        process: Be this process of the run, and leave the others, and its end, to who launched it; None runs all.
        lock: The descriptor of the file's lock, which who launched this process has taken.

    Raises:
        ConfigError: It is complete, another process writes it, or the machine or software are others than they were.
        CorruptRecords: The file is damaged.
        BenchError: As `run_experiment`.
        Stopped: It was asked to stop.
    """
    where.interruption.path = path
    with run_lock(path, lock) as held:
        return _resumed(path, where, process, held)


def _resumed(path: Path, where: Surroundings, process: int | None, lock: int) -> Finished:
    before = read_run(path, interrupted=True)
    if before.complete:
        raise ConfigError("this run is complete: there is nothing to go on with", path=str(path))
    values = before.environment.get("definition")
    if not isinstance(values, dict):
        raise CorruptRecords("no definition to go on by", location=str(path))
    experiment = parse_values(values)
    _Attempt(experiment, where, process or 0).execute(lambda _: lock, path, before)
    return _finished(path, experiment, where, lock) if process is None else Finished(path=path, run=read_run(path))


def _finished(path: Path, experiment: Experiment, where: Surroundings, lock: int) -> Finished:
    """The run with the rounds of its further processes, and its end."""
    for process in range(1, experiment.processes):
        assert where.launch is not None
        where.interruption.check()
        where.launch(path, process, lock)
    run = read_run(path)
    with RunWriter(path, run_id=run.run_id, environment=None, known=run.order) as writer:
        writer.close(failed=run.failed, finished=_text_of(where.now()))
    where.interruption.is_complete = True
    return Finished(path=path, run=read_run(path))


def _text_of(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


class _Attempt:
    """One process's attempt at a run."""

    def __init__(self, experiment: Experiment, where: Surroundings, process: int = 0) -> None:
        self._experiment = experiment
        self._process = process
        self._where = where
        self._access = TableAccess()
        files = None if all(each.existing for each in experiment.workloads) else where.cache
        self._spark = SparkUse(
            experiment.spark,
            where.cache / "iceberg_java",
            where.session,
            files=files,
            on_s3=lambda: (
                any(ENGINES[name].needs_spark for name in experiment.engines)
                and (
                    "remote" in experiment.measurements
                    or any(is_on_s3(each, self._access) for each in experiment.workloads)
                )
            ),
        )

    def execute(
        self, lock: Callable[[Path], int], path: Path | None = None, before: Run | None = None
    ) -> tuple[Path, int]:
        """Check and run every case, and give the run's file with the descriptor of its lock, which `lock` takes; there
        is none where it never came to measure."""
        experiment, where = self._experiment, self._where
        if path is None:
            _check_writable(where.results)
        engines, missing = _make_engines(
            experiment, EngineContext(self._spark, self._access, lambda: self._spark.settings), self._progress
        )
        with ExitStack() as resources:
            measurements = Preparation(
                experiment=experiment,
                cache=where.cache,
                spark=self._spark,
                progress=self._progress,
                engines=engines,
                resources=resources,
                access=self._access,
            ).measurements()
            versions = {name: engine.version for name, engine in engines.items()}
            environment = self._environment(versions)
            if path is None or before is None:
                run_id, path = _new_file(experiment.name, where)
                writer = RunWriter(path, run_id=run_id, environment=environment)
            else:
                _check_same(before.environment, environment, path)
                writer = RunWriter(path, run_id=before.run_id, environment=None, known=before.order)
            where.interruption.path = path
            with writer:
                descriptor = lock(path)
                recorder = Recorder(
                    writer,
                    versions={BUILDER: version("icebench"), **versions},
                    before=before,
                    check=where.interruption.check,
                    shown=self._access.without_secrets,
                )
                for name, reason in missing.items():
                    recorder.skip(Case(engine=name, filter="*"), reason)
                self._measure(measurements, engines, recorder, self._number(before))
        self._spark.stop()
        return path, descriptor

    def _progress(self, phase: str, detail: str, done: int, total: int, share: float | None = None) -> None:
        """Every step is a place to stop at."""
        self._where.interruption.check()
        self._where.progress(phase, detail, done, total, share)

    def _number(self, before: Run | None) -> int:
        """The number of this process: its own, or the next that means it where an earlier attempt left anything."""
        count = self._experiment.processes
        used = [] if before is None else [s.process for m in before.measured for s in m.samples]
        used += [] if before is None else [line["process"] for line in before.rounds]
        return max((n + count for n in used if n % count == self._process), default=self._process)

    def _measure(
        self,
        measurements: Sequence[Measurement],
        engines: Mapping[str, AnyEngine],
        recorder: Recorder,
        process: int,
    ) -> None:
        """Workload by workload: check every case, then run all of them in rounds."""
        where, experiment = self._where, self._experiment
        runner = Runner(
            pace=experiment.pace,
            executor=where.executor,
            recorder=recorder,
            progress=self._progress,
            seed=experiment.seed,
            process=process,
            processes=experiment.processes,
            taken={case: each.samples for case, each in recorder.measured.items()},
        )
        for workload in dict.fromkeys(each.case.workload for each in measurements):
            with ExitStack() as resources:
                bench = Bench(
                    engines=engines,
                    recorder=recorder,
                    progress=self._progress,
                    pace=experiment.pace,
                    resources=resources,
                    clock=where.clock,
                    truth=self._truth,
                )
                trials: list[Trial] = []
                for measurement in (each for each in measurements if each.case.workload == workload):
                    trials += _checked(measurement, bench, recorder)
                runner.run(workload, trials)

    def _truth(self, location: str) -> GroundTruth:
        return truth_at(location, self._access.reader(location))

    def _environment(self, versions: Mapping[str, str]) -> dict[str, object]:
        """The fingerprint, and beside it, as the same figures may be asked for in many ways, what was asked for."""
        experiment = self._experiment
        found = fingerprint(versions, spark=self._spark.facts(), checkout=CHECKOUT)
        if extensions := extensions_of(experiment):
            found["software"] = {**found["software"], "extensions": extensions}
        asked = {"command": list(self._where.command)} if self._where.command else {}
        return {
            **found,
            "experiment": experiment.name,
            "scale": experiment.scale,
            "started": _text_of(self._where.now()),
            "definition": experiment.values,
            "digest": experiment.digest,
            "inputs": experiment.inputs,
            **asked,
        }


def _checked(measurement: Measurement, bench: Bench, recorder: Recorder) -> list[Trial]:
    """The trials of a measurement, recorded as cases; what stops it is a failure, and stops no other."""
    found: list[Trial] = []
    try:
        for trial in measurement.trials(bench):
            try:
                recorder.case(trial.case, trial.evidence)
            except BenchError as error:
                recorder.fail(trial.case, error)
            else:
                found.append(trial)
    except BenchError as error:
        recorder.fail(replace(measurement.case, filter="*"), error)
    return found


def extensions_of(experiment: Experiment) -> list[str]:
    """The packages, with their versions, whose things a definition uses."""
    used = [ENGINES.package_of(name) for name in experiment.engines]
    used += [MEASUREMENTS.package_of(name) for name in experiment.measurements]
    used += [WORKLOADS.package_of(workload.kind) for workload in experiment.workloads]
    used += [LAYOUTS.package_of(name) for name in LAYOUTS]
    return sorted({package for package in used if package is not None})


def is_on_s3(workload: Workload, access: TableAccess) -> bool:
    """Whether a workload has a table on S3; raises EngineError where its catalog does not have it."""
    return any(scheme_of(location_of(table, access)) in S3_SCHEMES for table in workload.existing)


def _check_same(before: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where machine, software, or the files that the definition names changed."""
    for part in ("hardware", "software", "engines", "git"):
        was, is_now = facts_of(part, before, now)
        if was != is_now:
            raise ConfigError(f"cannot go on: {part} is not as it was when the run began; start anew", path=str(path))
    if before.get("inputs", now.get("inputs")) != now.get("inputs"):
        raise ConfigError(
            "cannot go on: what the definition names (layouts, files of queries or of policies) is not as it was when "
            "the run began; start anew",
            path=str(path),
        )


def _make_engines(
    experiment: Experiment, context: EngineContext, progress: Progress
) -> tuple[dict[str, AnyEngine], dict[str, str]]:
    """Engine name -> engine, and name -> reason for those that are missing here; with floors, which are no engines."""
    names = experiment.engines
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
    for measurement, workload in product(experiment.measurements, experiment.workloads):
        kind = MEASUREMENTS[measurement]
        if kind.fits(workload):
            engines.update(kind.floors(workload))
    return engines, missing


def _check_writable(folder: Path) -> None:
    """Refuse a directory for results before hours of work; it is left as it was."""
    made: list[Path] = []
    try:
        made += [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        said = error.strerror or type(error).__name__
        raise ConfigError(f"cannot be written: {said}; choose another --results directory", path=str(folder)) from error
    finally:
        for each in made:
            with suppress(OSError):  # a part of it that could not be made
                each.rmdir()


def _new_file(name: str, where: Surroundings) -> tuple[str, Path]:
    """A run id that starts with the time and is not taken, and its file."""
    stem = f"{where.now().astimezone(UTC):%Y%m%dT%H%M%SZ}-{name}"
    for ordinal in range(1, 1000):
        run_id = stem if ordinal == 1 else f"{stem}-{ordinal}"
        path = where.results / f"{run_id}.jsonl"
        if not path.exists():
            return run_id, path
    raise ConfigError("has too many runs of one second", path=str(where.results))
