"""Tables that were created and replaced in one step, by the engine or by Iceberg Java, read by the other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.setup_jars import is_cached

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.slow,
]

OLD = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["x", "y"], "day": pa.array([3, 4], pa.int32())})
NEW = pa.table({"day": ["mon", "tue"], "id": pa.array([2**40, 6]), "more": [0.5, None]})


@pytest.fixture
def java(spark: SparkSession, tmp_path: Path) -> str:
    """The name of Iceberg Java's catalog over the directory `tmp_path`."""
    name = f"replaced_{abs(hash(str(tmp_path)))}"
    conf = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": str(tmp_path)}
    for key, value in {**conf, ".cache-enabled": "false"}.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    return name


@pytest.mark.parametrize("version", [1, 2, 3])
def test_our_tables_in_their_hands(version: int, spark: SparkSession, java: str, tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path))
    with catalog.create_table_transaction(
        "db.t", OLD.schema, partition_spec=[("day", "identity")], properties={"format-version": str(version)}
    ) as transaction:
        transaction.append(OLD)
    first = catalog.load_table("db.t").current_snapshot
    with catalog.replace_table_transaction("db.t", NEW.schema, partition_spec=[("day", "identity")]) as transaction:
        transaction.append(NEW)
    assert first is not None
    assert rows(spark, f"select * from {java}.db.t") == [("mon", 2**40, 0.5), ("tue", 6, None)]
    assert rows(spark, f"select id from {java}.db.t where day = 'tue'") == [(6,)]
    then = f"{java}.db.t version as of {first.snapshot_id}"
    assert rows(spark, f"select * from {then}") == [(1, "x", 3), (2, "y", 4)]
    assert rows(spark, f"select name from {then} where day = 4 and id = 2") == [("y",)]
    if version > 1:
        # Iceberg Java cannot write with the void fields that version 1 keeps for columns that are no more.
        spark.sql(f"insert into {java}.db.t values ('wed', 7, 1.5)")
        spark.sql(f"delete from {java}.db.t where day = 'mon'")
        assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [6, 7]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_their_table_in_our_hands(version: int, spark: SparkSession, java: str, tmp_path: Path) -> None:
    """Iceberg Java keeps the ids of columns whose type changes to any other."""
    spark.sql(
        f"create table {java}.db.t using iceberg partitioned by (day) tblproperties ('format-version' = '{version}') "
        "as select * from values (1, 'x', 3), (2, 'y', 4) as t(id, name, day)"
    )
    catalog = icebench.load_catalog(str(tmp_path))
    first = catalog.load_table("db.t").current_snapshot
    spark.sql(
        f"create or replace table {java}.db.t using iceberg partitioned by (day) "
        "as select * from values ('mon', 1099511627776, 0.5), ('tue', 6, null) as t(day, id, more)"
    )
    table = catalog.load_table("db.t")
    assert first is not None
    assert read(table.scan()) == [("mon", 2**40), ("tue", 6)]
    assert read(table.scan("day = 'tue' and id < 7")) == [("tue", 6)]
    assert read(table.scan(snapshot_id=first.snapshot_id)) == [(3, 1), (4, 2)]
    assert read(table.scan("day = 4 and name = 'y'", snapshot_id=first.snapshot_id)) == [(4, 2)]
    with catalog.replace_table_transaction("db.t", OLD.schema) as transaction:
        transaction.append(OLD)
    assert rows(spark, f"select id, name, day from {java}.db.t") == [(1, "x", 3), (2, "y", 4)]


def rows(spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in spark.sql(query).collect()), key=str)


def read(scan: icebench.Scan) -> list[tuple[object, object]]:
    found = scan.to_arrow()
    return sorted(zip(found["day"].to_pylist(), found["id"].to_pylist(), strict=True), key=str)
