from __future__ import annotations

import io
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebench.bench.execution.environment import hardware
from icebench.bench.execution.run_file import RunWriter, read_run
from icebench.bench.experiment import known_experiments, load_experiment, parse_values
from icebench.bench.runs.estimate import Estimate, estimate, total_of
from icebench.bench.workloads.definitions import RowsWorkload
from tests.unit.bench.report.sample_run import ENVIRONMENT, sample_run

STARTED = "2026-01-01T00:00:00+00:00"


def run_file(
    path: Path, digest: str, seconds: float | None, *, ends: bool = True, process: int = 0, cores: int | None = None
) -> Path:
    """A run of that definition on this machine, or one of so many cores, whose last line was written so long after its
    start, or nobody knows when."""
    machine = hardware() if cores is None else {**hardware(), "cores": cores}
    environment = {**ENVIRONMENT, "digest": digest, "started": STARTED, "hardware": machine}
    with RunWriter(path, run_id=path.stem, environment=environment) as writer:
        for measured in sample_run().measured[:3]:
            writer.case(measured)
        writer.round("w", process, 0, {"load": 1.0})
        if ends:
            end = None if seconds is None else datetime.fromisoformat(STARTED) + timedelta(seconds=seconds)
            writer.close(failed=False, finished=None if end is None else end.isoformat())
    return path


DELETES = {"fractions": [0.01], "columns": ["ss_item_sk"]}


def test_a_run_takes_as_long_as_the_last_of_its_definition(tmp_path: Path) -> None:
    quick = load_experiment("quick")
    runs = [
        run_file(tmp_path / "1.jsonl", quick.digest, 900),
        run_file(tmp_path / "2.jsonl", quick.digest, 600),
        run_file(tmp_path / "3.jsonl", quick.digest, 60, ends=False),
        run_file(tmp_path / "4.jsonl", quick.digest, 60_000, process=1),
        run_file(tmp_path / "5.jsonl", "another", 60),
        run_file(tmp_path / "6.jsonl", quick.digest, 60, cores=1000),
        run_file(tmp_path / "7.jsonl", quick.digest, None),
    ]
    (tmp_path / "8.jsonl").write_text("no run\n", encoding="utf-8")
    found = estimate(quick, [*runs, tmp_path / "8.jsonl"])
    assert (found.cases, found.seconds, found.basis) == (3, 600, "as 2 took")
    assert str(found) == "3 cases, about 10 min, at most 11 MB of tables (as 2 took)"


def test_runs_of_other_definitions_and_machines_are_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, read = load_experiment("quick"), Mock(side_effect=read_run)
    runs = [run_file(tmp_path / "1.jsonl", quick.digest, 600)]
    runs += [run_file(tmp_path / f"{number}.jsonl", "another", 60) for number in range(2, 5)]
    runs += [run_file(tmp_path / "5.jsonl", quick.digest, 60, cores=1000)]
    monkeypatch.setattr("icebench.bench.runs.estimate.read_run", read)
    assert estimate(quick, runs).basis == "as 1 took"
    read.assert_called_once_with(runs[0])


def test_without_one_cases_are_counted() -> None:
    quick = load_experiment("quick")
    found = estimate(quick)
    # In 3 layouts 6 plans, 2 prunings and 2 filtered reads of 2 engines.
    assert found.cases == 3 * 2 * 10
    half = estimate(quick.adjusted(only=["icebench"]))
    assert half.cases == 3 * 10
    # A scan and 2 scans of deletes more.
    more = {**quick.values, "measurements": [*quick.measurements, "decimals", "deletes"], "deletes": DELETES}
    assert estimate(parse_values(more)).cases == 3 * 2 * 13
    longer = estimate(quick.adjusted(repetitions=30))
    assert longer.seconds > 1.5 * found.seconds
    large = estimate(quick.adjusted(scale=100))
    assert (large.size or 0) / 1e9 == pytest.approx(4 * 100 * 0.18, rel=0.25)
    assert large.seconds > 100 * 60
    assert "rule of thumb" in str(found)


def test_the_default_experiment_is_estimated_at_ten_minutes_or_less() -> None:
    default = load_experiment(known_experiments()["default"])
    assert estimate(default).seconds <= 600
    everything = {**default.values["filtered"], "warm": list(default.filters)}
    assert estimate(parse_values({**default.values, "filtered": everything})).cases == estimate(default).cases + 120


def test_a_measurement_of_few_layouts_has_their_cases() -> None:
    quick = load_experiment("quick")
    values = {**quick.values, "measurements": ["deletes"]}
    few = parse_values({**values, "deletes": {"layouts": ["sorted"], **DELETES}})
    full = parse_values({**values, "deletes": DELETES})
    assert (estimate(full).cases, estimate(few).cases) == (3 * 2 * 2, 2 * 2)


def test_the_cases_and_bytes_of_histories_and_generated_rows_are_counted() -> None:
    events = estimate(load_experiment("events"))
    # After 3 batches, of equality deletes 3 engines and of vectors 5: a table and its compacted twin, under 4 filters.
    assert events.cases == 3 * (3 + 5) * 2 * 4
    assert 0 < (events.size or 0) < 0.1e9
    longevity = estimate(load_experiment("longevity"))
    # Never compacted, compacted and kept by a policy; both engines; under 4 filters, and of the sales 4 states under 4.
    assert longevity.cases == 3 * 2 * 2 * (7 * 4 + 4 * 4)


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "log", "rows": 120_000},
        {"kind": "wide", "rows": 3_000, "columns": 400},
        {"kind": "tpcds", "scale": 0.04},
        {"kind": "tpcds", "scale": 0.02, "table": "inventory"},
    ],
)
def test_tables_have_as_many_bytes_as_their_rows_take(workload: dict[str, object]) -> None:
    made = parse_values(
        {
            "name": "x",
            "layouts": ["unpartitioned"],
            "engines": ["icebench"],
            "filters": {"every": "true"},
            "measurements": ["planning"],
            "workload": workload,
        }
    )
    (rows,) = (each.rows for each in made.workloads if isinstance(each, RowsWorkload))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_batches(rows.batches(0, rows.rows)), sink, compression="zstd")
    assert estimate(made).size == pytest.approx(2 * sink.tell(), rel=0.5)


@pytest.mark.parametrize("name", known_experiments())
def test_every_definition_has_an_estimate(name: str) -> None:
    found = estimate(load_experiment(name))
    assert found.cases > 0
    assert found.seconds > 0


def test_a_size_that_is_not_known_is_said() -> None:
    assert str(Estimate(cases=1, seconds=1, size=None, basis="b")) == ("1 cases, about 1 s, tables of unknown size (b)")


def test_several_runs_take_what_each_of_them_takes() -> None:
    one = Estimate(cases=3, seconds=90.0, size=2 * 10**9, basis="a")
    other = Estimate(cases=4, seconds=60.0, size=10**8, basis="b")
    assert total_of([one, other]) == Estimate(cases=7, seconds=150.0, size=2_100_000_000, basis="2 runs")
    assert (total_of([one]).cases, total_of([one]).seconds, total_of([one]).size) == (3, 90.0, 2 * 10**9)
    assert (total_of([]).cases, total_of([]).seconds, total_of([]).size) == (0, 0, 0)


@pytest.mark.parametrize(
    ("size", "said"), [(1, "1 MB"), (8 << 20, "8 MB"), ((8 << 20) + 1, "9 MB"), (1 << 30, "1 GB"), (3 << 29, "1.5 GB")]
)
def test_a_size_is_in_the_bytes_of_reports(size: int, said: str) -> None:
    assert f" at most {said} of tables " in str(Estimate(cases=1, seconds=1, size=size, basis="b"))


def test_the_size_of_several_runs_is_not_known_unless_that_of_each_is() -> None:
    known = Estimate(cases=1, seconds=1.0, size=10, basis="a")
    unknown = Estimate(cases=1, seconds=1.0, size=None, basis="b")
    assert total_of([known, unknown]).size is None
    nothing = Estimate(cases=1, seconds=1.0, size=0, basis="c")
    assert total_of([known, nothing]).size == 10
