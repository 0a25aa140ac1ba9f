"""``format("icebench")``, batch: the rows of `scan.to_arrow()`, and writes that are there whole or not at all."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icebench.engine.spark_source import register
from icebench.engine.table import Table
from tests.spark.deleted_tables import FIELDS, open_catalog, place_of, rows, with_every_delete
from tests.spark.session_settings import setting


@pytest.fixture(autouse=True, scope="module")
def registered(spark: SparkSession) -> None:
    register(spark)


def read(spark: SparkSession, directory: Path, **options: object) -> DataFrame:
    named = {name.replace("_", "-"): str(value) for name, value in options.items()}
    return spark.read.format("icebench").options(**place_of(directory), **named).load("db.t")


def texts(found: pa.Table | DataFrame) -> list[str]:
    table = found.toArrow() if isinstance(found, DataFrame) else found
    return sorted(map(str, table.to_pylist()))


def test_rows_are_those_of_arrow_with_every_kind_of_delete(spark: SparkSession, tmp_path: Path) -> None:
    table = with_every_delete(tmp_path)
    kinds = set(table.inspect.files().column("content").to_pylist())
    assert kinds == {0, 1, 2}
    frame = read(spark, tmp_path, split_size=4000)
    assert texts(frame) == texts(table.scan().to_arrow())
    assert frame.rdd.getNumPartitions() > 2
    # Any other query over the same DataFrame reads the same rows.
    assert frame.where("id > 1500").count() == table.scan("id > 1500").count()
    assert frame.count() == table.scan().count()
    old = table.snapshots[0]
    wanted = texts(table.scan(snapshot_id=old.snapshot_id).to_arrow())
    assert texts(read(spark, tmp_path, snapshot_id=old.snapshot_id)) == wanted
    assert texts(read(spark, tmp_path, as_of_timestamp=old.timestamp_ms)) == wanted


def test_columns_filters_refs_and_increments_are_options(spark: SparkSession, tmp_path: Path) -> None:
    table = with_every_delete(tmp_path)
    first = table.snapshots[0].snapshot_id
    table.create_tag("old", snapshot_id=first)
    filter = "id < 40 or name = 'new'"
    frame = read(spark, tmp_path, filter=filter, columns="name,_file, id", tag="old")
    assert frame.columns == ["id", "name", "_file"]
    scan = table.scan(filter, ["name", "id", "_file"], ref="old")
    assert texts(frame) == texts(scan.to_arrow())
    increment = read(spark, tmp_path, start_snapshot_id=first, columns="id")
    assert texts(increment) == texts(table.incremental_append_scan(first, columns=["id"]).to_arrow())
    by_path = spark.read.format("icebench").load(table.location)
    assert by_path.count() == table.scan().count()


def test_pushed_filters_prune_files_and_are_not_tested_again(spark: SparkSession, tmp_path: Path) -> None:
    table = with_every_delete(tmp_path)
    with setting(spark, "spark.sql.python.filterPushdown.enabled", "true"):
        frame = read(spark, tmp_path, pushdown=True, columns="id,name,day,_file")
        wanted = "id >= 1500 and id <= 1600 and not (name = 'n1501') and name like 'n1%' and name like '%0'"
        found = frame.where(wanted).toArrow()
        plan = str(frame.where(wanted)._jdf.queryExecution().executedPlan())
    expected = table.scan("id between 1500 and 1600").to_arrow().to_pylist()
    ids = [row["id"] for row in expected if row["name"] != "n1501" and row["name"].endswith("0")]
    assert sorted(found.column("id").to_pylist()) == sorted(ids)
    assert len(ids) == 11
    # Nothing but what Spark can not push is left to test.
    assert "EndsWith" in plan
    assert "1500" not in plan


def test_all_types_arrive_as_the_native_scan_gives_them(spark: SparkSession, tmp_path: Path) -> None:
    made = pa.table(
        {
            "f": pa.array([float("inf"), -0.0, None], pa.float32()),
            "d": pa.array([Decimal("1.25"), None, Decimal(-3)], pa.decimal128(7, 2)),
            "utc": pa.array([0, -(10**15), None], pa.timestamp("us", "UTC")),
            "at": pa.array([0, -(10**15), None], pa.timestamp("us")),
            "day": pa.array([0, -700_000, None], pa.date32()),
            "u": pa.array([bytes(range(16)), b"\xff" * 16, None], pa.uuid()),
            "x": pa.array([b"ab", b"cd", None], pa.binary(2)),
            "s": pa.array(
                [{"a": 1, "x": b"xy"}, {"a": None, "x": None}, None],
                pa.struct([("a", pa.int32()), ("x", pa.binary(2))]),
            ),
            "l": pa.array([[b"12", None], [], None], pa.list_(pa.binary(2))),
            "m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        }
    )
    table = open_catalog(tmp_path).create_table("db.t", made.schema)
    table.append(made)
    assert texts(read(spark, tmp_path)) == texts(table.scan().to_spark(spark))
    # And back: what is read can be written.
    copy = open_catalog(tmp_path).create_table("db.copy", made.schema)
    write(read(spark, tmp_path), tmp_path, table="db.copy")
    assert texts(copy.refresh().scan().to_arrow()) == texts(table.scan().to_arrow())


def write(frame: DataFrame, directory: Path, mode: str = "append", **options: object) -> None:
    named = {name.replace("_", "-"): str(value) for name, value in options.items()}
    named.setdefault("table", "db.t")
    frame.write.format("icebench").options(**place_of(directory), **named).mode(mode).save()


def frame_of(spark: SparkSession, start: int, stop: int) -> DataFrame:
    return spark.range(start, stop, 1, 3).selectExpr("id", "concat('n', id) name", "cast(id % 3 as int) day")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = open_catalog(tmp_path).create_table(
        "db.t", FIELDS, partition_spec=[("day", "identity")], properties={"write.spark.accept-any-schema": "true"}
    )
    made.append(rows(0, 30))
    return made


def test_appends_and_overwrites(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    options = {"snapshot-property.job": "7", "branch": "b"}
    write(frame_of(spark, 100, 200), tmp_path, **options)
    assert table.refresh().scan().count() == 30
    assert texts(table.scan(ref="b").to_arrow()) == texts(pa.concat_tables([rows(0, 30), rows(100, 200)]))
    snapshot = table.metadata.head("b")
    assert snapshot is not None
    assert (snapshot.summary["job"], snapshot.summary["added-records"]) == ("7", "100")
    write(frame_of(spark, 40, 50), tmp_path, "overwrite", overwrite_filter="id < 10 or id > 25")
    expected = [*rows(10, 26).to_pylist(), *rows(40, 50).to_pylist()]
    assert texts(table.refresh().scan().to_arrow()) == sorted(map(str, expected))
    write(frame_of(spark, 60, 70).where("day = 1"), tmp_path, "overwrite", overwrite_mode="dynamic")
    kept = [row for row in expected if row["day"] != 1] + [row for row in rows(60, 70).to_pylist() if row["day"] == 1]
    assert texts(table.refresh().scan().to_arrow()) == sorted(map(str, kept))
    write(frame_of(spark, 0, 3), tmp_path, "overwrite")
    assert texts(table.refresh().scan().to_arrow()) == texts(rows(0, 3))


def test_new_columns_come_with_the_rows_where_the_table_allows_it(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    wide = frame_of(spark, 30, 33).withColumn("more", F.lit("x"))
    with pytest.raises(PySparkException, match="'more' is not in the table"):
        write(wide, tmp_path)
    write(wide, tmp_path, merge_schema="true")
    read_back = table.refresh().scan("id >= 29").to_arrow().to_pylist()
    assert {(row["id"], row["more"]) for row in read_back} == {(29, None), (30, "x"), (31, "x"), (32, "x")}


def test_a_failed_write_leaves_nothing(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    before = files_below(tmp_path)
    failing = frame_of(spark, 0, 30).withColumn("day", F.expr("if(id = 25, raise_error('boom'), day)"))
    with pytest.raises(PySparkException, match="boom"):
        write(failing, tmp_path)
    table.create_tag("named", snapshot_id=table.snapshots[0].snapshot_id)
    with pytest.raises(PySparkException, match="tag"):  # as the commit finds
        write(frame_of(spark, 0, 30), tmp_path, branch="named")
    assert files_below(tmp_path) == before
    assert table.refresh().scan().count() == 30


def files_below(directory: Path) -> set[Path]:
    return {path for path in directory.rglob("*.parquet") if path.is_file()}


def test_what_the_api_can_not_do_is_refused_by_name(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match=r"Unsupported: write\.distribution-mode=hash"):
        write(frame_of(spark, 0, 1), tmp_path, distribution_mode="hash")
    with pytest.raises(PySparkException, match="nosuch"):
        write(frame_of(spark, 0, 1), tmp_path, "overwrite", overwrite_filter="nosuch = 1")
    with pytest.raises(PySparkException, match="no option 'snapshotid'"):
        read(spark, tmp_path, snapshotid=1).collect()
    with pytest.raises(PySparkException, match="choose columns with the option columns"):
        spark.read.schema("name string").format("icebench").options(**place_of(tmp_path)).load("db.t").collect()
    with pytest.raises(PySparkException, match="writing needs option catalog"):
        frame_of(spark, 0, 1).write.format("icebench").mode("append").save(table.location)
