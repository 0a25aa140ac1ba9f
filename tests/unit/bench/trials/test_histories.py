"""A run of a small stream of changes: every state has the right rows, and what was left behind is counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.bench.experiment import parse_values
from icebench.bench.maintenance.policy import Policy
from icebench.bench.report.build import build_report
from icebench.bench.report.charts import DotChart
from icebench.bench.runs.run import run_experiment, surroundings_of
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.trials import histories
from icebench.bench.trials.histories import Spent, left_behind
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.definitions import EventsWorkload
from icebench.bench.workloads.refreshes import Refreshes
from icebench.bench.workloads.tpcds import Tpcds

ENGINES = ["icebench", "duckdb"]


def run_of(folder: Path, **workload: Any) -> dict[tuple[str, str, str], dict[str, int]]:
    stream = {
        **({"kind": "events", "keys": 200, "changes": 100, "batches": 2} if "kind" not in workload else {}),
        **workload,
    }
    values = {
        "name": "small",
        "engines": ENGINES,
        "repetitions": 1,
        "warmups": 0,
        "warm_seconds": 0,
        "workload": stream,
    }
    run = run_experiment(parse_values(values), where=surroundings_of(folder)).run
    assert not run.failures
    (section,) = [each for each in build_report(run, results_file="x").sections if each.key == "reading"]
    table = next(each for each in section.tables if each.title.startswith("What batches leave behind"))
    first = [cell.text for cell in table.rows[0]]
    assert first[1] == "after 1 batches"
    assert first[2] == "2"
    assert first[-1].endswith("%")
    assert isinstance(section.charts[0], DotChart)
    assert section.charts[0].panels[0].title == "after 1 batches"
    return {(e.case.layout, e.case.configuration, e.case.engine): dict(e.evidence.counters) for e in run.measured}


class Keys(DatasetCache):
    """Builds nothing, and keeps the keys."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.found: list[Mapping[str, Any]] = []

    def find_or_build(
        self, name: str, key: Mapping[str, Any], build: Callable[[Path], Mapping[str, Any]]
    ) -> dict[str, Any]:
        self.found.append(key)
        return {"states": []}


def test_a_history_that_other_programs_or_another_machine_timed_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = {"kind": "events", "keys": 20, "changes": 10, "batches": 1, "deletes": ["vectors"]}
    (workload,) = parse_values({"name": "small", "engines": ENGINES, "workload": stream}).workloads
    assert isinstance(workload, EventsWorkload)
    cache, programs = Keys(tmp_path), tmp_path / "engine"
    room = programs / "codec" / "room.py"
    room.parent.mkdir(parents=True)
    made_by = [programs if path.name == "engine" else path for path in histories._MADE_BY]
    monkeypatch.setattr(histories, "_MADE_BY", made_by)
    for text, cpu in (("1", "one"), ("2", "one"), ("2", "another")):
        room.write_text(text)
        monkeypatch.setattr(histories, "hardware", lambda cpu=cpu: {"cpu": cpu})
        for _ in range(2):
            list(histories.histories(workload, ENGINES, cache, lambda *_: None))
    keys = [json.dumps(key, sort_keys=True) for key in cache.found]
    assert len(set(keys)) == len(keys) // 2


def test_a_history_that_a_policy_keeps_is_found_by_other_processes(tmp_path: Path) -> None:
    stream = {
        "kind": "events",
        "keys": 20,
        "changes": 10,
        "batches": 1,
        "deletes": ["vectors"],
        "policies": ["default"],
    }
    (workload,) = parse_values({"name": "small", "engines": ENGINES, "workload": stream}).workloads
    assert isinstance(workload, EventsWorkload)
    cache = Keys(tmp_path)
    list(histories.histories(workload, ENGINES, cache, lambda *_: None))
    (kept,) = {str(key["kept"]) for key in cache.found if "actions" in str(key["kept"])}
    assert "frozenset" not in kept  # whose order is another in each process
    assert f"'actions': {sorted(Policy.load().actions)}" in kept


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [("equality", "equality deletes"), ("vectors", "deletion vectors")])
def test_every_state_has_the_rows_of_its_compacted_twin(tmp_path: Path, kind: str, name: str) -> None:
    found = run_of(tmp_path, deletes=[kind], compact_every=[0, 2], policies=["default"])
    spent = {layout: found[layout, "after 2 batches, maintenance", "icebench"] for layout, *_ in found}
    assert spent[f"{name}, never compacted"] == {"maintenance_passes": 0, "maintenance_bytes": 0}
    assert {each["maintenance_passes"] for each in spent.values()} == {0, 1, 2}
    one, each_time = spent[f"{name}, compacted every 2"], spent[f"{name}, kept by policy default"]
    assert 0 < one["maintenance_bytes"] < each_time["maintenance_bytes"]
    assert found[f"{name}, compacted every 2", "after 1 batches, maintenance", "icebench"]["maintenance_bytes"] == 0
    engines = {engine for *_, engine in found}
    assert engines == ({"icebench"} if kind == "equality" else set(ENGINES))
    for batch in (1, 2):
        for filter in ("", "one_key ", "last_batch ", "keys_1_percent "):
            never = found[f"{name}, never compacted", f"{filter}after {batch} batches", "icebench"]
            twin = found[f"{name}, never compacted", f"{filter}after {batch} batches, compacted", "icebench"]
            often = found[f"{name}, compacted every 2", f"{filter}after {batch} batches", "icebench"]
            assert never["rows_returned"] == twin["rows_returned"] == often["rows_returned"]
            assert (twin["data_files"], twin["delete_files"], twin["delete_records"]) == (1, 0, 0)
            assert never["data_files"] == 1 + batch
            assert never["delete_files"] >= batch
            assert never["manifests"] > twin["manifests"]
            kept = found[f"{name}, kept by policy default", f"{filter}after {batch} batches", "icebench"]
            assert kept["rows_returned"] == never["rows_returned"]
            assert (kept["data_files"], kept["delete_files"]) == (1, 0)
            assert (often["delete_files"] == 0) == (batch == 2)
            assert often["data_files"] == {1: 2, 2: 1}[batch]


@pytest.mark.slow
def test_refreshes_add_rows_and_delete_those_of_some_days(tmp_path: Path) -> None:
    found = run_of(
        tmp_path,
        kind="refreshes",
        scale=0.002,
        table="store_returns",
        refreshes=3,
        share=0.05,
        deletes=["positions"],
        compact_every=[0, 2],
    )
    assert {engine for *_, engine in found} == set(ENGINES)
    sales = Refreshes(sales=DatedSales.of(Tpcds(scale=0.002, seed=1), "store_returns"), batches=3, share=0.05)
    for batch in (1, 2, 3):
        never = found["position deletes, never compacted", f"after {batch} batches", "icebench"]
        often = found["position deletes, compacted every 2", f"after {batch} batches", "icebench"]
        rows = sales.live(batch).num_rows
        assert (never["rows_returned"], often["rows_returned"]) == (rows, rows)
        assert never["delete_records"] == sales.span(batch)[1] - rows > 0
        assert never["data_files"] == 1 + batch
        assert (often["delete_files"] == 0) == (batch == 2)
        assert often["data_files"] == {1: 2, 2: 1, 3: 2}[batch]


def test_what_a_pass_moved_counts_though_it_expires_the_snapshot_that_says_so(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("id", pa.int64())]))
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    before = left_behind(table.metadata_location)["data_bytes"]
    actions = [
        lambda: table.maintenance.rewrite_data_files(rewrite_all=True),
        lambda: table.append(pa.table({"id": [9]})),
        lambda: table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1),
    ]
    spent = Spent()
    spent.add(table, (act() for act in actions))
    assert len(table.refresh().snapshots) == 1
    assert spent.maintenance_passes == 1
    assert spent.maintenance_bytes == before + left_behind(table.metadata_location)["data_bytes"]
    spent.add(table, ())
    assert spent.maintenance_passes == 1
