"""Files without field ids, in tables without a name mapping: the engine and Iceberg Java read the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.setup_jars import is_cached
from icebench.engine.spec.data_file import FileFormat
from tests.interop.test_read_iceberg_java import bag
from tests.unit.engine.test_files_without_ids import FORMATS, ROWS, SCHEMA, add

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.slow,
]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("evolved", [False, True])
def test_rows_are_equal(spark: SparkSession, file_format: FileFormat, evolved: bool) -> None:
    name = f"iceberg_java.without_ids.{file_format}_{evolved}".lower()
    spark.sql("create namespace if not exists iceberg_java.without_ids")
    spark.sql(f"create table {name} (id bigint, name string, place struct<x: int, y: int>) using iceberg")
    warehouse = spark.conf.get("spark.sql.catalog.iceberg_java.warehouse")
    assert warehouse is not None
    catalog = icebench.load_catalog(str(Path(warehouse)))
    table = catalog.load_table(name.partition(".")[2])
    data = pa.Table.from_pylist(ROWS, SCHEMA)
    add(table, data, file_format)
    # By position in Parquet, by name elsewhere.
    other = data.rename_columns(["a", "b", "place"]) if file_format == "parquet" else data.select(["name", "id"])
    add(table, other, file_format, "g")
    if evolved:
        spark.sql(f"refresh table {name}")
        spark.sql(f"alter table {name} add column more int")
        if file_format == "parquet":
            spark.sql(f"alter table {name} rename column name to title")
    spark.sql(f"refresh table {name}")
    expected = spark.table(name).toArrow()
    found = catalog.load_table(name.partition(".")[2]).scan().to_arrow()
    if file_format == "parquet":  # Iceberg Java gives null for nested columns on Spark, and goes by position elsewhere
        expected, found = expected.drop_columns(["place"]), found.drop_columns(["place"])
    assert found.schema.names == expected.schema.names
    assert bag(found) == bag(expected)
    catalog.close()
