from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from bench.experiment import known_experiments, load_experiment
from bench.measure.estimate import Estimate, estimate
from bench.measure.run_file import RunWriter
from tests.unit.bench.report.sample_run import ENVIRONMENT, sample_run

STARTED = "2026-01-01T00:00:00+00:00"


def run_file(path: Path, digest: str, seconds: float, *, ends: bool = True, process: int = 0) -> Path:
    """A run of that definition whose last line was written so long after its start."""
    with RunWriter(path, run_id=path.stem, environment={**ENVIRONMENT, "digest": digest, "started": STARTED}) as writer:
        for measured in sample_run().measured[:3]:
            writer.case(measured)
        writer.round("w", process, 0, {"load": 1.0})
        if ends:
            writer.close(failed=False)
    stamp = datetime.fromisoformat(STARTED).timestamp() + seconds
    os.utime(path, (stamp, stamp))
    return path


def test_a_run_takes_as_long_as_the_last_of_its_definition(tmp_path: Path) -> None:
    quick = load_experiment("quick")
    runs = [
        run_file(tmp_path / "1.jsonl", quick.digest, 900),
        run_file(tmp_path / "2.jsonl", quick.digest, 600),
        run_file(tmp_path / "3.jsonl", quick.digest, 60, ends=False),
        run_file(tmp_path / "4.jsonl", quick.digest, 60_000, process=1),
        run_file(tmp_path / "5.jsonl", "another", 60),
    ]
    (tmp_path / "6.jsonl").write_text("no run\n", encoding="utf-8")
    found = estimate(quick, [*runs, tmp_path / "6.jsonl"])
    assert (found.cases, found.seconds, found.basis) == (3, 600, "as 2 took")
    assert str(found) == "3 cases, about 10 min, at most 0.0 GB of tables (as 2 took)"


def test_without_one_cases_are_counted() -> None:
    quick = load_experiment("quick")
    found = estimate(quick)
    # 3 layouts x 4 engines x (6 plans, 2 prunings, 1 scan, 2 scans of deletes, 2 filtered reads).
    assert found.cases == 3 * 4 * 13
    half = estimate(quick.adjusted(only=["icebench", "pyiceberg"]))
    assert half.cases == found.cases // 2
    longer = estimate(quick.adjusted(repetitions=30))
    assert longer.seconds > 1.5 * found.seconds
    large = estimate(quick.adjusted(scale=100))
    assert (large.size or 0) / 1e9 == pytest.approx(4 * 100 * 0.18)
    assert large.seconds > 100 * 60
    assert "rule of thumb" in str(found)


@pytest.mark.parametrize("name", known_experiments())
def test_every_definition_has_an_estimate(name: str) -> None:
    found = estimate(load_experiment(name))
    assert found.cases > 0
    assert found.seconds > 0


def test_a_size_that_is_not_known_is_said() -> None:
    assert str(Estimate(cases=1, seconds=1, size=None, basis="b")) == (
        "1 cases, about 1 min, tables of unknown size (b)"
    )
