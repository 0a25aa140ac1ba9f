"""Datasets: generated, written by this project's engine through Spark, deleted from, and measured as a whole."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from icebench.bench.execution.run_file import read_run
from icebench.bench.experiment import Experiment, parse_experiment
from icebench.bench.records.record import Record
from icebench.bench.runs.run import Finished, Surroundings, run_experiment
from icebench.bench.workloads.tpcds import Tpcds

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# What reads rows does so on one table with partitions and one without: a third repeats what the second does.
DEFINITION = """
name = "tiny"
layouts = ["unpartitioned", "monthly", "sorted"]
engines = ["icebench", "icebench-spark", "pyiceberg", "iceberg-java", "duckdb", "polars"]
repetitions = 1
warmups = 0
warm_seconds = 0
[workload]
kind = "tpcds"
scale = 0.005
wide_decimals = true
[table]
files = 12
[filters]
one_month = "ss_sold_date >= '2000-11-01' and ss_sold_date < '2000-12-01'"
one_item = "ss_item_sk = 7"
no_date = "ss_sold_date is null"
[decimals]
layouts = ["monthly", "sorted"]
[filtered]
layouts = ["monthly", "sorted"]
[deletes]
layouts = ["unpartitioned", "monthly"]
fractions = [0.05]
refresh = true
kinds = ["position", "equality"]
"""
ROWS = Tpcds(scale=0.005, seed=1).row_count("store_sales")


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return parse_experiment(DEFINITION)


@pytest.fixture(scope="module")
def where(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Surroundings:
    folder = tmp_path_factory.mktemp("datasets")
    return Surroundings(cache=folder / "cache", results=folder / "runs", session=lambda: spark)


@pytest.fixture(scope="module")
def result(experiment: Experiment, where: Surroundings) -> Finished:
    return run_experiment(experiment, where=where)


def of(result: Finished, *key: str) -> Record:
    return next(record for record in result.records if (*record.key[1:-2], record.metric) == key)


def test_all_engines_agree_on_everything(result: Finished) -> None:
    assert result.run.failures == ()
    assert {record.engine for record in result.records if record.measurement == "decimals"} == {
        "icebench",
        "icebench-spark",
        "pyiceberg",
        "iceberg-java",
        "duckdb",
        "polars",
    }
    assert {record.engine for record in result.records if record.measurement == "planning"} == {
        "icebench",
        "pyiceberg",
        "iceberg-java",
    }
    assert read_run(result.path).complete


def test_all_layouts_have_the_same_rows(result: Finished) -> None:
    found = {r.checksum for r in result.records if r.measurement == "decimals"}
    assert len(found) == 1
    assert of(result, "sorted", "icebench", "decimals", "all", "scan_time_cold").counters["rows_returned"] == ROWS
    assert "ss_wide_38_6" in of(result, "sorted", "icebench", "decimals", "all", "scan_time_cold").detail["columns"]
    for case in ("5%", "5%, by equality", "refresh"):
        assert len({r.checksum for r in result.records if r.case == case}) == 1


def test_layouts_prune_what_they_are_for(result: Finished) -> None:
    def planned(layout: str, case: str) -> float:
        return of(result, layout, "icebench", "pruning", case, "files_planned_share").samples[0]

    assert planned("unpartitioned", "one_month") == planned("unpartitioned", "one_item") == 1
    assert planned("monthly", "one_month") <= 1 / 61
    assert planned("monthly", "no_date") <= 1 / 61
    assert planned("sorted", "one_item") <= 2 / 12


def test_deletes_take_what_they_say(result: Finished) -> None:
    few = of(result, "monthly", "icebench-spark", "deletes", "5%", "delete_cost_cold").counters["rows_deleted"]
    assert 0.02 * ROWS < few < 0.09 * ROWS
    refresh = of(result, "monthly", "icebench", "deletes", "refresh", "delete_cost_cold").counters["rows_deleted"]
    assert 0 < refresh < 0.02 * ROWS


def test_the_second_run_builds_nothing(
    experiment: Experiment, where: Surroundings, result: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(where.cache.rglob("*"))

    def no_session() -> SparkSession:
        raise AssertionError("nothing has to be built")

    quiet = Surroundings(cache=where.cache, results=where.results, session=no_session)
    again = run_experiment(experiment.adjusted(only=["icebench", "pruning"]), where=quiet)
    assert again.run.failures == ()
    assert sorted(where.cache.rglob("*")) == before
    now = of(again, "sorted", "icebench", "pruning", "one_item", "recall")
    assert now.counters == of(result, "sorted", "icebench", "pruning", "one_item", "recall").counters
