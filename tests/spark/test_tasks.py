"""Into how many tasks Spark cuts a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from icebench.engine.table import Table
from tests.spark.deleted_tables import open_catalog

MEGABYTES = 1 << 20
NOISE = pa.array(np.random.default_rng(1).integers(0, 2**63, 3 * MEGABYTES))
"""24 MB that no codec makes smaller."""


@pytest.fixture(scope="module")
def make_table(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Table]:
    """Tables of one file of `NOISE`, of row groups of this many bytes."""

    def make(row_group_bytes: int) -> Table:
        table = open_catalog(tmp_path_factory.mktemp("tasks")).create_table(
            "db.t",
            pa.schema([pa.field("id", pa.int64())]),
            properties={"write.parquet.row-group-size-bytes": str(row_group_bytes)},
        )
        table.append(pa.table({"id": NOISE}))
        assert table.inspect.files().num_rows == 1
        return table

    return make


@contextmanager
def settings(spark: SparkSession, **wanted: object) -> Iterator[None]:
    names = {f"spark.sql.files.{name}": str(value) for name, value in wanted.items()}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


def tasks(frame: DataFrame) -> int:
    return int(frame._jdf.queryExecution().toRdd().getNumPartitions())


def test_a_core_gets_some_tasks_but_none_gets_less_than_a_row_group(
    spark: SparkSession, make_table: Callable[[int], Table]
) -> None:
    many, one = make_table(MEGABYTES), make_table(100 * MEGABYTES)
    assert spark.sparkContext.defaultParallelism == 2
    with settings(spark, openCostInBytes=1000):
        assert tasks(spark.read.parquet(str(many.inspect.files()["file_path"][0]))) == 2
        assert tasks(many.scan().to_spark(spark)) == 8
        assert tasks(one.scan().to_spark(spark)) == 2
    frame = many.scan().to_spark(spark)
    assert frame.selectExpr("count(*)", "count(distinct id)").head() == (len(NOISE), len(NOISE))


def test_what_the_user_wants_is_not_made_coarser(spark: SparkSession, make_table: Callable[[int], Table]) -> None:
    table = make_table(MEGABYTES)
    with settings(spark, maxPartitionBytes=2 * MEGABYTES, openCostInBytes=1000):
        assert tasks(table.scan().to_spark(spark)) >= 12
    with settings(spark, minPartitionNum=20, openCostInBytes=1000):
        assert tasks(table.scan().to_spark(spark)) == 20
    with settings(spark, maxPartitionNum=1):
        assert tasks(table.scan().to_spark(spark)) == 1
    with settings(spark, minPartitionNum=3, openCostInBytes=1000):
        assert tasks(table.scan().to_spark(spark)) == 8


def test_many_small_files_are_few_tasks(spark: SparkSession, tmp_path: Path) -> None:
    table = open_catalog(tmp_path).create_table(
        "db.t",
        pa.schema([pa.field("id", pa.int64())]),
        properties={"write.target-file-size-bytes": "2000", "write.parquet.row-group-size-bytes": "2000"},
    )
    table.append(pa.table({"id": range(50_000)}))
    files = table.inspect.files().num_rows
    assert files > 50
    frame = table.scan().to_spark(spark)
    assert tasks(frame) <= 10
    assert frame.selectExpr("count(*)", "sum(id)").head() == (50_000, sum(range(50_000)))
