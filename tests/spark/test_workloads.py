"""Small runs of generated workloads: every engine delivers the rows of the raw files under each default filter."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icebench.bench.errors import ConfigError
from icebench.bench.execution.run_file import Run
from icebench.bench.experiment import parse_values
from icebench.bench.runs.run import Surroundings, run_experiment
from icebench.bench.spark_session import SparkSettings, spark_session

ENGINES = ("icebench", "icebench-spark", "pyiceberg", "polars", "duckdb")


def run_of(spark: SparkSession, folder: Path, workload: dict[str, Any], **more: Any) -> Run:
    values: dict[str, Any] = {
        "name": "small",
        "engines": list(ENGINES),
        "layouts": ["unpartitioned"],
        "repetitions": 1,
        "warmups": 0,
        "warm_seconds": 0,
        "workload": workload,
        "table": {"files": 3},
        **more,
    }
    where = Surroundings(cache=folder / "cache", results=folder / "runs", session=lambda: spark)
    return run_experiment(parse_values(values), where=where).run


def test_wide(spark: SparkSession, tmp_path: Path) -> None:
    workload = {"kind": "wide", "rows": 1_200, "columns": 30, "selected": 14}
    run = run_of(spark, tmp_path, workload, measurements=["filtered", "reading"], filtered={"everything": True})
    assert not run.failures
    found = {(e.case.measurement, e.case.filter, e.case.engine): e.evidence for e in run.measured}
    assert {key for key in found if key[0] == "filtered"} == {
        ("filtered", name, engine) for name in ("all", "one_percent", "one_value") for engine in ENGINES
    }
    assert {found["filtered", "all", engine].counters["rows_returned"] for engine in ENGINES} == {1_200}
    assert {found["filtered", "one_percent", engine].counters["rows_returned"] for engine in ENGINES} == {12}
    assert len({found["filtered", "all", engine].checksum for engine in ENGINES}) == 1
    readers = {engine for measurement, _, engine in found if measurement == "reading"}
    assert readers == {"icebench", "pyiceberg", "polars", "duckdb"}


def test_log(spark: SparkSession, tmp_path: Path) -> None:
    run = run_of(spark, tmp_path, {"kind": "log", "rows": 6_000}, measurements=["filtered", "deletes", "pruning"])
    assert not run.failures
    found = {(e.case.measurement, e.case.label, e.case.engine): e.evidence for e in run.measured}
    for name in ("one_hour", "one_request", "url_prefix", "errors"):
        rows = {found["filtered", name, engine].counters["rows_returned"] for engine in ENGINES}
        assert len(rows) == 1
        assert 0 < rows.pop() < 6_000
    assert found["filtered", "one_request", "icebench"].counters["rows_returned"] == 1
    assert 0 < found["deletes", "1%", "icebench"].counters["rows_deleted"] == pytest.approx(60, abs=30)


def test_a_session_with_other_settings_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=r"spark.driver.memory is .*, wanted 77m"):
        spark_session(SparkSettings(driver_memory="77m"))
