"""The harness on Spark: layouts, Iceberg Java as an engine, and whole measurements of tables that Java wrote."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from bench.cli.run import of_tables
from bench.engines.engine import AnyEngine
from bench.engines.registry import EngineContext, make_engine
from bench.experiment import parse_values
from bench.layouts.registry import LAYOUTS
from bench.measure.brute.metadata import metadata_file
from bench.measure.cache import DatasetCache
from bench.measure.raw_files import find_or_write
from bench.measure.run import Finished, Surroundings, run_experiment
from bench.workloads.definitions import TpcdsWorkload

FILES = 12
ROWS = TpcdsWorkload(scale=0.005, seed=3).rows
JAVA_FILTERS = ("day >= '2000-03-05' and day < '2000-03-07'", "label = 's3' and price > 100.50", "id is null")
ENGINES = ("icebench", "pyiceberg", "iceberg-java", "duckdb", "polars")


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    cache = DatasetCache(tmp_path_factory.mktemp("raw"))
    frame = find_or_write(ROWS, cache, lambda: spark).frame(spark, FILES)
    assert frame.rdd.getNumPartitions() == FILES
    return frame


def partitions(frame: DataFrame, *columns: Column) -> list[Row]:
    """One row of aggregates for every Spark partition that is not empty, by partition."""
    return frame.groupBy(F.spark_partition_id().alias("partition")).agg(*columns).orderBy("partition").collect()


def everything(frame: DataFrame) -> Sequence[object]:
    columns = [F.sum(F.xxhash64(*frame.columns).cast("decimal(38,0)")), F.count("*")]
    return tuple(frame.agg(*columns).collect()[0])


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_rearranges_and_changes_nothing(rows: DataFrame, name: str) -> None:
    arranged = LAYOUTS[name].arrange(rows, files=FILES)
    assert arranged.schema == rows.schema
    assert everything(arranged) == everything(rows)


def test_arrival_order_is_kept(rows: DataFrame) -> None:
    first, last = F.min("ss_ticket_number").alias("first"), F.max("ss_ticket_number").alias("last")
    found = partitions(LAYOUTS["unpartitioned"].arrange(rows, files=FILES), first, last)
    assert len(found) == FILES
    assert all(a["last"] <= b["first"] for a, b in pairwise(found))
    with pytest.raises(ValueError, match="needs the source in 7 partitions, not 12"):
        LAYOUTS["unpartitioned"].arrange(rows, files=7)


def test_a_month_has_spark_partitions_of_its_own(rows: DataFrame) -> None:
    month = F.trunc("ss_sold_date", "month")
    months = rows.select(month).distinct().count()
    for files in (FILES, 2 * months):
        count = F.size(F.collect_set(F.coalesce(month.cast("string"), F.lit("none")))).alias("months")
        found = partitions(LAYOUTS["monthly"].arrange(rows, files=files), count)
        assert {row["months"] for row in found} == {1}
        wanted = months * max(1, round(files / months))
        assert (
            0.9 * wanted < len(found) <= wanted
        )  # the few tickets of a small month may all fall into one of its parts


def test_items_are_sorted_over_all_files(rows: DataFrame) -> None:
    arranged = LAYOUTS["sorted"].arrange(rows, files=FILES)
    low, high = F.min("ss_item_sk").alias("low"), F.max("ss_item_sk").alias("high")
    found = partitions(arranged, low, high, F.count("*").alias("rows"))
    assert len(found) == FILES
    assert all(a["high"] < b["low"] for a, b in pairwise(found))
    assert max(row["rows"] for row in found) < 1.3 * rows.count() / FILES
    items = [row[0] for row in arranged.select("ss_item_sk").collect()]
    assert items == sorted(items)


@pytest.fixture(scope="module", params=[2, 3], ids=["v2-positions", "v3-vectors"])
def java_table(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    """A table that Iceberg Java partitioned, filled and deleted from, merge-on-read: 450 of 500 rows live."""
    name = f"iceberg_java.measure.deleting_v{request.param}"
    spark.sql(
        f"CREATE OR REPLACE TABLE {name} (id BIGINT, day DATE, price DECIMAL(9,2), big DECIMAL(20,4), label STRING,"
        " ts TIMESTAMP_NTZ) USING iceberg PARTITIONED BY (months(day)) TBLPROPERTIES ("
        f"'format-version'='{request.param}', 'write.delete.mode'='merge-on-read', 'write.delete.granularity'='file')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, date_add(DATE'2000-01-01', CAST(id % 200 AS INT)), CAST(id * 1.25 AS"
        " DECIMAL(9,2)), CAST(id * -123456789.5 AS DECIMAL(20,4)), concat('s', id % 17),"
        " CAST(timestamp_micros(id * 1000003) AS TIMESTAMP_NTZ) FROM range(500)"
    )
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    location = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").collect()[0]["data_type"]
    return str(location)


@pytest.fixture
def where(spark: SparkSession, tmp_path: Path) -> Surroundings:
    return Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=lambda: spark)


def measured(path: str, where: Surroundings, filters: Sequence[str] = JAVA_FILTERS) -> Finished:
    chosen = {"engines": list(ENGINES), "measurements": ["pruning", "decimals", "deletes"], "repetitions": 1}
    values = {**of_tables([path], filters).values, **chosen, "warmups": 0, "warm_seconds": 0}
    return run_experiment(parse_values(values), where=where)


def check(found: Finished) -> None:
    """All engines deliver the same rows, none plans too little, and the deletes are applied."""
    assert found.run.failures == ()
    by_case = {(r.measurement, r.case, r.metric, r.engine): r for r in found.records}
    for engine in ENGINES:
        assert by_case["decimals", "all", "scan_time", engine].counters["rows_returned"] == 450
        assert by_case["deletes", "none", "scan_time", engine].counters["rows_returned"] == 500
        assert by_case["deletes", "deletes", "scan_time", engine].counters["rows_deleted"] == 50
    recalls = {r.samples for r in found.records if r.metric == "recall"}
    assert recalls == {(1.0,)}


def test_every_engine_measures_a_table_of_java(java_table: str, where: Surroundings) -> None:
    found = measured(java_table, where)
    check(found)
    pruned = {r.engine: r.counters for r in found.records if (r.metric, r.case) == ("recall", JAVA_FILTERS[0])}
    assert {counters["files_planned"] for counters in pruned.values()} == {1}
    assert pruned["iceberg-java"]["manifests_in_list"] == 1
    assert pruned["iceberg-java"]["entries_skipped"] == 6


def test_and_when_it_was_moved(java_table: str, where: Surroundings, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(java_table.removeprefix("file:"), tmp_path / "moved")
    shutil.move(java_table.removeprefix("file:"), kept)
    try:
        check(measured(str(tmp_path / "moved"), where, JAVA_FILTERS[:1]))
    finally:
        shutil.move(kept, java_table.removeprefix("file:"))


@pytest.fixture(scope="module")
def java(spark: SparkSession) -> AnyEngine:
    return make_engine("iceberg-java", EngineContext(spark=lambda: spark))


def test_java_plans_in_the_jvm_and_forgets_between_handles(
    java: AnyEngine, java_table: str, spark: SparkSession
) -> None:
    location = metadata_file(java_table.removeprefix("file:"))
    handle = java.open(location)
    compiled = java.compile(handle, JAVA_FILTERS[0])
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
    plan = java.plan(handle, compiled)
    assert len(plan.files) == plan.counters["files_planned"] == 1
    assert plan.counters["delete_files_planned"] == 1
    assert spark.sparkContext.statusTracker().getJobIdsForGroup(None) == jobs
    # The filter's view does not stay behind.
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("icebench_filter")]
    assert java.plan(java.open(location), compiled).files == plan.files


@pytest.mark.parametrize("filter", ["nothing = 1", "id = = 1"])
def test_java_refuses_wrong_filters(java: AnyEngine, java_table: str, filter: str) -> None:
    handle = java.open(metadata_file(java_table.removeprefix("file:")))
    with pytest.raises(Exception, match=r"(?i)nothing|syntax"):
        java.compile(handle, filter)
