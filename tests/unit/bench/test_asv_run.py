from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from asv.config import Config
from asv.machine import Machine, MachineCollection
from asv.runner import BENCHMARK_RUN_SCRIPT

from bench.asv_run import ROOT, AsvFailed, machine_facts, revision


def test_the_machine_file_has_every_field_that_asv_asks_for(tmp_path: Path) -> None:
    facts = machine_facts("box")
    assert set(facts) == {name for name, _ in Machine.fields}
    assert all(facts.values())
    path = tmp_path / "machines.json"
    MachineCollection.save("box", facts, _path=str(path))
    assert Machine.load(machine_name="box", _path=str(path), interactive=False).__dict__ == facts


def test_a_directory_without_git_is_told_in_one_line(tmp_path: Path) -> None:
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
        "planning.Planning.time_cold",
        "planning.Planning.time_warm",
        "pruning.Pruning.track_entries_decoded",
        "pruning.Pruning.track_false_positive_rate",
        "pruning.Pruning.track_files_planned",
        "pruning.Pruning.track_recall",
        "scanning.Decimals.time_scan",
        "scanning.Deletes.time_scan",
    ]
    # One key, so that the tables are prepared once for all.
    assert len({benchmark["setup_cache_key"] for benchmark in found}) == 1
    assert {benchmark["version"] for benchmark in found} == {"1"}
    assert all(benchmark["timeout"] == 600 for benchmark in found)
    units = {b["name"].rpartition(".")[2]: b["unit"] for b in found}
    assert units["track_files_planned"] == "files"
    assert units["track_recall"] == "ratio"
