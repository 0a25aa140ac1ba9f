"""Variants that Iceberg Java writes, plain and shredded, and those that it reads."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import VariantVal

import icebench
from icebench.bench.setup_jars import is_cached
from tests.unit.engine.codec.variant_encoder import encode

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
]

COLUMNS = "id int, v variant, s struct<v: variant, n: int>, l array<variant>, m map<string, variant>"
JSON = r"""concat('{"n": ', id, ', "big": ', id * 3000000000, ', "ratio": ', id / 8.0, ', "name": "名', id % 3, '",
    "long": "', repeat('x', 50 + id % 30), '", "flag": ', id % 2 = 0, ', "none": null,
    "inner": {"a": ', id, ', "b": [1, "two", {"c": ', id, '}]}, "tags": ["a", "', id, '"]',
    if(id % 4 = 0, ', "rare": {"x": [null, 1.5]}', ''), '}')"""
ROWS = f"""
    select cast(id as int) id,
        case when id % 10 = 0 then null when id % 10 = 1 then parse_json('null')
            when id % 10 = 2 then cast(id as variant) when id % 10 = 3 then parse_json('[1, [2, null], {{}}]')
            else parse_json({JSON}) end v,
        if(id % 7 = 0, null, named_struct('v', if(id % 3 = 0, null, parse_json({JSON})), 'n', cast(id as int))) s,
        if(id % 5 = 0, null, array(parse_json('{{"e": 1}}'), null, parse_json({JSON}))) l,
        map('k', parse_json({JSON}), 'none', null) m
    from range(0, 300)
"""
SCALARS = (
    "cast(-7 as byte)",
    "cast(300 as short)",
    "70000",
    "5000000000",
    "cast(1.5 as float)",
    "cast('NaN' as double)",
    "cast(-12.34 as decimal(5,2))",
    "cast(1234567890.12 as decimal(15,2))",
    "cast('-12345678901234567890.12' as decimal(30,2))",
    "date'1960-02-03'",
    "timestamp'2020-01-02 03:04:05.678901 UTC'",
    "timestamp_ntz'1950-01-02 03:04:05.678901'",
    "true",
    "X'00ff'",
    "repeat('é', 100)",
    "''",
    """to_variant_object(named_struct('d', date'2020-01-01', 't', timestamp'2020-01-01 00:00:00 UTC',
        'x', cast(1.25 as decimal(9,2)), 'b', X'01'))""",
)


def plain(value: Any) -> Any:
    """Spark's row, or the engine's, in Python values."""
    match value:
        case VariantVal():
            return plain(value.toPython())
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC)
        case {"metadata": bytes(), "value": bytes()}:
            return icebench.decode_variant(value["metadata"], value["value"])
        case dict():
            return {name: plain(v) for name, v in value.items()}
        case list():
            return [plain(v) for v in value]
    return value


def spark_rows(spark: SparkSession, name: str, columns: str = "*") -> list[str]:
    return [
        repr(plain(r.asDict(recursive=True))) for r in spark.sql(f"select {columns} from {name} order by id").collect()
    ]


def own_rows(table: icebench.Table) -> list[str]:
    found = table.scan().to_arrow().sort_by("id")
    found.validate(full=True)
    return [repr(plain(row)) for row in found.to_pylist(maps_as_pydicts="strict")]


def opened(spark: SparkSession, name: str) -> icebench.Table:
    warehouse = spark.conf.get("spark.sql.catalog.iceberg_java.warehouse")
    assert warehouse is not None
    return icebench.load_catalog(warehouse).load_table(name.removeprefix("iceberg_java."))


def create(
    spark: SparkSession, name: str, columns: str, *, shred: bool = False, file_format: str = "parquet", more: str = ""
) -> str:
    spark.sql("create namespace if not exists iceberg_java.variants")
    full = f"iceberg_java.variants.{name}"
    spark.sql(
        f"""create or replace table {full} ({columns}) using iceberg {more} tblproperties ('format-version'='3',
            'write.parquet.shred-variants'='{str(shred).lower()}', 'write.format.default'='{file_format}',
            'write.delete.mode'='merge-on-read', 'write.parquet.row-group-size-bytes'='20000',
            'read.parquet.vectorization.enabled'='false')"""
    )
    return full


def stored_fields(table: icebench.Table) -> set[str]:
    paths = table.scan().plan().files.column("file_path").to_pylist()
    return {
        p
        for path in paths
        for p in pq.ParquetFile(path.removeprefix("file:")).schema.to_arrow_schema().field("v").type.names
    }


@pytest.mark.parametrize("shred", [False, True])
def test_java_writes(spark: SparkSession, shred: bool) -> None:
    name = create(spark, f"nested_{shred}", COLUMNS, shred=shred)
    spark.sql(f"insert into {name} {ROWS}")
    spark.sql(f"delete from {name} where id % 11 = 5")
    table = opened(spark, name)
    assert own_rows(table) == spark_rows(spark, name)
    for text in ("v is null", "v is not null", "s.v is null", "s.v is not null"):
        expected = [r.id for r in spark.sql(f"select id from {name} where {text} order by id").collect()]
        assert sorted(table.scan(filter=text).to_arrow().column("id").to_pylist()) == expected, text
        assert table.scan(filter=text).count() == len(expected)


def test_files_are_shredded(spark: SparkSession) -> None:
    name = create(spark, "objects", "id int, v variant", shred=True)
    spark.sql(f"insert into {name} select cast(id as int), parse_json({JSON}) from range(200)")
    table = opened(spark, name)
    assert "typed_value" in stored_fields(table)
    assert own_rows(table) == spark_rows(spark, name)


@pytest.mark.parametrize("shred", [False, True])
def test_scalars(spark: SparkSession, shred: bool) -> None:
    """Each in a file of its own, so that each is shredded as its type."""
    name = create(spark, f"scalars_{shred}", "id int, v variant", shred=shred, more="partitioned by (id)")
    cases = " ".join(f"when id = {i} then cast({scalar} as variant)" for i, scalar in enumerate(SCALARS))
    spark.sql(f"insert into {name} select cast(id as int), case {cases} end from range({len(SCALARS)})")
    table = opened(spark, name)
    assert own_rows(table) == spark_rows(spark, name)
    assert ("typed_value" in stored_fields(table)) == shred


def test_avro(spark: SparkSession) -> None:
    """Not ORC: Iceberg's writer for Spark fails on variants."""
    name = create(spark, "in_avro", COLUMNS, file_format="avro")
    spark.sql(f"insert into {name} {ROWS}")
    assert own_rows(opened(spark, name)) == spark_rows(spark, name)


def test_java_reads(spark: SparkSession) -> None:
    name = create(spark, "ours", "id int, v variant, s struct<v: variant>, l array<variant>, m map<string, variant>")
    values = [{"a": i, "名": [1.5, None, "x" * i], "z": {"deep": True}} if i % 3 else i for i in range(100)]
    variants = [encode(v) for v in values]
    rows = pa.table(
        {
            "id": pa.array(range(100), pa.int32()),
            "v": [None if i % 5 == 0 else v for i, v in enumerate(variants)],
            "s": [None if i % 7 == 0 else {"v": v} for i, v in enumerate(variants)],
            "l": [None if i % 4 == 0 else [v, None] for i, v in enumerate(variants)],
            "m": pa.array(
                [[("k", v)] for v in variants],
                pa.map_(pa.string(), pa.struct({"metadata": pa.binary(), "value": pa.binary()})),
            ),
        }
    )
    opened(spark, name).append(rows)
    table = opened(spark, name)
    assert own_rows(table) == spark_rows(spark, name)
    shown = [
        r.v
        for r in spark.sql(f"select variant_get(v, '$.a', 'int') v from {name} where id % 5 > 0 order by id").collect()
    ]
    assert shown == [(i if i % 3 else None) for i in range(100) if i % 5]
    assert spark.sql(f"select id from {name} where v is null").count() == 20
    spark.sql(f"insert into {name} select id + 1000, v, s, l, m from {name}")
    assert own_rows(opened(spark, name)) == spark_rows(spark, name)


def test_adding_a_column(spark: SparkSession) -> None:
    name = create(spark, "evolved", "id int")
    spark.sql(f"insert into {name} values (1)")
    opened(spark, name).update_schema(lambda schema: schema.add_column("v", icebench.VARIANT))
    spark.sql(f"refresh table {name}")
    spark.sql(f"insert into {name} values (2, parse_json('[1]'))")
    assert own_rows(opened(spark, name)) == spark_rows(spark, name) == ["{'id': 1, 'v': None}", "{'id': 2, 'v': [1]}"]
