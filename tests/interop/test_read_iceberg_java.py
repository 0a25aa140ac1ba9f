"""Tables that Iceberg Java wrote through Spark SQL, read by the engine: to Arrow, and natively on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import icebench
from icebench.bench.engines.engine import normalised
from icebench.bench.engines.iceberg_java import IcebergJava
from icebench.bench.engines.registry import EngineContext
from icebench.bench.setup_jars import is_cached
from icebench.engine.plan.scan import table_scan
from icebench.engine.spark.native_scan import plan_to_dataframe
from icebench.engine.table import Table

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.slow,
]

VERSIONS = (1, 2, 3)

COLUMNS = """
    id int not null, small decimal(7,2), middle decimal(18,4), wide decimal(38,10), day date, at timestamp,
    naive timestamp_ntz, name string, raw binary, f float, d double, flag boolean,
    s struct<a: int, b: string>, l array<struct<x: int, y: string>>, m map<string, decimal(9,3)>, gone string
"""

ROWS = """
    select cast(id as int) id,
           if(id % 7 = 0, null, cast((id - 300) / 4 as decimal(7,2))) small,
           if(id % 11 = 0, null, cast(id * 1000003.0001 as decimal(18,4))) middle,
           if(id % 13 = 0, null, cast(-id as decimal(38,10)) / 3) wide,
           if(id % 5 = 0, null, date_add(date'1969-12-01', cast(id as int))) day,
           if(id % 6 = 0, null, timestamp_micros(id * 86400000000 * 3 - 1)) at,
           if(id % 9 = 0, null, timestamp_ntz'1950-01-01' + make_dt_interval(cast(id as int), 1, 1, 0.000001)) naive,
           case id % 4 when 0 then null when 1 then '' else concat('名-', id % 10) end name,
           if(id % 3 = 0, null, cast(cast(id as string) as binary)) raw,
           case id % 5 when 0 then null when 1 then float('NaN') else float(id) / 8 end f,
           case id % 5 when 0 then double('-Infinity') when 1 then null when 2 then double('-0.0') else id / 7.0d end d,
           if(id % 2 = 0, null, id % 3 = 0) flag,
           if(id % 8 = 0, null, named_struct('a', if(id % 16 = 1, null, cast(id as int)), 'b', concat('b', id))) s,
           case id % 4 when 0 then null when 1 then array()
                else array(named_struct('x', cast(id as int), 'y', 'why'), null) end l,
           case id % 4 when 0 then null when 1 then map()
                else map('k', cast(id as decimal(9,3)), 'none', null) end m,
           concat('gone', id) gone
    from range({start}, {end})
"""


@pytest.fixture(scope="module")
def names(spark: SparkSession) -> dict[int, str]:
    """A table of each format version, after appends, evolution of schema and partitions, and deletes."""
    spark.sql("create namespace if not exists iceberg_java.read_java")
    made = {}
    for version in VERSIONS:
        name = made[version] = f"iceberg_java.read_java.v{version}"
        mode = "copy-on-write" if version == 1 else "merge-on-read"
        pages = "v2" if version == 2 else "v1"
        spark.sql(
            f"""create table {name} ({COLUMNS}) using iceberg
                partitioned by (bucket(2, id), flag)
                tblproperties ('format-version'='{version}', 'write.delete.mode'='{mode}',
                               'write.update.mode'='{mode}', 'write.parquet.row-group-size-bytes'='2000',
                               'write.parquet.page-version'='{pages}')"""
        )
        insert(spark, name, 0, 300)
        spark.sql(f"alter table {name} alter column id type bigint")
        spark.sql(f"alter table {name} alter column small type decimal(12,2)")
        spark.sql(f"alter table {name} alter column f type double")
        spark.sql(f"alter table {name} rename column middle to centre")
        spark.sql(f"alter table {name} drop column gone")
        spark.sql(f"alter table {name} add columns (middle string after id, gone int)")
        spark.sql(f"alter table {name} rename column s.b to c")
        spark.sql(f"alter table {name} add column s.b int")
        spark.sql(f"alter table {name} drop partition field flag")
        spark.sql(f"alter table {name} add partition field years(at)")
        spark.sql(
            f"""insert into {name}
                select id, concat('new', id) middle, small, middle, wide, day, at, naive, name, raw, f, d, flag,
                       named_struct('a', s.a, 'c', s.b, 'b', s.a), l, m, id % 3
                from ({ROWS.format(start=300, end=400)})"""
        )
        spark.sql(f"delete from {name} where id % 17 = 3")
        spark.sql(f"delete from {name} where id between 310 and 330 or name is null and id > 390")
        if version > 1:
            spark.sql(f"update {name} set name = 'updated', small = -1 where id in (42, 350)")
    return made


def insert(spark: SparkSession, name: str, start: int, end: int) -> None:
    spark.sql(f"insert into {name} {ROWS.format(start=start, end=end)}")


def opened(spark: SparkSession, name: str) -> Table:
    warehouse = spark.conf.get("spark.sql.catalog.iceberg_java.warehouse")
    assert warehouse is not None
    return icebench.load_table(str(Path(warehouse, *name.split(".")[1:])))


def bag(table: pa.Table) -> list[str]:
    """Rows as text, in order; text distinguishes NaN, signed zeros and the scale of decimals."""
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("version", VERSIONS)
def test_all_rows_are_equal(spark: SparkSession, names: dict[int, str], version: int) -> None:
    expected = spark.table(names[version]).toArrow()
    table = opened(spark, names[version])
    assert table.metadata.format_version == version
    found = table.scan().to_arrow()
    assert found.schema.names == expected.schema.names
    assert bag(found) == bag(expected)
    assert table.scan().count() == expected.num_rows
    if version > 1:
        deletes = [d for own in table.scan().plan().files.column("deletes").to_pylist() for d in own]
        assert {d["file_format"] for d in deletes} == {"parquet" if version == 2 else "puffin"}


def test_a_delete_of_one_row_in_data_pages_of_version_2(spark: SparkSession) -> None:
    """Its path has no dictionary, but its difference to the path before, which pyarrow does not read as a dictionary:
    PyIceberg 0.12 fails."""
    name = "iceberg_java.read_java.one_deleted"
    spark.sql("create namespace if not exists iceberg_java.read_java")
    spark.sql(
        f"""create table {name} (id bigint) using iceberg
            tblproperties ('format-version'='2', 'write.delete.mode'='merge-on-read',
                           'write.parquet.page-version'='v2')"""
    )
    spark.sql(f"insert into {name} select /*+ COALESCE(1) */ id from range(1000)")
    spark.sql(f"delete from {name} where id = 7")
    table = opened(spark, name)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [n for n in range(1000) if n != 7]
    with pytest.raises(OSError, match="DeltaByteArrayDecoder"):
        StaticTable.from_metadata(table.metadata_location).scan().to_arrow()


FILTERS = (
    "id = 42",
    "small < 0 and d > 1",
    "centre is null or wide > -5",
    "day >= '1970-01-01' and day < '1970-02-01'",
    "at >= '1970-06-01T00:00:00+00:00' and at < '1971-01-01T00:00:00+00:00'",
    "naive < '1950-02-01T00:00:00'",
    "name = '' or name in ('名-2', 'updated')",
    "name is null",
    "middle = 'new345' or gone = 2",
    "s.c = 'b9' or s.b = 305",
    "f > 10 and f < 1e9 and flag is null",
)
SPARK_FILTERS = {
    "at >= '1970-06-01T00:00:00+00:00' and at < '1971-01-01T00:00:00+00:00'":
        "at >= timestamp'1970-06-01 00:00:00 UTC' and at < timestamp'1971-01-01 00:00:00 UTC'",
    "naive < '1950-02-01T00:00:00'": "naive < timestamp_ntz'1950-02-01'",
}  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_plans_are_those_of_java_or_tighter(spark: SparkSession, names: dict[int, str], version: int) -> None:
    """No file that Java leaves out; that none with a matching row is left out, the tests of rows say."""
    table = opened(spark, names[version])
    java = IcebergJava(EngineContext(lambda: spark))
    handle = java.open(table.metadata_location)
    for text in (None, *FILTERS):
        theirs = java.plan(handle, java.compile(handle, None if text is None else SPARK_FILTERS.get(text, text))).files
        ours = {normalised(path) for path in table.scan(text).plan().files.column("file_path").to_pylist()}
        assert ours <= theirs, text
        assert text is not None or ours == theirs


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", FILTERS)
def test_filtered_rows_are_equal(spark: SparkSession, names: dict[int, str], version: int, text: str) -> None:
    expected = spark.table(names[version]).where(SPARK_FILTERS.get(text, text)).toArrow()
    found = opened(spark, names[version]).scan(filter=text).to_arrow()
    assert expected.num_rows > 0
    assert bag(found) == bag(expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_projection_and_a_past_snapshot_are_equal(spark: SparkSession, names: dict[int, str], version: int) -> None:
    table = opened(spark, names[version])
    found = table.scan(columns=["wide", "s.c", "m"]).to_arrow()
    expected = spark.table(names[version]).selectExpr("wide", "named_struct('c', s.c) s", "s is null no", "m").toArrow()
    flat: list[dict[str, Any]] = expected.to_pylist()
    shown = [repr({"wide": r["wide"], "s": None if r["no"] else r["s"], "m": r["m"]}) for r in flat]
    assert bag(found) == sorted(shown)
    first = table.snapshots[0].snapshot_id
    past = spark.sql(f"select * from {names[version]} version as of {first}").toArrow()
    assert past.num_rows == 300
    assert bag(table.scan(snapshot_id=first).to_arrow()) == bag(past)


@pytest.mark.parametrize("version", VERSIONS)
def test_native_scans_on_spark_are_equal(spark: SparkSession, names: dict[int, str], version: int) -> None:
    table = opened(spark, names[version])
    expected = spark.table(names[version]).toArrow()
    plan = table_scan(table.metadata, table.store).plan()
    assert bag(plan_to_dataframe(spark, plan, table.store).toArrow()) == bag(expected)
    text = "small < 0 and d > 1 or middle = 'new345'"
    expected = spark.table(names[version]).where(text).toArrow()
    plan = table_scan(table.metadata, table.store, filter=text).plan()
    assert bag(plan_to_dataframe(spark, plan, table.store).toArrow()) == bag(expected)
