"""`Scan.to_spark` on tables of the public API."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string()), pa.field("day", pa.int32())])


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table({"id": numbers, "name": [f"n{n}" for n in numbers], "day": [n % 3 for n in numbers]}, schema=ROWS)


@pytest.mark.parametrize("version", ["2", "3"])
def test_spark_sees_what_arrow_sees(spark: SparkSession, tmp_path: Path, version: str) -> None:
    catalog = icebench.load_catalog(f"{tmp_path}/wh")
    table = catalog.create_table(
        "db.t", ROWS, partition_spec=[("day", "identity")], properties={"format-version": version}
    )
    table.append(rows(0, 100))
    table.append(rows(100, 200))
    table.delete("id between 30 and 60 or id = 150", "merge-on-read")
    for filter, columns in ((None, None), ("id > 40 and day = 1", ["name"]), ("name >= 'n5'", ["day", "id"])):
        scan = table.scan(filter, columns)
        ours = scan.to_arrow().to_pylist()
        theirs = [row.asDict() for row in scan.to_spark(spark).collect()]
        assert sorted(map(str, theirs)) == sorted(map(str, ours))
        assert scan.to_spark(spark).count() == scan.count() == len(ours)
    assert table.scan("id > 1000").to_spark(spark).count() == 0


def test_a_dataframe_is_appended_by_the_executors(spark: SparkSession, tmp_path: Path) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/wh")
    table = catalog.create_table("db.t", ROWS, partition_spec=[("day", "identity")])
    table.append(rows(0, 10))
    frame = spark.range(10, 1000).selectExpr("id", "concat('n', id) name", "cast(id % 3 as int) day")
    counters = icebench.Counters()
    snapshot = table.append(frame, snapshot_properties={"job": "7"}, counters=counters)
    assert snapshot.summary["added-records"] == "990"
    assert snapshot.summary["job"] == "7"
    read = table.scan().to_arrow().sort_by("id")
    assert read["id"].to_pylist() == list(range(1000))
    assert read["name"].to_pylist() == [f"n{n}" for n in range(1000)]
    with pytest.raises(icebench.errors.Invalid, match="nosuch"):
        table.append(frame.withColumnRenamed("name", "nosuch"))
    assert len(table.snapshots) == 2
    catalog.close()


def test_columns_of_a_dataframe_are_added_in_the_commit_of_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    catalog = icebench.load_catalog(f"{tmp_path}/wh")
    table = catalog.create_table("db.t", ROWS, properties={"write.spark.accept-any-schema": "true"})
    table.append(rows(0, 2))
    versions = len(table.metadata.metadata_log)
    table.append(spark.range(2, 4).selectExpr("id", "named_struct('x', id * 2) as more"), merge_schema=True)
    assert len(table.metadata.metadata_log) == versions + 1
    assert [f.name for f in table.schema().fields] == ["id", "name", "day", "more"]
    found = table.scan(columns=["id", "more"]).to_arrow().sort_by("id")["more"].to_pylist()
    assert found == [None, None, {"x": 4}, {"x": 6}]
    with pytest.raises(icebench.errors.Invalid, match="'id'"):
        table.append(spark.createDataFrame([("text",)], "id string"), merge_schema=True)
    assert len(table.metadata.metadata_log) == versions + 1
