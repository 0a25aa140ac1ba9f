"""Definitions of kind reading, and one run of everything at a small size."""

from pathlib import Path
from typing import Any

import pytest

from bench.errors import ConfigError
from bench.measure.experiments import surroundings_of
from bench.measure.reading_experiments import run_reading_experiment
from bench.measure.reading_tables import ReadingTables
from bench.measure.run_file import read_run
from bench.reading_experiment import ReadingExperiment, load_reading_experiment, parse_reading_experiment
from bench.report.build import build_report


def values(**more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "kind": "reading",
        "name": "mine",
        "engines": ["icebench", "pyiceberg"],
        "repetitions": 2,
        "warmups": 0,
        "decimals": {"rows": 500, "precisions": [7, 38], "nulls": [0.0, 0.5]},
        "deletes": {"rows": 1000, "files": 2, "fractions": [0.01, 0.5], "equality_files": [1, 3]},
        "wide": {"rows": 100, "columns": 40, "selected": 4},
    }
    return {**made, **more}


def reading() -> ReadingExperiment:
    found = load_reading_experiment("reading")
    assert found is not None
    return found


def test_the_matrix_has_every_storage_that_writers_use() -> None:
    cells = {(cell.precision, cell.storage) for cell in reading().cells}
    assert cells == {(7, "INT32"), (7, "FIXED"), (15, "INT64"), (15, "FIXED"), (20, "FIXED"), (38, "FIXED")}
    assert len(reading().cells) == 6 * 2 * 3
    assert load_reading_experiment("quick") is None


def test_only_keeps_parts_and_engines() -> None:
    kept = reading().restricted(["wide", "icebench"], 3)
    assert (kept.parts, kept.engines, kept.repetitions.repetitions) == (("wide",), ("icebench",), 3)
    with pytest.raises(ConfigError, match="unknown name 'x'"):
        reading().restricted(["x"], None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wide": {"rows": 1, "columns": 3, "selected": 4}}, "wide.selected: more columns than the table has"),
        ({"decimals": {"rows": 1, "precisions": [7], "nulls": [1]}}, "1 is no share"),
        ({"parts": ["x"]}, "unknown part 'x'"),
        ({"nonsense": 1}, "unknown key 'nonsense'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_reading_experiment(values(**change))


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of large row groups is another one, which pyarrow writes: what is tested is not the writer."""
    monkeypatch.setattr(
        ReadingTables, "by_iceberg_java", lambda self, rows, seed: self.integers(rows, seed, decimals=True)
    )


@pytest.mark.usefixtures("without_spark")
def test_large_row_groups_are_read_by_fresh_processes(tmp_path: Path) -> None:
    experiment = parse_reading_experiment(values(parts=["large"], large={"rows": 3000}, repetitions=1))
    result = run_reading_experiment(experiment, where=surroundings_of(tmp_path))
    assert not result.failures
    found = {(r.metric, r.engine): r for r in result.records}
    assert found.keys() == {
        (metric, reader)
        for metric in ("scan_cpu_first", "scan_cpu_second", "memory_peak")
        for reader in ("icebench", "pyiceberg", "pyarrow")
    }
    assert all(record.samples[0] > 0 for record in found.values())
    assert {record.counters["rows_returned"] for record in found.values()} == {3000}
    report = build_report(read_run(result.path), results_file="x")
    (section,) = [s for s in report.sections if s.key == "reading"]
    assert "Memory that a process's scans took at most" in [t.title for t in section.tables]


@pytest.mark.usefixtures("without_spark")
def test_a_fresh_process_that_reads_other_rows_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ReadingTables, "by_iceberg_java", lambda self, rows, seed: self.integers(rows + 1, seed, decimals=True)
    )
    experiment = parse_reading_experiment(values(parts=["large"], large={"rows": 10}, engines=["icebench"]))
    result = run_reading_experiment(experiment, where=surroundings_of(tmp_path))
    assert {failure.engine for failure in result.failures} == {"icebench", "pyarrow"}
    assert "reads 11 rows, not 10" in str(result.failures[0])


@pytest.mark.usefixtures("without_spark")
def test_everything_is_measured_and_reported(tmp_path: Path) -> None:
    experiment = parse_reading_experiment(values())
    result = run_reading_experiment(experiment, where=surroundings_of(tmp_path))
    assert not result.failures
    found = {(r.layout, r.case, r.engine) for r in result.records if r.metric == "scan_cpu"}
    assert ("wide tables", "4 of 40 columns", "pyiceberg") in found
    assert ("equality deletes, clustered", "50.0%, 3 delete files", "icebench") in found
    assert ("deletion vectors, random", "1.0%", "pyiceberg") in found
    assert len({case for layout, case, _ in found if layout == "decimals"}) == 3 * 2 * 2
    added = {r.layout for r in result.records if r.metric == "scan_time_added"}
    assert {"wide tables", "decimals against integers", "position deletes, random"} <= added
    report = build_report(read_run(result.path), results_file="x")
    (section,) = [s for s in report.sections if s.key == "reading"]
    assert [t.title for t in section.tables][:2] == ["Time of the scan: what is added", "Time of the scan"]
