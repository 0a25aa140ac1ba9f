"""The metadata tables beside Iceberg Java's, on tables that Iceberg Java wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.setup_jars import is_cached
from icebench.engine.inspect.inspector import TABLES
from tests.interop.test_read_iceberg_java import VERSIONS

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[int, str]:
    """A table of each format version with two partition specs, nulls, a dropped column, and deletes."""
    spark.sql("create namespace if not exists iceberg_java.metadata_tables")
    made = {}
    for version in VERSIONS:
        name = made[version] = f"iceberg_java.metadata_tables.v{version}"
        mode = "copy-on-write" if version == 1 else "merge-on-read"
        spark.sql(
            f"""create table {name} (id int, kind string, day date, price decimal(9,2), place struct<x: double>)
                using iceberg partitioned by (kind, bucket(2, id))
                tblproperties ('format-version'='{version}', 'write.delete.mode'='{mode}')"""
        )
        rows = """select cast(id as int), if(id % 5 = 0, null, concat('k', id % 2)),
                         date_add(date'2024-01-01', cast(id as int)), cast(id as decimal(9,2)) / 4,
                         named_struct('x', if(id % 3 = 0, double('NaN'), id / 8.0d))"""
        spark.sql(f"insert into {name} {rows} from range(0, 20)")
        spark.sql(f"alter table {name} drop partition field bucket(2, id)")
        spark.sql(f"alter table {name} add partition field months(day)")
        spark.sql(f"insert into {name} {rows} from range(20, 60)")
        spark.sql(f"delete from {name} where id in (3, 21, 22)")
        spark.sql(f"alter table {name} create tag first as of version {snapshots(spark, name)[0]}")
        spark.sql(f"delete from {name} where kind = 'k1' and id < 20")
    return made


def snapshots(spark: SparkSession, name: str) -> list[int]:
    return [row[0] for row in spark.sql(f"select snapshot_id from {name}.snapshots order by committed_at").collect()]


def plain(value: Any) -> Any:
    """A value in one form, whatever library it comes from."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        is_map = value and all(isinstance(each, tuple) for each in value)
        return {key: plain(inner) for key, inner in value} if is_map else [plain(each) for each in value]
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=None)
    return value


def rows(table: pa.Table, columns: list[str]) -> list[str]:
    return sorted(repr(plain(row)) for row in table.select(columns).to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table", TABLES)
def test_columns_and_rows_are_equal(spark: SparkSession, tables: dict[int, str], version: int, table: str) -> None:
    name = tables[version]
    warehouse = spark.conf.get("spark.sql.catalog.iceberg_java.warehouse")
    assert warehouse is not None
    opened = icebench.load_table(str(Path(warehouse, *name.split(".")[1:])))
    found: pa.Table = getattr(opened.inspect, table)()
    expected = spark.table(f"{name}.{table}").toArrow()
    assert found.schema.names == expected.schema.names
    assert rows(found, found.schema.names) == rows(expected, found.schema.names)
