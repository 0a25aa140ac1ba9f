"""The generator as a Spark job: the same rows whatever the parallelism, with the types that the schema says."""

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from bench.errors import ConfigError
from bench.spark_session import SparkSettings, spark_session
from bench.workloads.tpcds import Tpcds

WORKLOAD = Tpcds(0.01, seed=5, skew=0.5, wide_decimals=True)


def checksum(frame: DataFrame) -> tuple[int, str]:
    """Row count and the exact sum of the rows' 64-bit hashes: equal for equal bags of rows."""
    columns = ", ".join(f"`{name}`" for name in frame.columns)
    row = frame.selectExpr(f"cast(xxhash64({columns}) as decimal(20,0)) as h").selectExpr(
        "count(*) as rows", "cast(sum(h) as string) as total"
    )
    found = row.collect()[0]
    return found["rows"], found["total"]


def test_rows_do_not_depend_on_partitions(spark: SparkSession) -> None:
    rows = WORKLOAD.row_count("store_sales")
    sums = {}
    for partitions in (1, 2, 7):
        frame = WORKLOAD.dataframe(spark, "store_sales", partitions=partitions)
        assert frame.rdd.getNumPartitions() == partitions
        sums[partitions] = checksum(frame)
    assert len(set(sums.values())) == 1
    assert sums[1][0] == rows
    # Not only equal among themselves: the rows are those that batch() makes here, in this process.
    local = spark.createDataFrame(pa.Table.from_batches([WORKLOAD.batch("store_sales", 0, rows)]))
    assert checksum(local) == sums[1]


@pytest.mark.parametrize("table", WORKLOAD.tables())
def test_tables_arrive_with_their_schema_and_rows(spark: SparkSession, table: str) -> None:
    frame = WORKLOAD.dataframe(spark, table).limit(50)
    got = frame.toArrow()
    expected = WORKLOAD.batch(table, 0, min(50, WORKLOAD.row_count(table)))
    assert got.schema.names == expected.schema.names
    assert got.schema.types == expected.schema.types
    assert got.combine_chunks().to_pylist() == expected.to_pylist()


def test_partitions_are_even_and_in_arrival_order(spark: SparkSession) -> None:
    frame = WORKLOAD.dataframe(spark, "store_sales", partitions=3).selectExpr(
        "spark_partition_id() as p", "ss_ticket_number as t"
    )
    got = frame.groupBy("p").agg({"t": "min", "*": "count"}).orderBy("p").collect()
    counts = [row["count(1)"] for row in got]
    assert max(counts) - min(counts) <= 1
    firsts = [row["min(t)"] for row in got]
    assert firsts == sorted(firsts)


def test_fewer_than_one_partition_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="0 partitions"):
        WORKLOAD.dataframe(spark, "item", partitions=0)


def test_a_session_with_other_settings_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=r"spark.driver.memory is .*, wanted 77m"):
        spark_session(SparkSettings(driver_memory="77m"))
