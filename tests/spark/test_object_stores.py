"""Tables on object stores and Spark's own reader."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import engine
from engine.errors import Unsupported
from engine.spark.session import refuse_unknown_schemes
from tests.services.s3_server import SECRET, S3Server

ROWS = pa.table({"id": range(10), "p": ["a", "b"] * 5})


@pytest.fixture
def table(s3_server: S3Server, bucket: str, tmp_path: Path) -> engine.Table:
    catalog = engine.load_catalog(
        f"sqlite:///{tmp_path}/catalog.db", warehouse=f"s3://{bucket}/wh", properties=s3_server.properties
    )
    made = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "2"})
    made.append(ROWS)
    return made


def test_a_session_without_s3_says_what_it_lacks(spark: SparkSession, table: engine.Table) -> None:
    with pytest.raises(Unsupported) as raised:
        table.scan().to_spark(spark)
    text = str(raised.value)
    assert 'No FileSystem for scheme "s3"' in text
    assert "org.apache.hadoop:hadoop-aws:3." in text
    assert "spark.hadoop.fs.s3.impl=org.apache.hadoop.fs.s3a.S3AFileSystem" in text
    assert SECRET not in text
    with pytest.raises(Unsupported, match="hadoop-aws"):
        table.upsert(spark.createDataFrame(ROWS), ["id"], "merge-on-read")
    assert len(table.metadata.snapshots) == 1


@pytest.mark.parametrize(
    ("scheme", "needed"),
    [
        ("s3a", "hadoop-aws"),
        ("gs", "gcs-connector"),
        ("abfss", "hadoop-azure"),
        ("oss", "spark.hadoop.fs.oss.impl"),
    ],
)
def test_each_store_has_its_own_needs(spark: SparkSession, scheme: str, needed: str) -> None:
    with pytest.raises(Unsupported, match=needed):
        refuse_unknown_schemes(spark, ["file:/a", f"{scheme}://b/c"])
    refuse_unknown_schemes(spark, ["file:/a", "hdfs://host/b"])


def test_executors_change_rows_on_s3(spark: SparkSession, table: engine.Table) -> None:
    """With the catalog's own keys: Spark's file systems are not asked."""
    table.append(spark.createDataFrame(ROWS.slice(0, 2)).selectExpr("id + 100 AS id", "p"))
    table.delete("id in (1, 2)", "merge-on-read", spark=spark)
    table.update("p = 'b'", {"p": "c"}, "copy-on-write", spark=spark)
    found = {row["id"]: row["p"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {0: "a", 3: "c", 4: "a", 5: "c", 6: "a", 7: "c", 8: "a", 9: "c", 100: "a", 101: "c"}
