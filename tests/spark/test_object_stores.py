"""Tables on object stores and Spark's own reader."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench import s3_jars
from icebench.engine.spark.session import refuse_unknown_schemes
from icebench.errors import Unsupported
from tests.services.s3_server import SECRET, S3Server

ROWS = pa.table({"id": range(10), "p": ["a", "b"] * 5})


@pytest.fixture
def table(s3_server: S3Server, bucket: str, tmp_path: Path) -> icebench.Table:
    catalog = icebench.load_catalog(
        f"sqlite:///{tmp_path}/catalog.db", warehouse=f"s3://{bucket}/wh", properties=s3_server.properties
    )
    made = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "2"})
    made.append(ROWS)
    return made


def test_a_session_without_s3_says_what_it_lacks(spark: SparkSession, table: icebench.Table) -> None:
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


def test_executors_change_rows_on_s3(spark: SparkSession, table: icebench.Table) -> None:
    """With the catalog's own keys: Spark's file systems are not asked."""
    table.append(spark.createDataFrame(ROWS.slice(0, 2)).selectExpr("id + 100 AS id", "p"))
    table.delete("id in (1, 2)", "merge-on-read", spark=spark)
    table.update("p = 'b'", {"p": "c"}, "copy-on-write", spark=spark)
    found = {row["id"]: row["p"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {0: "a", 3: "c", 4: "a", 5: "c", 6: "a", 7: "c", 8: "a", 9: "c", 100: "a", 101: "c"}


@pytest.mark.skipif(not s3_jars.is_fetched(), reason="no hadoop-aws: python -m icebench.bench.s3_jars fetches it")
def test_our_own_session_reads_s3(s3_server: S3Server, bucket: str, tmp_path: Path) -> None:
    secret = f"zq{secrets.token_hex(12)}"
    given = {**s3_server.properties, "s3.secret-access-key": secret}
    command = [sys.executable, "-m", "tests.spark.s3_work", "local[2]", str(tmp_path), bucket]
    done = subprocess.run(command, input=json.dumps(given), text=True, capture_output=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr[-3_000:]
    expected = [800, sum(range(200, 1_000)), 901, 2]
    assert json.loads((tmp_path / "found").read_text()) == dict.fromkeys(["s3 2", "s3a 3"], expected)
    texts = [done.stdout, done.stderr, *(f.read_text() for f in (tmp_path / "events").rglob("events_*"))]
    assert len(texts) > 2
    assert not any(secret in text for text in texts)
