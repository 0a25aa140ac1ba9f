"""Changelogs of tables that Iceberg Java wrote by copy-on-write, against its own `create_changelog_view`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.setup_jars import is_cached

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.slow,
]

NAME = "iceberg_java.changelogs.t"
Changes = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> icebench.Table:
    spark.sql("create namespace if not exists iceberg_java.changelogs")
    spark.sql(
        f"""create table {NAME} (id bigint, data string, f double) using iceberg partitioned by (bucket(2, id))
            tblproperties ('format-version'='2', 'write.delete.mode'='copy-on-write',
                           'write.update.mode'='copy-on-write', 'write.merge.mode'='copy-on-write')"""
    )
    spark.sql(f"insert into {NAME} select id, concat('d', id % 3), if(id % 4 = 0, double('NaN'), id) from range(20)")
    spark.sql(f"update {NAME} set data = 'x' where id in (1, 2, 3)")
    spark.sql(f"delete from {NAME} where id between 5 and 7")
    spark.sql(f"insert into {NAME} values (20, null, -0.0), (21, 'd', 1)")
    spark.sql(f"call iceberg_java.system.rewrite_data_files(table => '{NAME}', options => map('rewrite-all', 'true'))")
    spark.sql(f"update {NAME} set data = 'd1' where id in (1, 9)")
    spark.sql(f"insert overwrite {NAME} select * from {NAME} where id <> 21")
    spark.sql(
        f"""merge into {NAME} t using (select id, 'm' data from range(18, 24)) s on t.id = s.id
            when matched then update set data = s.data when not matched then insert (id, data) values (s.id, s.data)"""
    )
    spark.sql(f"delete from {NAME} where id = 20")
    place = spark.sql(f"select file from {NAME}.metadata_log_entries order by timestamp desc, file desc").head()
    assert place is not None
    return icebench.load_table(str(place[0]))


def of_java(spark: SparkSession, start: int | None, end: int, arguments: str = "") -> Changes:
    options = f"'end-snapshot-id', '{end}'" + ("" if start is None else f", 'start-snapshot-id', '{start}'")
    spark.sql(
        f"""call iceberg_java.system.create_changelog_view(
                table => '{NAME}', options => map({options}), changelog_view => 'changelog' {arguments})"""
    )
    chosen = "id, data, string(f), _change_type, _change_ordinal, _commit_snapshot_id"
    return Counter(tuple(row) for row in spark.sql(f"select {chosen} from changelog").collect())


def of_engine(table: icebench.Table, start: int | None, end: int, **options: Any) -> Changes:
    found = table.changelog_scan(start, end, **options).to_arrow()
    given = [list(row.values()) for row in found.to_pylist()]
    texts = {"nan": "NaN"}
    return Counter(
        (row[0], row[1], None if row[2] is None else texts.get(str(row[2]), str(row[2])), *row[3:]) for row in given
    )


@pytest.mark.parametrize("first", [None, 0, 3])
def test_changes_are_those_of_iceberg_java(spark: SparkSession, table: icebench.Table, first: int | None) -> None:
    start, end = None if first is None else table.snapshots[first].snapshot_id, table.snapshots[-1].snapshot_id
    assert of_engine(table, start, end) == of_java(spark, start, end)
    by_id = of_engine(table, start, end, identifier_columns=["id"])
    assert by_id == of_java(spark, start, end, ", identifier_columns => array('id')")
    assert sum(n for row, n in by_id.items() if row[3] == "UPDATE_AFTER") >= 4
    assert of_engine(table, start, end, net_changes=True) == of_java(spark, start, end, ", net_changes => true")


def test_appends_are_those_of_iceberg_java(spark: SparkSession, table: icebench.Table) -> None:
    start, end = table.snapshots[0].snapshot_id, table.snapshots[-1].snapshot_id
    frame = spark.read.option("start-snapshot-id", str(start)).option("end-snapshot-id", str(end)).table(NAME)
    expected = Counter(tuple(row) for row in frame.select("id", "data").collect())
    scan = table.incremental_append_scan(start, columns=["id", "data"])
    assert Counter(zip(*(column.to_pylist() for column in scan.to_arrow().columns), strict=True)) == expected
    assert Counter(tuple(row) for row in scan.to_spark(spark).collect()) == expected
    assert expected.total() == 2
