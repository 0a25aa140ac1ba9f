"""Columns of DataFrames that a table has in another form: variants, collations, names that differ in case only."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.engine.codec.variants import decode_variant
from icebench.engine.spark_source import register
from tests.spark.deleted_tables import open_catalog, place_of

ANY_SCHEMA = {"format-version": "3", "write.spark.accept-any-schema": "true"}
VARIANTS = """select 1L id, parse_json('{"a": 1}') v, array(parse_json('[1, "x"]'), null) l,
    named_struct('n', 1, 'v', parse_json('{"b": null}')) st, map('k', parse_json('2')) m"""


@pytest.mark.parametrize("way", ["source", "append"])
def test_variants_are_added_as_variants(spark: SparkSession, tmp_path: Path, way: str) -> None:
    register(spark)
    table = open_catalog(tmp_path).create_table("db.t", pa.schema([("id", pa.int64())]), properties=ANY_SCHEMA)
    rows = spark.sql(VARIANTS)
    if way == "source":
        options = {**place_of(tmp_path), "merge-schema": "true"}
        rows.write.format("icebench").options(**options).mode("append").save("db.t")
        table = open_catalog(tmp_path).load_table("db.t")
    else:
        table.append(rows, merge_schema=True)
    types = {f.name: str(f.type) for f in table.schema().fields}
    assert types["v"] == "variant"
    assert all("variant" in types[name] for name in ("l", "st", "m"))
    assert "binary" not in str(types)
    (row,) = table.scan().to_arrow().to_pylist()
    found = decoded(row["v"]), [decoded(each) for each in row["l"]], decoded(row["st"]["v"]), row["m"][0][0]
    assert found == ({"a": 1}, [[1, "x"], None], {"b": None}, "k")
    assert decoded(row["m"][0][1]) == 2


def decoded(variant: dict[str, bytes] | None) -> object:
    return None if variant is None else decode_variant(variant["metadata"], variant["value"])


def test_variants_are_not_added_to_a_table_that_cannot_have_them(spark: SparkSession, tmp_path: Path) -> None:
    table = open_catalog(tmp_path).create_table(
        "db.t", pa.schema([("id", pa.int64())]), properties={**ANY_SCHEMA, "format-version": "2"}
    )
    with pytest.raises(icebench.errors.EngineError, match="variant"):
        table.append(spark.sql(VARIANTS), merge_schema=True)
    assert len(table.snapshots) == 0


@pytest.mark.parametrize("mode", ["hash", "range"])
def test_strings_are_arranged_by_their_bytes_whatever_their_collation(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    inner = pa.struct([("s", pa.string())])
    table = open_catalog(tmp_path).create_table(
        "db.t",
        pa.schema([("p", pa.string()), ("k", pa.string()), ("st", inner)]),
        partition_spec=[("p", "identity")],
        sort_order=["k"],
        properties={"write.distribution-mode": mode},
    )
    texts = ["b", "A", "a", "B", "aa", "AA"]
    rows = spark.createDataFrame([(p, k) for p in ("x", "X") for k in texts], "p string, k string").coalesce(1)
    collated = [f"{name} collate utf8_lcase" for name in ("p", "k")]
    table.append(rows.selectExpr(*(f"{c} as {c[0]}" for c in collated), f"named_struct('s', {collated[1]}) as st"))
    for p in ("x", "X"):
        found = table.scan(f"p = '{p}'").to_arrow()
        assert found["k"].to_pylist() == sorted(texts)
        assert found["st"].to_pylist() == [{"s": text} for text in sorted(texts)]
    table.upsert(rows.selectExpr("p", f"{collated[1]} as k", "named_struct('s', 'new') as st"), ["p", "k"])
    assert set(table.scan().to_arrow()["st"].combine_chunks().field("s").to_pylist()) == {"new"}
    assert table.scan().count() == 12


@pytest.mark.parametrize("mode", ["none", "hash", "range"])
def test_names_may_differ_in_case_only(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    schema = pa.schema([("k", pa.int64()), ("K", pa.string()), ("u", pa.uuid()), ("U", pa.string())])
    table = open_catalog(tmp_path).create_table(
        "db.t",
        schema,
        partition_spec=[("K", "identity")],
        sort_order=["k"],
        properties={"write.distribution-mode": mode, "format-version": "3"},
    )
    first = pa.table([[1, 2], ["x", "y"], pa.array([b"a" * 16, None], pa.binary(16)), ["s", "t"]], schema=schema)
    table.append(first)
    frame = table.scan().to_spark(spark)
    table.append(frame)
    assert table.scan().count() == 4
    table.overwrite(frame)
    assert table.scan().to_arrow().sort_by("k").to_pylist() == first.to_pylist()
    table.upsert(frame.limit(1), ["k", "K"])
    assert table.scan().to_arrow().sort_by("k").to_pylist() == first.to_pylist()


def test_rows_without_the_column_of_the_partition_are_of_one(spark: SparkSession, tmp_path: Path) -> None:
    table = open_catalog(tmp_path).create_table(
        "db.t",
        pa.schema([("id", pa.int64()), ("p", pa.string())]),
        partition_spec=[("p", "bucket[4]")],
        properties={"write.distribution-mode": "hash"},
    )
    table.append(spark.range(5))
    assert table.scan("p is null").count() == 5
