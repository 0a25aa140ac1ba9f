"""Files that Iceberg Java added stay when orphans are removed: Hadoop normalises locations, and records others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.storage.local import LocalStore

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark")]

SCHEMA = pa.schema([pa.field("id", pa.int64())])
NEVER = "2999-01-01T00:00:00Z"


def ids(table: icebench.Table) -> list[int]:
    found: list[int] = table.refresh().scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def java_writes(spark: SparkSession, warehouse: Path, statement: str) -> None:
    name = f"orphans_{abs(hash(str(warehouse)))}"
    conf = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": str(warehouse)}
    for key, value in {**conf, ".cache-enabled": "false"}.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    spark.sql(statement.format(table=f"{name}.db.t"))


def opened(kind: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> icebench.Catalog:
    """The warehouse `home / "wh"`, as a user may name it, or as tables of former releases recorded it."""
    (home / "here").mkdir()
    monkeypatch.chdir(home / "here")
    if kind == "recorded with a parent":
        return icebench.Catalog(FileSystemCatalog(f"{home}/here/../wh", LocalStore()))
    if kind == "recorded as a uri with empty segments":
        return icebench.Catalog(FileSystemCatalog(f"file://{home}//wh", LocalStore()))
    return icebench.load_catalog(
        {"parent": "../wh", "uri": f"file://{home}//wh", "hadoop uri": f"file:{home}/wh"}[kind]
    )


@pytest.mark.parametrize(
    "kind", ["parent", "uri", "hadoop uri", "recorded with a parent", "recorded as a uri with empty segments"]
)
def test_what_iceberg_java_wrote_stays(
    kind: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(kind, tmp_path, monkeypatch).create_table("db.t", SCHEMA)
    table.append(pa.table({"id": range(4)}, schema=SCHEMA))
    java_writes(spark, tmp_path / "wh", "insert into {table} values (4), (5)")
    java_writes(spark, tmp_path / "wh", "delete from {table} where id = 0")
    orphan = f"{table.location}/data/orphan.parquet"
    table.store.write(orphan, b"x")
    found = table.maintenance.remove_orphan_files(older_than=NEVER, dry_run=False)
    # Checksums of Hadoop's local file system are nobody's.
    assert {each for each in found.locations if not each.endswith(".crc")} == {orphan}
    assert ids(table) == [1, 2, 3, 4, 5]
    table.append(pa.table({"id": [6]}, schema=SCHEMA))
    table.maintenance.expire_snapshots(older_than=NEVER)
    assert ids(table) == [1, 2, 3, 4, 5, 6]
    count = icebench.load_catalog(str(tmp_path / "wh")).load_table("db.t").scan().count()
    assert count == 6
