"""One run of a reading workload at a small size: everything that it has is measured and reported."""

from pathlib import Path
from typing import Any

import pytest

from icebench.bench.experiment import Experiment, parse_values
from icebench.bench.report.build import build_report
from icebench.bench.runs.run import run_experiment, surroundings_of
from icebench.bench.tables.reading_tables import ReadingTables
from tests.unit.bench.test_experiment import reading


def experiment(more: dict[str, Any] | None = None, **workload: Any) -> Experiment:
    return parse_values({**reading(**workload), "repetitions": 1, "warmups": 0, "warm_seconds": 0, **(more or {})})


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of large row groups is another one, which pyarrow writes: what is tested is not the writer."""
    monkeypatch.setattr(
        ReadingTables, "by_iceberg_java", lambda self, rows, seed: self.integers(rows, seed, decimals=True)
    )


@pytest.mark.usefixtures("without_spark")
def test_large_row_groups_are_read_by_fresh_processes(tmp_path: Path) -> None:
    chosen = experiment(parts=["large"], large={"rows": 3000})
    result = run_experiment(chosen, where=surroundings_of(tmp_path))
    assert not result.run.failures
    found = {(r.metric, r.engine): r for r in result.records}
    assert found.keys() == {
        (metric, reader)
        for metric in ("scan_fresh", "scan_cpu_first", "scan_cpu_second", "memory_peak")
        for reader in ("icebench", "pyiceberg", "pyarrow")
    }
    assert all(record.samples[0] > 0 for record in found.values())
    assert {record.counters["rows_returned"] for record in found.values()} == {3000}
    report = build_report(result.run, results_file="x")
    (section,) = [s for s in report.sections if s.key == "reading"]
    assert "Rise of resident memory from when the engine was ready, by a process's scans" in [
        t.title for t in section.tables
    ]


@pytest.mark.usefixtures("without_spark")
def test_a_fresh_process_that_reads_other_rows_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ReadingTables, "by_iceberg_java", lambda self, rows, seed: self.integers(rows + 1, seed, decimals=True)
    )
    chosen = experiment({"engines": ["icebench"]}, parts=["large"], large={"rows": 10})
    failures = run_experiment(chosen, where=surroundings_of(tmp_path)).run.failures
    assert {failure.engine for failure in failures} == {"icebench", "pyarrow"}
    assert {str(failure).partition(": ")[2] for failure in failures} == {
        "delivers 11 rows, not 10",
        "a fresh process finds 11 rows, not 10",
    }


def test_fractions_that_round_alike_are_two_cases(tmp_path: Path) -> None:
    deletes = {"rows": 5000, "files": 1, "fractions": [0.001, 0.0014], "kinds": ["vectors"], "patterns": ["random"]}
    chosen = experiment({"engines": ["icebench"]}, parts=["deletes"], deletes=deletes)
    records = run_experiment(chosen, where=surroundings_of(tmp_path)).records
    left = {
        r.case: r.counters["rows_returned"] for r in records if (r.engine, r.metric) == ("icebench", "scan_time_cold")
    }
    assert left == {"no deletes": 5000, "0.1%": 4995, "0.14%": 4993}


@pytest.mark.usefixtures("without_spark")
def test_everything_is_measured_and_reported(tmp_path: Path) -> None:
    result = run_experiment(experiment(), where=surroundings_of(tmp_path))
    assert not result.run.failures
    found = {(r.layout, r.case, r.engine) for r in result.records if r.metric == "scan_cpu_cold"}
    assert ("wide tables", "4 of 40 columns", "pyiceberg") in found
    assert ("equality deletes, clustered", "50.0%, 3 delete files", "icebench") in found
    assert ("deletion vectors, random", "1.0%", "pyiceberg") in found
    assert len({case for layout, case, _ in found if layout == "decimals"}) == 3 * 2 * 2
    small = [r for r in result.records if r.layout.startswith("3 files of 50 rows") and r.metric == "scan_time_cold"]
    assert {(r.layout, r.case): r.counters["rows_returned"] for r in small if r.engine == "icebench"} == {
        ("3 files of 50 rows", "no deletes"): 150,
        ("3 files of 50 rows", "2.0%"): 147,
        ("3 files of 50 rows, 10.0% of the rows", "no deletes"): 15,
        ("3 files of 50 rows, 10.0% of the rows", "2.0%"): 12,
    }
    assert {r.layout for r in result.records if r.metric == "scan_time_warm"} == {
        f"{files} files of 50 rows, 10.0% of the rows" for files in (1, 3)
    }
    added = {r.layout for r in result.records if r.metric == "scan_time_cold_added"}
    assert {"wide tables", "decimals against integers", "position deletes, random"} <= added
    report = build_report(result.run, results_file="x")
    (section,) = [s for s in report.sections if s.key == "reading"]
    assert [t.title for t in section.tables][:2] == [
        "Time of the scan, cold: what is added",
        "Time of the scan, cold",
    ]
