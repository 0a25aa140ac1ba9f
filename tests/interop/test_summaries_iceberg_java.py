"""What a snapshot says of each partition, against what Iceberg Java's says of the same change."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.setup_jars import is_cached
from tests.interop.histories.places import sql_place

pytestmark = pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache")

LIMIT = "write.summary.partition-limit"
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": ["a", "a", "b c"]})
MORE = pa.table({"id": pa.array([4, 5], pa.int64()), "p": ["d", "e"]})


def said(table: icebench.Table) -> dict[str, dict[str, str]]:
    """The newest snapshot's entries of partitions, without sizes, which differ between writers."""
    newest = table.refresh().snapshots[-1]
    return {
        name: {k: v for k, _, v in (each.partition("=") for each in text.split(",")) if not k.endswith("-size")}
        for name, text in newest.summary.items()
        if name.startswith("partition")
    }


@pytest.mark.parametrize("partitioned", [True, False])
def test_partitions_are_summed_up_as_by_iceberg_java(spark: SparkSession, tmp_path: Path, partitioned: bool) -> None:
    place = sql_place(spark, tmp_path, f"summaries_{partitioned}")
    tables = {
        name: place.ours.create_table(
            f"db.{name}",
            ROWS.schema,
            partition_spec=[("p", "identity")] if partitioned else (),
            properties={LIMIT: "2", "write.delete.mode": "copy-on-write"},
        )
        for name in ("ours", "javas")
    }
    java = f"{place.spark_catalog}.db.javas"
    for rows in (ROWS, MORE):
        tables["ours"].append(rows)
        spark.createDataFrame(rows).coalesce(1).writeTo(java).append()
        assert said(tables["ours"]) == said(tables["javas"])
        assert said(tables["ours"])
    tables["ours"].delete("p in ('a', 'd')")
    spark.sql(f"delete from {java} where p in ('a', 'd')")
    assert said(tables["ours"]) == said(tables["javas"])
    tables["ours"].append(pa.concat_tables([ROWS, MORE]))  # four partitions
    assert bool(said(tables["ours"])) is not partitioned
