from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from asv.config import Config
from asv.machine import Machine, MachineCollection
from asv.runner import BENCHMARK_RUN_SCRIPT

import icebench
from icebench.bench.asv_run import ROOT, AsvFailed, machine_facts, revision
from icebench.bench.cli.history_store import record_revision
from icebench.bench.gate.cases.tables import Scale, build
from icebench.bench.gate.decisions.history import Entry, Measured
from icebench.bench.suites.cases import Cases, pruning_of


def test_the_machine_file_has_every_field_that_asv_asks_for(tmp_path: Path) -> None:
    facts = machine_facts("box")
    assert set(facts) == {name for name, _ in Machine.fields}
    assert all(facts.values())
    path = tmp_path / "machines.json"
    MachineCollection.save("box", facts, _path=str(path))
    assert Machine.load(machine_name="box", _path=str(path), interactive=False).__dict__ == facts


def test_a_directory_without_git_is_reported_in_one_line(tmp_path: Path) -> None:
    def refuse(command: Sequence[str]) -> str:
        raise subprocess.CalledProcessError(128, list(command))

    with pytest.raises(AsvFailed, match="is not a git checkout, and asv files results by commit"):
        revision(tmp_path, refuse)
    assert revision(tmp_path, lambda _: "abc\n") == "abc"


def test_the_configuration_is_one_that_asv_takes_and_leads_to_what_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = Config.load("asv.conf.json")
    assert Path(config.benchmark_dir, "__init__.py").is_file()
    assert config.results_dir.startswith("results/asv/")
    assert config.launch_method == "spawn"


def test_asv_finds_each_benchmark_once(tmp_path: Path) -> None:
    """As asv does it: in another directory, with the suite imported under its own name."""
    target = tmp_path / "found.json"
    command = [sys.executable, BENCHMARK_RUN_SCRIPT, "discover", str(ROOT / "bench" / "suites"), str(target)]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, timeout=100)
    found = [benchmark for benchmark in json.loads(target.read_text(encoding="utf-8")) if "name" in benchmark]
    names = [benchmark["name"] for benchmark in found]
    assert sorted(names) == [
        "cases.Cases.peakmem_case",
        "cases.Cases.time_case",
        "cases.Cases.track_arrow_bytes_allocated",
        "cases.Cases.track_entries_decoded",
        "cases.Cases.track_file_system_calls",
        "cases.Cases.track_function_calls",
        "cases.Cases.track_parquet_bytes_inflated",
        "cases.Cases.track_parquet_values_decoded",
        "cases.Cases.track_storage_requests_range_read",
        "cases.Cases.track_storage_requests_read",
        "cases.Pruning.track_false_positive_rate",
        "cases.Pruning.track_files_planned",
        "cases.Pruning.track_recall",
        "cases.Spark.time_scan",
    ]
    # One key, so that the tables are prepared once for all.
    assert len({benchmark["setup_cache_key"] for benchmark in found}) == 1
    assert {benchmark["version"] for benchmark in found} == {"2"}
    assert all(benchmark["timeout"] == 600 for benchmark in found)
    # Of the processor: a clock measures how busy the machine is.
    assert Cases.timer is time.process_time
    units = {b["name"].rpartition(".")[2]: b["unit"] for b in found}
    assert units["track_files_planned"] == "files"
    assert units["track_recall"] == "ratio"


def test_pruning_is_held_against_the_files_that_hold_a_matching_row(tmp_path: Path) -> None:
    with closing(icebench.load_catalog(str(tmp_path))) as catalog:
        build(catalog, Scale(rows=6_000, files=10))
    found = pruning_of(str(tmp_path), "scan/partitioned/partition-filter")
    assert found["recall"] == 1
    assert 0 < found["files_planned_share"] < 1
    assert found["files_matching_share"] <= found["files_planned_share"]
    everything = pruning_of(str(tmp_path), "scan/partitioned/unprunable")
    assert everything["files_planned"] > found["files_planned"] > 0


def recorded(revision: str) -> Entry:
    return Entry(
        revision=revision,
        number=1,
        date="2026-01-01T00:00:00+00:00",
        subject="a suite",
        reference="f" * 40,
        pairs=1,
        cases={
            "commit/a": Measured(ratio=1.0, samples=(1.0,), counters={"files_written": 2}),
            "scan/a": Measured(ratio=1.5, samples=(1.5,), counters={"files_planned": 3}),
            "scan/b": Measured(error="ImportError"),
        },
    )


def test_a_suite_runs_for_the_checked_out_commit_beside_the_history_and_asv_reads_both(tmp_path: Path) -> None:
    """A small suite in a repository of its own, with our configuration, and nothing written outside it."""
    suite = tmp_path / "checkout" / "bench" / "suites"
    suite.mkdir(parents=True)
    (suite / "__init__.py").touch()
    (suite / "small.py").write_text(
        "class Small:\n"
        "    params = [1, 2]\n"
        "    number, rounds, repeat, warmup_time = 1, 1, 2, 0\n"
        "    def time_nothing(self, n): pass\n"
        "    def track_square(self, n): return n * n\n",
        encoding="utf-8",
    )
    checkout = suite.parents[1]
    (checkout / "asv.conf.json").write_text((ROOT / "asv.conf.json").read_text(encoding="utf-8"), encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("git", "init", "--quiet", "--initial-branch=topic")
    run("git", "add", ".")
    run("git", "commit", "--quiet", "--message", "a suite")
    record_revision(checkout / "results" / "asv" / "results", recorded(run("git", "rev-parse", "HEAD").strip()))
    facts = dict.fromkeys((name for name, _ in Machine.fields), "x") | {"machine": "box"}
    imports = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from icebench.bench import asv_run; from pathlib import Path"
    )
    run(sys.executable, "-c", f"{imports}; asv_run.run_suite(Path('.'), facts={facts})")
    listed = checkout / "results" / "asv" / "results" / "benchmarks.json"
    benchmarks = json.loads(listed.read_text(encoding="utf-8"))
    assert set(benchmarks) > {"history.time_ratio", "history.track_files_planned", "small.Small.time_nothing"}
    # As after a plain `asv run`.
    listed.write_text(
        json.dumps({k: v for k, v in benchmarks.items() if not k.startswith("history")}), encoding="utf-8"
    )
    run(sys.executable, "-c", f"{imports}; asv_run.publish(Path('.'))")
    assert list(home.iterdir()) == []
    assert (checkout / "results" / "asv" / "results" / "box" / "machine.json").is_file()
    shown = run(sys.executable, "-m", "asv", "show", "HEAD", "--machine", "box")
    assert "small.Small.time_nothing" in shown
    assert re.search(r"\b1\s+1\b", shown)
    assert re.search(r"\b2\s+4\b", shown)
    ratio = run(sys.executable, "-m", "asv", "show", "HEAD", "--machine", "history")
    assert re.search(r"scan/a\s+1\.5\b", ratio), ratio
    planned = ratio[ratio.index("history.track_files_planned") : ratio.index("history.track_files_written")]
    assert [line.split() for line in planned.splitlines() if "/" in line][1:-1] == [
        ["1/3", "failed"], ["commit/a", "n/a"], ["scan/a", "3"], ["scan/b", "failed"],
    ]  # fmt: skip
    plotted = {path.stem for path in (checkout / "results" / "asv" / "html" / "graphs").rglob("*.json")}
    assert {"small.Small.time_nothing", "history.time_ratio", "history.track_files_planned"} <= plotted
