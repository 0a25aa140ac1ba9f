"""Event logs that Spark writes of queries on Iceberg Java's tables, beside what the queries say."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.advise.queries import parse_queries, read_queries

NAME = "iceberg_java.logged.events"
CONDITIONS = [
    "id > 3 and id <= 70",
    "day = date'2020-02-11'",
    "day in (date'1969-12-30', date'2020-02-11') or day is null",
    "at < timestamp'2020-03-01 12:30:00.000001'",
    "local >= timestamp_ntz'1969-12-31 23:59:59'",
    "price >= 12.5 and not (price = 20.00)",
    "name like 'n1%' and name <> 'n11'",
    "nested.a in (1, 2, 5)",
    "id between -4 and 9 and name is not null",
    "f > 0.5",
]
"""Conditions that Spark gives to Iceberg whole."""


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Iterator[icebench.Table]:
    spark.sql(
        f"create table {NAME} (id bigint, day date, at timestamp, local timestamp_ntz, price decimal(9,2), "
        "name string, nested struct<a: int, b: string>, f double) using iceberg"
    )
    spark.sql(f"create table {NAME}_others (id bigint) using iceberg")
    spark.sql(
        f"insert into {NAME} select id, if(id = 7, null, date_add(date'2020-01-01', cast(id as int))), "
        "timestamp'2020-01-01 00:00:00' + make_interval(0, 0, 0, cast(id as int)), "
        "timestamp_ntz'1969-12-20 00:00:00' + make_interval(0, 0, 0, cast(id as int)), "
        "cast(id * 1.25 as decimal(9,2)), if(id % 9 = 0, null, concat('n', id)), "
        "named_struct('a', cast(id % 7 as int), 'b', 'b'), id / 100 "
        "from range(-10, 100)"
    )
    warehouse = spark.conf.get("spark.sql.catalog.iceberg_java.warehouse")
    yield icebench.load_catalog(str(warehouse)).load_table("logged.events")
    for each in (NAME, f"{NAME}_others"):
        spark.sql(f"drop table {each} purge")


def logged(spark: SparkSession, home: Path, run: Callable[[], None], codec: str | None, *, rolled: bool) -> Path:
    """The log of what is run, as a session with ``spark.eventLog.enabled`` writes it."""
    context, jvm = spark.sparkContext._jsc.sc(), spark.sparkContext._jvm
    assert jvm is not None
    conf = context.conf().clone()
    conf.set("spark.eventLog.compress", str(codec is not None).lower())
    conf.set("spark.eventLog.compression.codec", codec or "zstd")
    conf.set("spark.eventLog.rolling.enabled", str(rolled).lower())
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    place, none = jvm.java.net.URI.create(f"file:{home}"), jvm.scala.Option.apply(None)
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener("app-1", none, place, conf, configuration)
    listener.start()
    context.addSparkListener(listener)
    run()
    context.listenerBus().waitUntilEmpty()
    context.removeSparkListener(listener)
    listener.stop()
    (log,) = (each for each in home.iterdir() if not each.name.startswith("."))
    return log


@pytest.mark.parametrize(
    ("codec", "rolled"), [(None, False), ("zstd", True), ("lz4", False), ("zstd", False), ("gzip", False)]
)
def test_plans_of_spark_say_what_the_queries_do(
    spark: SparkSession, table: icebench.Table, tmp_path: Path, codec: str | None, *, rolled: bool
) -> None:
    """The filters of a log keep the rows that Spark keeps, whatever it is compressed by."""
    kept: list[list[int]] = []

    def run() -> None:
        spark.table(f"{NAME}_others").collect()
        read = (spark.table(NAME).where(condition).select("id", "day") for condition in CONDITIONS)
        kept.extend(sorted(row.id for row in each.collect()) for each in read)

    log = logged(spark, tmp_path, run, None if codec == "gzip" else codec, rolled=rolled)
    if codec == "gzip":
        log.write_bytes(gzip.compress(log.read_bytes()))
    found = read_queries(log, table)
    assert (found.unused, found.others) == ((), 1)
    assert len(found.queries) == len(CONDITIONS)
    for query, rows, condition in zip(found.queries, kept, CONDITIONS, strict=True):
        assert query.filter is not None
        assert sorted(table.scan(filter=query.filter).to_arrow()["id"].to_pylist()) == rows, condition
        (own,) = parse_queries(f"select id, day from events where {condition}", table, dialect="spark").queries
        assert query.columns == own.columns
        assert set(query.equalities) >= set(own.equalities), condition


def test_sql_counts_where_spark_has_it(spark: SparkSession, table: icebench.Table, tmp_path: Path) -> None:
    """As the Thrift server gives it; of commands and joins the plan. A query whose filter has strings that Iceberg does
    not quote is left out, and named."""

    def run() -> None:
        sql = f"select name from {NAME} e join {NAME}_others o on e.id = o.id where e.id = 4"
        spark.sparkContext.setJobDescription(sql)
        spark.sql(sql).collect()
        spark.sparkContext.setJobDescription("a nightly report")
        spark.sql(f"insert into {NAME}_others select id from {NAME} where id = 5").collect()
        spark.sql(f"select id from {NAME} where name = 'it''s'").collect()
        spark.sparkContext.setLocalProperty("spark.job.description", "")

    found = read_queries(logged(spark, tmp_path, run, None, rolled=False), table)
    of_sql, of_command = found.queries
    assert (of_sql.filter, of_sql.join_keys, of_sql.columns) == ('("id" = 4)', ("id",), ("id", "name"))
    assert (of_command.filter, of_command.weight, of_command.columns) == ('("id" = 5)', 1.0, ("id",))
    assert [each.reason for each in found.unused][-1] == "no SQL: names and quotes are not escaped in plans"
    with (log := tmp_path / "cut").open("w") as file:
        file.write(next(each for each in tmp_path.iterdir() if each.name == "app-1").read_text()[:-40])
    assert read_queries(log, table).queries == found.queries
