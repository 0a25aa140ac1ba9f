"""Faults planted into an engine, in whole runs of two small layouts: the command finds and names each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.engines.engine import AnyEngine, Plan
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.registry import EngineContext, make_engine
from icebench.bench.execution.runner import ClockExecutor
from icebench.bench.experiment import parse_experiment
from icebench.bench.report.build import build_report
from icebench.bench.runs import run
from icebench.bench.runs.run import Surroundings, run_experiment
from tests.unit.bench.cli.test_main import exit_code

pytestmark = pytest.mark.slow

DEFINITION = """
name = "planted"
layouts = ["unpartitioned", "by-offset"]
engines = ["icebench", "pyiceberg"]
measurements = ["planning", "filtered"]
repetitions = {repetitions}
warmups = 0
warm_seconds = 0
[workload]
kind = "log"
rows = 4000
[[layout]]
name = "by-offset"
sort = ["log_offset desc"]
[table]
files = 4
[filters]
early = "log_offset < 1500"
[filtered]
columns = ["log_offset", "user_id", "status"]
everything = true
"""


def with_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, values)


class Planted(Icebench):
    """This project's engine, which compiles its kernels when it needs them."""

    def __init__(self, context: EngineContext) -> None:
        self.version = "planted"
        self._access = context.access


class WrongRow(Planted):
    """One value of a column is another."""

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column("log_offset").to_pylist()
        return with_column(batch, "log_offset", pa.array([values[0] + 1, *values[1:]], pa.int64()))

    def batches(self, handle: icebench.Table, columns: Sequence[str], filter: str | None) -> Iterator[pa.RecordBatch]:
        for batch in handle.scan(filter=filter, columns=columns).to_batches():
            yield self.changed(batch)


class WrongColumn(WrongRow):
    """A column comes under another's name."""

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return with_column(batch, "user_id", batch.column("log_offset"))


class RowsOfAFileLost(WrongRow):
    """A scan leaves out the rows of the first file of arrival order."""

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.greater_equal(batch.column("log_offset"), 1000))


class FileLost(Planted):
    """A plan leaves out a file."""

    def plan(self, handle: icebench.Table, filter: str | None) -> Plan:
        whole = super().plan(handle, filter)
        return Plan(lambda: sorted(whole.files)[1:], lambda: whole.counters)


class Warm(Planted):
    """A handle that is said to be fresh is the one of before."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._handles: dict[str, icebench.Table] = {}

    def open(self, metadata_location: str) -> icebench.Table:
        return self._handles.setdefault(metadata_location, super().open(metadata_location))


class Slow(WrongRow):
    """Everything that is read is read eight times."""

    def batches(self, handle: icebench.Table, columns: Sequence[str], filter: str | None) -> Iterator[pa.RecordBatch]:
        for _ in range(7):
            yield from (batch.slice(0, 0) for batch in super().batches(handle, columns, filter))
        yield from super().batches(handle, columns, filter)

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all runs are, with their tables, for which the command would start a Spark session of its own."""
    made = tmp_path_factory.mktemp("planted")
    where = Surroundings(cache=made / "datasets" / "cache", results=made / "runs", session=lambda: spark)
    assert not run_experiment(parse_experiment(DEFINITION.format(repetitions=1)), where=where).failed
    return made


def plant(monkeypatch: pytest.MonkeyPatch, fault: type[Icebench]) -> None:
    def make(name: str, context: EngineContext) -> AnyEngine:
        return fault(context) if name == "icebench" else make_engine(name, context)

    monkeypatch.setattr(run, "make_engine", make)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (WrongRow, "unpartitioned/filtered/all/icebench: delivers wrong rows: column log_offset: sum 7998"),
        (
            WrongColumn,
            "filtered/early/icebench: delivers wrong rows: column user_id has the values of column log_offset",
        ),
        (RowsOfAFileLost, "unpartitioned/filtered/early/icebench: delivers wrong rows: 500 rows against 1500"),
        (FileLost, "by-offset/planning/all/icebench: without a filter, does not plan 1 file (00000-0-"),
        (Warm, "by-offset/planning/early/icebench: claims a cold plan and reads"),
    ],
)
def test_a_run_names_what_is_wrong_and_fails(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: type[Icebench], said: str
) -> None:
    monkeypatch.chdir(home)
    Path("planted.toml").write_text(DEFINITION.format(repetitions=1), encoding="utf-8")
    plant(monkeypatch, fault)
    assert exit_code("run", "planted.toml") == 1
    assert said in " ".join(capsys.readouterr().out.split())  # however long the lines are


def test_a_slow_path_is_a_finding_and_no_failure(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, Slow)
    # By processor time, so that what else the machine does decides nothing.
    executor = ClockExecutor(time.process_time)
    where = Surroundings(cache=home / "datasets" / "cache", results=home / "runs", executor=executor)
    done = run_experiment(parse_experiment(DEFINITION.format(repetitions=6)), where=where)
    assert not done.failed
    said = [finding.statement for finding in build_report(done.run, results_file="r").findings]
    assert any(each.startswith("Cold reading under filters is fastest with pyiceberg; icebench takes") for each in said)
