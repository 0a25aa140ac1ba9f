"""Iceberg Java reads tables of format version 1 whose specs share field ids, before and after our changes of them.

By its own API: its tables of Spark have a column `_partition`, for which there is no struct.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from tests.unit.engine.test_shared_partition_ids import SPECS, evolved, rows


def java(spark: SparkSession, table: icebench.Table) -> list[tuple[Any, ...]]:
    jvm: Any = spark._jvm
    tables = jvm.org.apache.iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration())
    records = jvm.org.apache.iceberg.data.IcebergGenerics.read(tables.load(table.location)).build()
    found, left = [], records.iterator()
    while left.hasNext():
        record = left.next()
        found.append(tuple(record.get(place) for place in range(3)))
    records.close()
    return sorted(found)


@pytest.mark.parametrize("name", SPECS)
def test_rows_are_those_of_iceberg_java(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = evolved(tmp_path, SPECS[name])
    assert rows(table) == java(spark, table)
    table.delete("n = 1")
    table.upsert(pa.table({"s": ["b", "z"], "n": [2, 9], "m": [1, 1]}), ["s", "n"])
    table.maintenance.rewrite_data_files(rewrite_all=True)
    assert len(rows(table)) == 4
    assert rows(table) == java(spark, table) == sorted(map(tuple, table.scan().to_spark(spark).collect()))
    table.delete("s = 'c'", spark=spark)
    assert rows(table.refresh()) == java(spark, table) == [("b", 2, 1), ("z", 9, 1)]
