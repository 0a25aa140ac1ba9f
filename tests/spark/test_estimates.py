"""What Spark's optimizer takes a scan's size for, and what follows of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from icebench.engine.spark.estimates import expansion, row_bytes
from icebench.engine.spark.types import spark_type
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)
from icebench.engine.table import Table
from tests.spark.deleted_tables import open_catalog
from tests.spark.session_settings import setting

ROWS = 1_000_000
FACTOR = "spark.sql.sources.fileCompressionFactor"


def field(number: int, type_: Type) -> NestedField:
    return NestedField(field_id=number, name=f"c{number}", type=type_)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A million rows in some kilobytes."""
    rows = pa.table({"k": pa.array([n // 1000 for n in range(ROWS)]), "s": pa.array(["x"] * ROWS)})
    table = open_catalog(tmp_path_factory.mktemp("estimates")).create_table("db.t", rows.schema)
    table.append(rows)
    assert sum(table.inspect.files()["file_size_in_bytes"].to_pylist()) < 100_000
    return table


def size_bytes(frame: DataFrame) -> int:
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def test_widths_are_those_of_spark(spark: SparkSession) -> None:
    types = (BINARY, BOOLEAN, DATE, INT, LONG, STRING, TIMESTAMP, DecimalType(18, 2), DecimalType(19, 2), FixedType(3))
    nested = (
        ListType(field(100, DATE)),
        MapType(field(101, STRING), field(102, DecimalType(38, 0))),
        StructType((field(103, INT), field(104, ListType(field(105, BINARY))))),
    )
    for number, type_ in enumerate([*types, *nested], 1):
        parsed = spark._jsparkSession.parseDataType(spark_type(type_, column="c").json())
        assert row_bytes([field(number, type_)]) == 8 + parsed.defaultSize(), type_


def test_a_scan_is_as_large_as_its_rows(spark: SparkSession, table: Table) -> None:
    whole, keys = table.scan().to_spark(spark), table.scan(columns=["k"]).to_spark(spark)
    for frame, columns in ((whole, ["k", "s"]), (keys, ["k"]), (whole.select("k"), ["k"])):
        expected = ROWS * row_bytes(table.schema().select([table.schema().find(c).field_id for c in columns]).fields)
        assert 0.72 * expected <= size_bytes(frame) <= 0.88 * expected


def test_rows_that_compress_well_are_not_broadcast(spark: SparkSession, table: Table) -> None:
    many = table.scan().to_spark(spark)
    few = table.scan(filter="k < 100").to_spark(spark).limit(10)
    joined = many.alias("a").join(many.alias("b"), "k")
    assert "BroadcastHashJoin" not in joined._jdf.queryExecution().executedPlan().toString()
    assert "BroadcastHashJoin" in many.join(few, "k")._jdf.queryExecution().executedPlan().toString()


def test_a_factor_of_the_users_own_is_respected(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    files = sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
    with setting(spark, FACTOR, "3.0"):
        assert size_bytes(table.scan().to_spark(spark)) == 3 * files
    assert size_bytes(table.scan().to_spark(spark)) > 10 * files
    assert spark.conf.get(FACTOR) == "1.0"


def test_what_iceberg_java_broadcasts_is_broadcast(spark: SparkSession, tmp_path: Path) -> None:
    """Four longs of 320,000 rows are 10.24 million bytes, less than Spark's 10 MiB, and of 340,000 they are more."""
    catalog = open_catalog(tmp_path)
    names = ("k", "a", "b", "c", *(f"other{n}" for n in range(8)))
    many = spark.range(1 << 40).withColumnRenamed("id", "k")
    for rows, is_small in ((320_000, True), (340_000, False)):
        table = catalog.create_table(f"db.t{rows}", pa.schema([(name, pa.int64()) for name in names]))
        table.append(pa.table({name: range(rows) for name in names}))
        joined = many.join(table.scan().to_spark(spark).select("k", "a", "b", "c"), "k")
        assert ("BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()) == is_small


def test_expansion_is_within_a_tenth() -> None:
    for size in (150, 1_000, 12_345, 10**8):
        assert expansion(size, 400) == pytest.approx(0.8 * size / 400, rel=0.1)
    assert len({expansion(size, 1_000) for size in range(1_000, 16_000)}) <= 18
    assert [expansion(0, 5), expansion(5, 0)] == [1, 1]


def test_expansion_has_limits() -> None:
    assert [expansion(1, 1 << 40), expansion(1 << 40, 1)] == [0.25, 1 << 20]
