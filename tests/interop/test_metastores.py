"""One Hive metastore and one AWS Glue (moto's), opened by Iceberg Java on Spark, by PyIceberg and by ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog as PyIcebergCatalog
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyspark.sql import SparkSession
from thrift.Thrift import TApplicationException

import icebench
from icebench.engine.catalog.hive_client import Metastore, idl
from icebench.errors import AlreadyExists, CommitConflict, NotFound

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string()), pa.field("day", pa.int32())])
SQL_COLUMNS = "id bigint, name string, day int"
JAVA = "hive_java"
FAILED = (CommitFailedException, TApplicationException)
"""Nothing was changed: of requests for locks that come at once some fail in the metastore."""

OFTEN = {"lock-check-max-wait-time": "0.1", "lock-check-retries": "200"}
"""PyIceberg would look for its lock after two seconds, then after four and eight."""


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{n}" for n in ids], "day": [n % 3 for n in ids]}, schema=ROWS)


def ids(read: pa.Table) -> list[int]:
    return sorted(read["id"].to_pylist())


@pytest.fixture(params=["hive", "glue"])
def kind(request: pytest.FixtureRequest) -> str:
    made: str = request.param
    return made


@pytest.fixture
def properties(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """What both libraries are given."""
    warehouse = {"warehouse": f"file://{tmp_path}/wh"}
    if kind == "hive":
        return {"type": "hive", "uri": request.getfixturevalue("hive_uri"), **warehouse}
    return request.getfixturevalue("glue_properties") | warehouse


@pytest.fixture
def ours(properties: dict[str, str]) -> Iterator[icebench.Catalog]:
    catalog = icebench.load_catalog("ours", properties=properties)
    yield catalog
    catalog.close()


@pytest.fixture
def theirs(properties: dict[str, str], ours: icebench.Catalog) -> PyIcebergCatalog:
    ours.create_namespace("db")
    return load_catalog("theirs", **properties, **OFTEN)


class TestPyIceberg:
    def test_our_table_in_their_hands(self, ours: icebench.Catalog, theirs: PyIcebergCatalog) -> None:
        made = ours.create_table("db.t", ROWS, partition_spec=[("day", "identity")], properties={"owner": "ann"})
        made.append(rows(1, 2, 3))
        loaded = theirs.load_table("db.t")
        assert str(loaded.metadata.table_uuid) == made.metadata.table_uuid
        assert ids(loaded.scan().to_arrow()) == [1, 2, 3]
        loaded.append(rows(4))
        made.delete("id = 2", "copy-on-write")
        loaded.refresh()
        loaded.append(rows(5))
        assert ids(made.refresh().scan().to_arrow()) == ids(loaded.scan().to_arrow()) == [1, 3, 4, 5]
        assert theirs.list_tables("db") == [("db", "t")]

    def test_their_table_in_our_hands(self, ours: icebench.Catalog, theirs: PyIcebergCatalog) -> None:
        made = theirs.create_table("db.t", ROWS, properties={"owner": "ann"})
        made.append(rows(1, 2))
        loaded = ours.load_table("db.t")
        loaded.append(rows(3))
        loaded.set_properties({"tier": "1"})
        made.refresh()
        made.append(rows(4))
        assert made.properties["tier"] == "1"
        assert ids(loaded.refresh().scan().to_arrow()) == [1, 2, 3, 4]
        assert ours.list_tables("db") == ["db.t"]
        with pytest.raises(AlreadyExists):
            ours.create_table("db.t", ROWS)

    def test_names(self, ours: icebench.Catalog, theirs: PyIcebergCatalog) -> None:
        theirs.create_namespace("other", {"tier": "1"})
        assert ours.namespace_properties("other")["tier"] == "1"
        ours.update_namespace_properties("other", {"tier": "2"})
        assert theirs.load_namespace_properties("other")["tier"] == "2"
        ours.create_table("db.t", ROWS).append(rows(1))
        ours.rename_table("db.t", "other.u")
        assert ids(theirs.load_table("other.u").scan().to_arrow()) == [1]
        theirs.rename_table("other.u", "db.v")
        assert ids(ours.load_table("db.v").scan().to_arrow()) == [1]
        theirs.drop_table("db.v")
        with pytest.raises(NotFound):
            ours.load_table("db.v")

    def test_no_row_is_lost_where_both_write(
        self, ours: icebench.Catalog, theirs: PyIcebergCatalog, properties: dict[str, str]
    ) -> None:
        ours.create_table("db.t", ROWS, properties={"commit.retry.num-retries": "50"})

        def by_ours(n: int) -> int:
            ours.load_table("db.t").append(rows(n))
            return n

        def by_theirs(n: int) -> int:
            again(lambda: load_catalog("own", **properties, **OFTEN).load_table("db.t").append(rows(n)), *FAILED)
            return n

        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(by_ours if n % 2 else by_theirs, n) for n in range(8)]
            written = {each.result() for each in waiting}
        assert ids(ours.load_table("db.t").scan().to_arrow()) == sorted(written)


def again(change: Callable[[], object], *errors: type[Exception]) -> None:
    """Repeat a change that conflicts, as users of a library without retries do."""
    until = time.monotonic() + 60
    while True:
        try:
            change()
        except errors:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


@pytest.mark.parametrize("kind", ["hive"], indirect=True)
class TestIcebergJava:
    @pytest.fixture
    def sql(self, spark: SparkSession, hive_uri: str, ours: icebench.Catalog) -> Callable[[str], Any]:
        """Runs SQL, in which `JAVA` is Iceberg Java's catalog."""
        conf = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "hive",
            ".uri": hive_uri,
            ".cache-enabled": "false",
        }
        for key, value in conf.items():
            spark.conf.set(f"spark.sql.catalog.{JAVA}{key}", value)
        ours.create_namespace("db")
        return spark.sql

    def test_our_table_in_their_hands(self, ours: icebench.Catalog, sql: Callable[[str], Any]) -> None:
        made = ours.create_table("db.t", ROWS, partition_spec=[("id", "bucket[4]")], properties={"owner": "ann"})
        made.append(rows(1, 2, 3))
        sql(f"insert into {JAVA}.db.t values (4, 'n4', 1)")
        made.refresh().delete("id = 2", "merge-on-read")
        sql(f"alter table {JAVA}.db.t drop column day")
        sql(f"alter table {JAVA}.db.t add column more double first")
        made.refresh().set_properties({"tier": "1"})
        found = sql(f"select id, more from {JAVA}.db.t order by id").collect()
        assert [(row.id, row.more) for row in found] == [(1, None), (3, None), (4, None)]
        assert ids(made.refresh().scan().to_arrow()) == [1, 3, 4]
        assert "tier" in [row.key for row in sql(f"show tblproperties {JAVA}.db.t").collect()]

    def test_their_table_in_our_hands(self, ours: icebench.Catalog, sql: Callable[[str], Any]) -> None:
        sql(f"create table {JAVA}.db.t ({SQL_COLUMNS}) using iceberg partitioned by (day)")
        sql(f"insert into {JAVA}.db.t values (1, 'n1', 1), (2, 'n2', 2)")
        loaded = ours.load_table("db.t")
        loaded.append(rows(3))
        loaded.update_schema(lambda change: change.rename_column("name", "title"))
        sql(f"insert into {JAVA}.db.t values (4, 'n4', 1)")
        assert ids(loaded.refresh().scan().to_arrow()) == [1, 2, 3, 4]
        found = sql(f"select title from {JAVA}.db.t order by id").collect()
        assert [row.title for row in found] == ["n1", "n2", "n3", "n4"]
        ours.rename_table("db.t", "db.u")
        assert [row.tableName for row in sql(f"show tables in {JAVA}.db").collect()] == ["u"]
        sql(f"drop table {JAVA}.db.u")
        assert ours.list_tables("db") == []

    @pytest.mark.parametrize("locks", ["true", "false"])
    def test_no_row_is_lost_where_all_write(
        self, ours: icebench.Catalog, properties: dict[str, str], sql: Callable[[str], Any], locks: str
    ) -> None:
        """Whether Java holds the lock and expects nothing, or expects and holds none."""
        given = {"engine.hive.lock-enabled": locks, "commit.retry.num-retries": "50"}
        ours.create_table("db.t", ROWS, properties=given)

        def write(n: int) -> int:
            if n % 3 == 0:
                sql(f"insert into {JAVA}.db.t values ({n}, 'n{n}', 0)")
            elif n % 3 == 1 and locks == "true":
                # PyIceberg always locks and expects nothing: it would overwrite what Java commits without a lock.
                again(lambda: load_catalog("own", **properties, **OFTEN).load_table("db.t").append(rows(n)), *FAILED)
            else:
                again(partial(ours.load_table("db.t").append, rows(n)), CommitConflict)
            return n

        with ThreadPoolExecutor(3) as pool:
            written = sorted(pool.map(write, range(9)))
        assert ids(ours.load_table("db.t").scan().to_arrow()) == written
        assert [row.id for row in sql(f"select id from {JAVA}.db.t order by id").collect()] == written

    def test_the_metastore_gets_the_same(
        self, ours: icebench.Catalog, sql: Callable[[str], Any], hive_uri: str
    ) -> None:
        columns = (
            "a boolean, b int, c bigint comment 'of c', d float, e double, f decimal(9, 2), g date, h timestamp_ntz, "
            "i string, j binary, k struct<x: int, y: array<string>>, l map<string, struct<z: date>>"
        )
        sql(f"create table {JAVA}.db.java ({columns}) using iceberg tblproperties ('gc.enabled' = 'false', 'x' = '1')")
        schema = ours.load_table("db.java").metadata.schema
        ours.create_table("db.ours", schema, properties=ours.load_table("db.java").metadata.properties)
        with Metastore(hive_uri).connected() as server:
            java, own = (server.table("db", name) for name in ("java", "ours"))
        assert own.sd.cols == java.sd.cols
        keys = ("inputFormat", "outputFormat", "serdeInfo", "bucketCols", "compressed")
        assert {key: getattr(own.sd, key) or None for key in keys} == {
            key: getattr(java.sd, key) or None for key in keys
        }
        assert (own.tableType, own.partitionKeys) == (java.tableType, java.partitionKeys)
        differing = {"metadata_location", "uuid", "transient_lastDdlTime"}
        informal = {"current-schema", "snapshot-count"}
        assert {key: value for key, value in own.parameters.items() if key not in differing} == {
            key: value for key, value in java.parameters.items() if key not in differing | informal
        }


@pytest.mark.parametrize("kind", ["hive"], indirect=True)
def test_a_table_of_hive_is_none_of_iceberg(ours: icebench.Catalog, hive_uri: str, tmp_path: Path) -> None:
    ours.create_namespace("db")
    made = idl()
    sd = made.StorageDescriptor(cols=[], location=f"{tmp_path}/plain", serdeInfo=made.SerDeInfo(parameters={}))
    table = made.Table(
        dbName="db", tableName="plain", sd=sd, parameters={}, partitionKeys=[], tableType="MANAGED_TABLE"
    )
    with Metastore(hive_uri).connected() as server:
        server.change("create_table", table)
    assert ours.list_tables("db") == []
    assert not ours.table_exists("db.plain")
    for change in (
        lambda: ours.load_table("db.plain"),
        lambda: ours.drop_table("db.plain"),
        lambda: ours.rename_table("db.plain", "db.t"),
    ):
        with pytest.raises(NotFound, match=r"db\.plain is not an Iceberg table"):
            change()
    with pytest.raises(AlreadyExists):
        ours.create_table("db.plain", ROWS)
