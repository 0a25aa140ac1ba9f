"""Reads from a store that is far away, from a definition to a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.bench.cli.case import program_of
from icebench.bench.engines.engine import EngineMissing
from icebench.bench.engines.icebench import Icebench
from icebench.bench.errors import ConfigError
from icebench.bench.experiment import parse_values
from icebench.bench.processes.delayed_s3 import Delay
from icebench.bench.report.build import build_report
from icebench.bench.runs import preparation
from icebench.bench.runs.run import Finished, run_experiment, surroundings_of

ROWS = pa.table({"id": range(400), "v": [n % 7 for n in range(400)]})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> icebench.Table:
    made = icebench.load_catalog(str(tmp_path_factory.mktemp("wh"))).create_table("db.t", ROWS.schema)
    made.append(ROWS.slice(0, 300))
    made.append(ROWS.slice(300))
    return made


def run_of(folder: Path, table: icebench.Table, **more: Any) -> Finished:
    values = {
        "name": "x",
        "engines": ["icebench", "duckdb"],
        "measurements": ["remote"],
        "workload": {"kind": "table", "path": table.metadata_location},
        "filters": {"few": "id >= 350"},
        "remote": {"profiles": ["same-region"], "columns": ["id"]},
        "repetitions": 2,
        "warmups": 0,
        "warm_seconds": 0,
        **more,
    }
    return run_experiment(parse_values(values), where=surroundings_of(folder))


def test_each_store_is_read_and_reported(tmp_path: Path, table: icebench.Table) -> None:
    found = run_of(tmp_path, table)
    assert not found.run.failures
    assert not found.run.skipped
    cases = [f"{store}, few" for store in ("no-delay", "same-region")]
    timed = [record for record in found.records if record.metric == "scan_time_cold"]
    assert {(r.case, r.engine) for r in timed} == {(case, name) for case in cases for name in ("icebench", "duckdb")}
    assert {record.counters["rows_returned"] for record in timed} == {50}
    added = {r.case: r for r in found.records if r.metric == "scan_time_cold_added" and r.engine == "icebench"}
    assert added.keys() == {"same-region, few"}
    own = {record.case: record for record in timed if record.engine == "icebench"}
    assert {own[case].counters["storage_requests_read"] for case in cases} == {3}
    # metadata.json, the list, manifests at once, a file: two requests each, one after the other.
    assert min(own[cases[1]].samples) > 8 * 0.030
    measured = next(each for each in found.run.measured if each.case.engine == "icebench")
    with pytest.raises(ConfigError, match=r"only the query: table\.scan"):
        program_of(found.run, measured)
    report = build_report(found.run, results_file="x")
    (section,) = [section for section in report.sections if section.key == "remote"]
    assert [each.title for each in section.tables][:2] == [
        "Time of the remote read: what is added",
        "Time of the remote read",
    ]
    assert any("Reading from a store (same-region)" in finding.statement for finding in report.findings)


def test_all_rows_and_several_stores(tmp_path: Path, table: icebench.Table) -> None:
    remote = {"profiles": ["local", "cross-region"], "everything": True}
    found = run_of(tmp_path, table, engines=["icebench"], remote=remote, repetitions=1)
    cases = {m.case.label: m.evidence.counters["rows_returned"] for m in found.run.measured}
    stores = ("no-delay", "local", "cross-region")
    assert cases == {f"{store}, {name}": rows for store in stores for name, rows in (("all", 400), ("few", 50))}


def test_who_reads_wrong_rows_from_there_is_not_timed(
    tmp_path: Path, table: icebench.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    right: Callable[..., Any] = Icebench.batches

    def batches(self: Icebench, handle: icebench.Table, columns: Any, filter: str | None) -> Any:
        found = right(self, handle, columns, filter)
        return list(found)[1:] if "same-region" in handle.location else found

    monkeypatch.setattr(Icebench, "batches", batches)
    found = run_of(tmp_path, table, filters={"many": "id >= 250"})
    assert [(f.engine, f.kind, f.case) for f in found.run.failures] == [
        ("icebench", "WrongAnswer", "same-region, many")
    ]


def test_a_table_that_cannot_be_copied_is_skipped(tmp_path: Path) -> None:
    properties = {"write.data.path": str(tmp_path / "elsewhere")}
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", ROWS.schema, properties=properties)
    made.append(ROWS)
    found = run_of(tmp_path, made)
    assert not found.run.measured
    assert all("elsewhere" in each.reason for each in found.run.skipped)
    assert found.run.skipped


def test_deletes_are_read_from_there_too(tmp_path: Path) -> None:
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", ROWS.schema)
    made.append(ROWS)
    made.delete("id = 399", mode="merge-on-read")
    found = run_of(tmp_path, made)
    assert not found.run.failures
    assert {m.evidence.counters["rows_returned"] for m in found.run.measured} == {49}


def test_without_a_server_it_is_skipped(tmp_path: Path, table: icebench.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[str, Delay]] = []

    def missing(delays: Mapping[str, Delay]) -> None:
        asked.append(delays)
        raise EngineMissing("no moto")

    monkeypatch.setattr(preparation, "delayed_s3", missing)
    found = run_of(tmp_path, table)
    assert not found.run.measured
    assert {each.reason for each in found.run.skipped} == {"no moto"}
    (delays,) = asked
    assert delays.keys() == {"no-delay", "local", "same-region", "cross-region"}
    assert delays["no-delay"].of(1 << 40) == 0
    assert delays["same-region"].of(90_000_000) == pytest.approx(0.030 + 1)
    assert delays["cross-region"].of(0) == pytest.approx(0.110)


def test_stores_are_profiles(tmp_path: Path, table: icebench.Table) -> None:
    with pytest.raises(ConfigError, match=r"remote\.profiles.*same-region"):
        run_of(tmp_path, table, remote={"profiles": ["same-regoin"]})
