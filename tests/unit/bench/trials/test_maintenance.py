"""Maintenance of copies of a table: what is recorded, and that an engine which does something else is a failure."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, get_args

import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines.engine import Ability
from icebench.bench.engines.icebench import Icebench
from icebench.bench.errors import EngineFailed
from icebench.bench.experiment import parse_values
from icebench.bench.layouts.actions import Action
from icebench.bench.processes.fresh_process import FreshProcess
from icebench.bench.records.case import Case, Cost
from icebench.bench.report.build import build_report
from icebench.bench.runs.estimate import estimate
from icebench.bench.runs.run import Surroundings, run_experiment
from icebench.bench.trials.maintenance import KeptTable, Maintenance
from icebench.bench.workloads.maintenance_tables import NAME, MaintenanceTables
from icebench.engine.maintenance.rewrite_data_files import Strategy
from tests.unit.bench.execution.scripted import CONTEXT, Clock, Recorded, ScriptedEngine, no_spark

TABLES = MaintenanceTables(rows=2_000, files=16, target_bytes=40_000, snapshots=6, listed_files=180, orphans=7)
VALUES: dict[str, Any] = {
    "name": "tiny",
    "engines": ["icebench"],
    "repetitions": 2,
    "warm_seconds": 0,
    "workload": {
        "kind": "maintenance",
        "rows": 2_000,
        "files": 16,
        "target_bytes": 40_000,
        "snapshots": 6,
        "listed_files": 180,
        "orphans": 7,
    },
}


def measurement(place: Path, *actions: Action, engines: tuple[str, ...] = ("icebench",)) -> Maintenance:
    return Maintenance(
        case=Case(workload="t", layout="t", measurement="maintenance"),
        tables=TABLES,
        actions=actions,
        engines=engines,
        workspace=place,
    )


def test_a_run_keeps_equal_copies_and_reports_what_it_took(tmp_path: Path) -> None:
    experiment = parse_values(VALUES)
    assert estimate(experiment).cases == len(get_args(Action))
    where = Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=no_spark)
    found = run_experiment(experiment, where=where)
    assert not found.run.failures
    records = {(r.case, r.metric): r for r in found.records}
    assert {case for case, _ in records} == set(get_args(Action))
    assert records["remove_orphan_files", "files_deleted"].samples == (7.0, 7.0)
    assert records["remove_orphan_files", "bytes_written"].samples == (0.0, 0.0)
    assert records["expire_snapshots", "files_deleted"].samples[0] > 2 * TABLES.snapshots
    assert records["sort", "bytes_written"].unit == "bytes"
    assert records["sort", "files_deleted"].samples == (0.0, 0.0)
    assert len(records["zorder", "maintenance_time"].samples) == 2
    assert list((tmp_path / "cache").iterdir()) == []
    section = next(s for s in build_report(found.run, results_file="x").sections if s.key == "maintenance")
    assert [t.title for t in section.tables if t.title in ("Time of maintenance", "Bytes written")]
    assert section.charts


FRESH = {**VALUES, "repetitions": 1, "workload": {**VALUES["workload"], "fresh": True, "actions": ["binpack", "sort"]}}


def test_fresh_processes_keep_equal_copies_and_report_their_memory(tmp_path: Path) -> None:
    where = Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=no_spark)
    found = run_experiment(parse_values(FRESH), where=where)
    assert not found.run.failures
    records = {(r.case, r.metric): r for r in found.records}
    before = {records[action, "maintenance_time"].counters["files_before"] for action in ("binpack", "sort")}
    assert len(before) == 1
    for action in ("binpack", "sort"):
        assert records[action, "files_written"].samples[0] > 3
        assert 1 << 18 < records[action, "memory_peak"].samples[0] < 1 << 30
        assert records[action, "maintenance_cpu"].samples[0] > 0


@dataclass
class Idle:
    """A process that does nothing, and says that it was quick."""

    def cost(self, wall: float) -> Cost:
        return Cost(wall=wall / 2, cpu=0.0)


def test_what_a_fresh_process_left_behind_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icebench.bench.trials.maintenance.fresh_process", lambda _: Idle())
    where = Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=no_spark)
    found = run_experiment(parse_values(FRESH), where=where)
    assert sorted(f.message[:30] for f in found.run.failures) == [
        "after binpack there are 16 fil",
        "after sort there are 16 files ",
    ]
    assert not found.records


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise OSError('no room')", "OSError: no room"),
        (
            "import sys; sys.exit('Caused by: it is full\\n\\tat a.B.c(B.java:1)\\n\\t... 21 more')",
            "Caused by: it is full",
        ),
    ],
)
def test_a_fresh_process_that_fails_says_why(code: str, reason: str) -> None:
    with TemporaryFile("w+") as errors:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, text=True)
        answer = FreshProcess(process=process, line="", errors=errors, least={}, exactly={})
        with pytest.raises(EngineFailed, match=f"a fresh process failed: {reason}$"):
            answer.cost(1.0)


def test_a_fresh_process_may_have_a_clock_of_its_own() -> None:
    for own, wall in (({}, 9.0), ({"seconds": 0.5}, 0.5)):
        line = json.dumps({"cpu_seconds": 0.25, "peak_bytes": 7, **own})
        process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE, text=True)
        with TemporaryFile("w+") as errors:
            cost = FreshProcess(process=process, line=line, errors=errors, least={}, exactly={}).cost(9.0)
        assert cost == Cost(wall=wall, cpu=0.25, memory=7)


class Wrong(Icebench):
    """Does something besides, or instead."""

    def __init__(self, change: Callable[[icebench.Table], object], *, besides: bool) -> None:
        super().__init__(CONTEXT)
        self.change, self.besides = change, besides

    def maintain(self, warehouse: Path, name: str, action: Action, target_bytes: int) -> None:
        if self.besides:
            super().maintain(warehouse, name, action, target_bytes)
        self.change(icebench.load_catalog(str(warehouse)).load_table(name))


def first_file(table: icebench.Table) -> Path:
    return Path(table.inspect.files()["file_path"][0].as_py())


def without_orphans(table: icebench.Table) -> None:
    for each in Path(table.location).rglob("orphan-*"):
        each.unlink()


def arranged(table: icebench.Table, strategy: Strategy = "binpack") -> None:
    table.maintenance.rewrite_data_files(
        strategy,
        sort_order=["user_id"] if strategy == "sort" else None,
        rewrite_all=True,
        target_file_size_bytes=40_000,
    )


def swapped(table: icebench.Table) -> None:
    """As many rows, with the values of a column in others."""
    rows = table.scan().to_arrow()
    status = rows.schema.get_field_index("status")
    turned = pa.array(rows.column(status).to_pylist()[::-1], pa.int32())
    table.overwrite(rows.set_column(status, rows.schema.field(status), turned))
    arranged(table, "sort")


def besides(change: Callable[[icebench.Table], object]) -> Callable[[], Wrong]:
    return lambda: Wrong(change, besides=True)


def instead(change: Callable[[icebench.Table], object]) -> Callable[[], Wrong]:
    return lambda: Wrong(change, besides=False)


@pytest.mark.parametrize(
    ("action", "wrong", "reason"),
    [
        ("binpack", besides(lambda t: t.delete("log_offset = 77", mode="copy-on-write")), "other rows or files"),
        ("sort", instead(swapped), "other rows or files"),
        ("binpack", instead(lambda _: None), "there are 16 files"),
        ("binpack", instead(lambda t: t.maintenance.rewrite_data_files(rewrite_all=True)), "more than 1.8 times"),
        ("sort", instead(arranged), "is not sorted by user_id"),
        ("zorder", instead(arranged), "of the keys on average"),
        ("rewrite_manifests", instead(lambda _: None), "manifests share partitions"),
        ("expire_snapshots", instead(lambda _: None), "data files: 6 are left over"),
        ("expire_snapshots", besides(lambda t: Path(t.location, "metadata/x.avro").touch()), "metadata: 1 files are"),
        ("remove_orphan_files", instead(lambda _: None), "data files: 7 are left over, 0 are missing"),
        ("remove_orphan_files", besides(lambda t: first_file(t).unlink()), "0 are left over, 1 are missing"),
    ],
)
def test_what_is_left_behind_is_looked_at(
    bench_of: Callable[..., Recorded], tmp_path: Path, action: Action, wrong: Callable[[], Wrong], reason: str
) -> None:
    made = bench_of(wrong())
    made.measure(measurement(tmp_path, action))
    (failure,) = made.failures
    assert reason in failure.message
    assert not made.records


def test_what_one_action_did_to_a_table_is_not_the_truth_of_the_next(
    bench_of: Callable[..., Recorded], tmp_path: Path
) -> None:
    made = bench_of(besides(lambda t: t.delete("log_offset = 77", mode="copy-on-write"))())
    made.measure(measurement(tmp_path, "binpack", "sort"))
    assert [f.message for f in made.failures] == [
        "after binpack the table has other rows or files",
        "after sort the table has other rows or files",
    ]


def test_a_later_run_is_looked_at_too(bench_of: Callable[..., Recorded], tmp_path: Path) -> None:
    kept: list[int] = []

    def then_no_more(table: icebench.Table) -> None:
        kept.append(0)
        if len(kept) < 2:
            without_orphans(table)

    made = bench_of(Wrong(then_no_more, besides=False))
    made.measure(measurement(tmp_path, "remove_orphan_files"))
    assert [f.message for f in made.failures] == [
        "after remove_orphan_files data files: 7 are left over, 0 are missing"
    ]
    assert not made.records


def test_the_table_is_the_same_again(tmp_path: Path) -> None:
    kept = KeptTable.of(TABLES, "expire_snapshots", tmp_path)
    table = icebench.load_catalog(str(kept.warehouse)).load_table(NAME)
    before = table.scan().to_arrow()
    for _ in range(2):
        table.delete("log_offset < 100", mode="copy-on-write")
        table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1)
        kept.restore()
        table = icebench.load_catalog(str(kept.warehouse)).load_table(NAME)
        assert table.scan().to_arrow().equals(before)
        assert len(table.snapshots) == TABLES.snapshots + 1


def test_an_engine_that_keeps_nothing_or_not_all_is_skipped(bench_of: Callable[..., Recorded], tmp_path: Path) -> None:
    partly = Icebench(CONTEXT)
    partly.maintains = frozenset({"binpack"})
    reads = ScriptedEngine("reads", Clock(), abilities=frozenset({Ability.SCAN}))
    made = bench_of(partly, reads)
    made.measure(measurement(tmp_path, "rewrite_manifests", engines=("icebench", "reads")))
    assert {s.reason for s in made.skipped} == {
        "icebench has no rewrite_manifests of its own",
        "reads offers no maintenance of tables",
    }
