"""Queries of TPC-DS and of one's own by the engines on Spark, beside DuckDB."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.engines.engine import TookTooLong
from icebench.bench.engines.iceberg_java import IcebergJava
from icebench.bench.engines.spark_queries import spark_rows, views_session
from icebench.bench.execution.run_file import Run
from icebench.bench.experiment import parse_values
from icebench.bench.report.build import build_report
from icebench.bench.runs.run import Surroundings, run_experiment

ENGINES = ("icebench", "icebench-spark", "iceberg-java", "duckdb")


def run_of(spark: SparkSession, folder: Path, workload: dict[str, Any], queries: dict[str, Any]) -> Run:
    values = {
        "name": "small",
        "engines": list(ENGINES),
        "repetitions": 1,
        "warmups": 0,
        "warm_seconds": 0,
        "workload": workload,
        "queries": queries,
    }
    where = Surroundings(cache=folder / "cache", results=folder / "runs", session=lambda: spark)
    return run_experiment(parse_values(values), where=where).run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of TPC-DS are made once."""
    return tmp_path_factory.mktemp("tpcds")


@pytest.mark.slow
def test_four_engines_answer_queries_of_tpcds(spark: SparkSession, folder: Path) -> None:
    run = run_of(spark, folder, {"kind": "tpcds-tables", "scale": 0.01}, {"numbers": [26, 76, 98], "streams": 2})
    assert not run.failures
    assert not run.skipped
    streams = [m for m in run.measured if m.case.label == "2 streams"]
    assert {(m.case.engine, m.evidence.counters["queries"]) for m in streams} == {(engine, 6) for engine in ENGINES}
    single = [m for m in run.measured if m not in streams]
    rows = {(m.case.filter, m.case.engine): m.evidence.counters["rows_returned"] for m in single}
    assert rows.keys() == {(query, engine) for query in ("q26", "q76", "q98") for engine in ENGINES}
    assert all(rows.values())
    report = build_report(run, results_file="x")
    (section,) = [section for section in report.sections if section.key == "queries"]
    assert section.tables[0].title == "Power: all queries, relative to iceberg-java; throughput"
    assert [row[0].text for row in section.tables[0].rows] == list(ENGINES)


@pytest.mark.slow
def test_a_wrong_answer_on_spark_is_noticed(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = IcebergJava.answer
    monkeypatch.setattr(IcebergJava, "answer", lambda *args: [*answer(*args)[1:], answer(*args)[-1]])
    run = run_of(spark, folder, {"kind": "tpcds-tables", "scale": 0.01}, {"numbers": [26]})
    assert [(failure.engine, failure.kind) for failure in run.failures] == [("iceberg-java", "WrongAnswer")]


def test_zones_and_names_of_ones_own_tables(spark: SparkSession, tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    seen = pa.array([datetime(2026, 1, 1, 23, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    rows = pa.table({"ID": [1, 2], "seen": seen})
    for name in ("people", "sales"):
        catalog.create_table(f"db.{name}", rows.schema).append(rows)
    workload = {
        "kind": "tables",
        "table": [{"name": name.upper(), "path": str(tmp_path / "wh/db" / name)} for name in ("people", "sales")],
    }
    text = "select p.seen, count(*) as c from People p join SALES s on p.id = s.id group by 1 order by 1"
    run = run_of(spark, tmp_path, workload, {"sql": {"q": text}})
    assert not run.failures
    assert {m.case.engine for m in run.measured} == set(ENGINES)


def test_spark_gives_up_in_time(spark: SparkSession) -> None:
    session = views_session(spark)
    endless = "select sum(a.id * b.id) from range(0, 1000000, 1, 2) a cross join range(0, 10000000, 1, 2) b"
    with pytest.raises(TookTooLong, match="gave no answer within 1 s"):
        spark_rows(session, endless, 1)
    assert spark_rows(session, "select 1", 60) == [(1,)]
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None
