"""What a report takes from the kept runs of its machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from icebench.bench.execution.run_file import Run, RunWriter, read_run
from icebench.bench.records.case import Case, Cost, Evidence, Measured, Sample
from icebench.bench.report.build import build_report
from icebench.bench.report.compare import Records
from icebench.bench.report.kept_runs import MOST_RUNS, observed_of, with_spread
from icebench.bench.statistics.process_spread import ASSUMED, FEWEST_RUNS

HERE = {"id": "e", "hardware": {"cores": 2}, "definition": {"processes": 3}}
CASE = Case(workload="w", layout="monthly", cache="cold", engine="icebench", measurement="planning")


def write(path: Path, *, seed: int, environment: Mapping[str, Any] = HERE, failed: bool = False) -> Path:
    """A run of two engines that differ by about 30 % from one process to the next."""
    random = np.random.default_rng(seed)
    with RunWriter(path, run_id=path.stem, environment=environment) as writer:
        for case in (CASE, replace(CASE, engine="pyiceberg")):
            writer.case(Measured(case=case, engine_version="1", evidence=Evidence()))
            for process in range(3):
                favour = random.normal(0, 0.3)
                for number in range(4):
                    seconds = math.exp(favour + random.normal(0, 0.01))
                    cost = Cost(wall=seconds, cpu=seconds)
                    writer.sample(case, Sample(process=process, round=number, cost=cost))
        writer.close(failed=failed)
    return path


def kept(folder: Path, count: int, **how: Any) -> list[Path]:
    return [write(folder / f"run-{number}.jsonl", seed=number, **how) for number in range(count)]


def spread_of(paths: list[Path], run: Run | None = None) -> tuple[float, int]:
    found = with_spread(run or read_run(paths[-1]), paths).spread
    return found.deviation, found.runs


def test_runs_of_the_same_machine_replace_what_is_assumed(tmp_path: Path) -> None:
    deviation, runs = spread_of(kept(tmp_path, 12))
    assert 0.2 < deviation < 0.5
    assert runs == 12


def test_workloads_share_no_rounds(tmp_path: Path) -> None:
    """So a run of two shows what each shows."""
    runs = [read_run(write(tmp_path / f"{seed}.jsonl", seed=seed)) for seed in (1, 2)]
    first, second = (Records(run.records) for run in runs)
    renamed = tuple(replace(record, workload="v") for record in second.all)
    assert list(observed_of(Records((*first.all, *renamed)))) == [*observed_of(first), *observed_of(second)]


def test_fewer_runs_than_are_needed_leave_what_is_assumed(tmp_path: Path) -> None:
    assert spread_of(kept(tmp_path, FEWEST_RUNS - 1)) == (ASSUMED.deviation, 0)


def test_runs_that_say_nothing_of_this_machine_are_left_out(tmp_path: Path) -> None:
    run = read_run(kept(tmp_path / "own", 1)[0])
    elsewhere = kept(tmp_path / "elsewhere", 5, environment={**HERE, "hardware": {"cores": 64}})
    single = kept(tmp_path / "single", 5, environment={**HERE, "definition": {"processes": 1}})
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text("no run\n")
    assert spread_of([*elsewhere, *single, damaged, tmp_path / "missing.jsonl"], run) == (ASSUMED.deviation, 0)
    assert spread_of(kept(tmp_path / "more", 5), run)[1] == 5


def test_runs_that_are_cut_off_are_among_those_that_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, read = kept(tmp_path / "own", FEWEST_RUNS), Mock(side_effect=read_run)
    cut = kept(tmp_path / "cut", MOST_RUNS + 5)
    for path in cut:
        path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr("icebench.bench.report.kept_runs.read_run", read)
    assert spread_of([*own, *cut], read_run(own[0])) == (ASSUMED.deviation, 0)
    assert [given for (given,), _ in read.call_args_list] == cut[: -MOST_RUNS - 1 : -1]


def test_the_report_says_which_was_used(tmp_path: Path) -> None:
    run = with_spread(read_run(kept(tmp_path, 4)[0]), sorted(tmp_path.glob("*.jsonl")))
    notes = {fact.name: fact.value for fact in build_report(run, results_file="r").glossary}
    assert "estimated from 4 runs of this machine" in notes["Claim"]
    plain = {fact.name: fact.value for fact in build_report(replace(run, spread=ASSUMED), results_file="r").glossary}
    assert f"{100 * ASSUMED.deviation:.2g} %, assumed" in plain["Claim"]
