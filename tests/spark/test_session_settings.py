"""Settings of the user's session that change what Spark's types and readers are."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import types as st

import icebench
import icebench.spark
from icebench.engine.spark_source import register
from tests.spark.deleted_tables import open_catalog, place_of
from tests.spark.session_settings import setting


def test_uuids_are_written_from_large_strings(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    table = open_catalog(tmp_path).create_table("db.t", pa.schema([("id", pa.int64()), ("u", pa.uuid())]))
    keys = [uuid.UUID(int=1), uuid.UUID(int=2)]
    rows = spark.createDataFrame([(1, str(keys[0])), (2, None)], "id long, u string")
    with setting(spark, "spark.sql.execution.arrow.useLargeVarTypes", "true"):
        rows.write.format("icebench").options(**place_of(tmp_path)).mode("append").save("db.t")
        table.append(rows.selectExpr("id + 2 as id", f"'{keys[1]}' as u"))
        found = spark.read.format("icebench").options(**place_of(tmp_path)).load("db.t").orderBy("id").collect()
    assert [row.u for row in found] == [str(keys[0]), None, str(keys[1]), str(keys[1])]
    assert table.scan().to_arrow().sort_by("id")["u"].to_pylist() == [keys[0], None, keys[1], keys[1]]


def test_a_timestamp_with_a_zone_stays_one_where_files_lack_it(spark: SparkSession, tmp_path: Path) -> None:
    moment = pa.timestamp("us", "UTC")
    inner = pa.struct([("n", pa.int64()), ("ts", moment)])
    table = icebench.load_catalog(f"{tmp_path}/wh").create_table(
        "db.t",
        pa.schema([("id", pa.int64()), ("ts", moment), ("st", inner), ("l", pa.list_(moment))]),
        properties={"format-version": "3"},
    )
    path = str(tmp_path / "imported.parquet")
    pq.write_table(pa.table({"id": [1], "st": pa.array([{"n": 1}], pa.struct([("n", pa.int64())]))}), path)
    table.add_files([path])
    later = int(dt.datetime(2020, 2, 29, tzinfo=dt.UTC).timestamp()) * 10**6
    table.update_schema(lambda s: s.add_column("later", icebench.TIMESTAMPTZ, default=later))
    with setting(spark, "spark.sql.timestampType", "TIMESTAMP_NTZ"):
        frame = table.scan().to_spark(spark)
        rows = frame.selectExpr("unix_micros(later) as later", "ts", "st.ts as inner", "l").collect()
    types = {f.name: f.dataType for f in frame.schema.fields}
    assert types["ts"] == types["later"] == types["l"].elementType == types["st"]["ts"].dataType == st.TimestampType()
    assert [tuple(row) for row in rows] == [(later, None, None, None)]


def test_files_are_read_by_the_reader_with_field_ids(spark: SparkSession, tmp_path: Path) -> None:
    table = open_catalog(tmp_path).create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(10)}))
    table.delete("id = 3", mode="merge-on-read")
    with setting(spark, "spark.sql.sources.useV1SourceList", "csv"):
        frame = table.scan().to_spark(spark)
        icebench.spark.register_view(spark, "view_of_v1", table.scan())
        pruned = icebench.spark.prune_files(spark.sql("select id from view_of_v1 where id > 7"))
        assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
        assert sorted(row.id for row in pruned.collect()) == [8, 9]
