"""An engine that follows a script, a clock that it moves, and a small real table to check it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, MonthTransform
from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType, TimestampType

from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.engine import Ability, Plan
from icebench.bench.engines.registry import EngineContext
from icebench.bench.execution.measurement import MEASUREMENTS
from icebench.bench.execution.pace import Pace
from icebench.bench.execution.recorder import Recorder
from icebench.bench.execution.run_file import RunWriter
from icebench.bench.execution.runner import ClockExecutor, Runner
from icebench.bench.execution.trial import Bench, Measurement
from icebench.bench.progress import silent
from icebench.bench.records.record import Failure, Record, Skipped
from icebench.bench.truth.oracle import Answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def no_spark() -> SparkSession:
    """In place of what starts a session."""
    raise AssertionError("needs no Spark")


CONTEXT = EngineContext(spark=no_spark)
"""Of engines that need no Spark."""
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
FIELDS = (
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "day", DateType()),
    NestedField(3, "price", DecimalType(7, 2)),
    NestedField(4, "name", StringType()),
    NestedField(5, "moment", TimestampType()),
)


class Clock:
    """Seconds that pass only when someone lets them."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class ScriptedEngine:
    """Plans and delivers what its script says, and takes as long.

    `plans` and `rows` are by location and filter; a filter that is missing in `plans` is refused. `seconds` are by
    location. An exception in place of an answer is raised.
    """

    name: str
    clock: Clock
    plans: Mapping[tuple[str, str | None], Sequence[str] | Exception] = field(default_factory=dict)
    rows: Mapping[str, pa.RecordBatch | Exception] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    warm_seconds: float = 0.25
    version: str = "1.0"
    abilities: frozenset[Ability] = frozenset(Ability)
    opened: int = 0

    def open(self, metadata_location: str) -> list[str]:
        self.opened += 1
        return [metadata_location]

    def compile(self, handle: list[str], filter: str | None) -> str | None:
        if filter is not None and (handle[0], filter) not in self.plans:
            raise ValueError(f"cannot parse {filter}")
        return filter

    def plan(self, handle: list[str], filter: str | None) -> Plan:
        answer = self.plans[handle[0], filter]
        if isinstance(answer, Exception):
            raise answer
        warm = len(handle) > 1
        handle.append("planned")
        if not warm and Path(handle[0]).is_file():
            # What a harness sees of a cold plan.
            for path in Path(handle[0]).parent.glob("*.avro"):
                path.read_bytes()
        self.clock.pass_(self.warm_seconds if warm else self.seconds.get(handle[0], 1.0))
        return Plan(lambda: answer, lambda: {"files_planned": len(answer)})

    def scan(self, handle: list[str], columns: Sequence[str], filter: str | None) -> None:
        self.clock.pass_(self.seconds.get(handle[0], 1.0))

    def checksum(self, handle: list[str], columns: Sequence[str], filter: str | None) -> Checksum:
        answer = self.rows[handle[0]]
        if isinstance(answer, Exception):
            raise answer
        return checksum_of([answer], columns)


class ClockTree:
    """Processor time that is the clock's, and memory that nothing reports."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = 0.0

    def start(self, *, in_children: bool) -> None:
        self._start = self._clock()

    def stop(self) -> tuple[float, None]:
        return self._clock() - self._start, None


def executor_of(clock: Clock) -> ClockExecutor:
    """An executor for which time passes only when someone lets it."""
    return ClockExecutor(clock, lambda: None, ClockTree(clock))  # type: ignore[arg-type]


def pace_of(repetitions: int = 3, warmups: int = 1, *, warm_seconds: float = 0, case_seconds: float = 1e9) -> Pace:
    """The same pace for every measurement."""
    return Pace(
        repetitions=dict.fromkeys(MEASUREMENTS, repetitions),
        warmups=dict.fromkeys(MEASUREMENTS, warmups),
        warm_seconds=warm_seconds,
        case_seconds=case_seconds,
    )


@dataclass
class Recorded:
    """A bench of scripted engines, and what it recorded."""

    bench: Bench
    recorder: Recorder
    clock: Clock

    def measure(self, *measurements: Measurement) -> None:
        """Check everything and run it, as one workload."""
        trials = []
        for measurement in measurements:
            for trial in measurement.trials(self.bench):
                self.recorder.case(trial.case, trial.evidence)
                trials.append(trial)
        runner = Runner(
            pace=self.bench.pace,
            executor=executor_of(self.clock),
            recorder=self.recorder,
            progress=silent,
            seed=0,
        )
        runner.run("w", trials)
        self.bench.resources.close()

    @property
    def records(self) -> tuple[Record, ...]:
        return self.recorder.records

    @property
    def failures(self) -> list[Failure]:
        return self.recorder.failures

    @property
    def skipped(self) -> list[Skipped]:
        return self.recorder.skipped

    def samples(self, engine: str, case: str, metric: str) -> list[float]:
        found = [r for r in self.records if (r.engine, r.case, r.metric) == (engine, case, metric)]
        assert len(found) == 1, [r.key for r in self.records]
        return list(found[0].samples)


@dataclass
class GivenTruth:
    """A table's truth, as given: rows, or why there are none."""

    rows: pa.RecordBatch | Exception

    def answer(self, columns: Sequence[str], filter: str | None = None) -> Answer:
        if isinstance(self.rows, Exception):
            raise self.rows
        return Answer({"the file": checksum_of([self.rows], columns)})


def recorded(
    writer: RunWriter,
    clock: Clock,
    *engines: ScriptedEngine,
    pace: Pace | None = None,
    truth: Mapping[str, pa.RecordBatch | Exception] | None = None,
) -> Recorded:
    """A bench that records into `writer`; `truth` is by location, and by default what the first engine delivers."""
    known = getattr(engines[0], "rows", {}) if truth is None else truth
    recorder = Recorder(writer, versions={engine.name: engine.version for engine in engines})
    bench = Bench(
        engines={engine.name: engine for engine in engines},
        recorder=recorder,
        progress=silent,
        pace=pace or pace_of(),
        clock=clock,
        truth=lambda location: GivenTruth(known[location]),
        bytes_read=lambda _: None,
    )
    return Recorded(bench, recorder, clock)


def small_rows(start: int = 0, stop: int = 400) -> pa.Table:
    """Ids in order, a day each hundred ids, prices of a hundredth of the id, seven names, nulls here and there."""
    ids = list(range(start, stop))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "day": pa.array([None if i % 50 == 7 else date(2000, 1, 20) + timedelta(days=i // 10) for i in ids]),
            "price": pa.array([None if i % 50 == 9 else Decimal(i).scaleb(-2) for i in ids], pa.decimal128(7, 2)),
            "name": pa.array([f"n{i % 7}" for i in ids]),
            "moment": pa.array([946_684_800_000_000 + i * 3_600_000_000 for i in ids], pa.timestamp("us")),
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("day", pa.date32()),
                ("price", pa.decimal128(7, 2)),
                ("name", pa.string()),
                ("moment", pa.timestamp("us")),
            ]
        ),
    )


def small_table(folder: Path, *, partitioned: bool = False, name: str = "small") -> str:
    """A table of 400 rows in four files of consecutive ids (or by month and name); gives its metadata file."""
    folder.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/{name}.db", warehouse=str(folder))
    catalog.create_namespace("db")
    spec = PartitionSpec()
    if partitioned:
        spec = PartitionSpec(
            PartitionField(2, 1000, MonthTransform(), "day_month"), PartitionField(4, 1001, IdentityTransform(), "name")
        )
    table = catalog.create_table(f"db.{name}", Schema(*FIELDS), partition_spec=spec)
    for start in range(0, 400, 100):
        table.append(small_rows(start, start + 100))
    catalog.close()
    return table.metadata_location.removeprefix("file://")
