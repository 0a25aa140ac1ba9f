"""Iceberg Java reads nested values of our files as they were given, whatever is null."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import engine
from bench.setup_jars import is_cached
from tests.property.nested_patterns import column, nestings, shapes

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.xdist_group("spark"),
    pytest.mark.slow,
]
_COLUMNS = 30


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_all_nestings_are_read_as_they_were_given(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    compare(spark, tmp_path, file_format, seed=1, nested=nestings(2) + Random(1).sample(nestings(4), 15) + ["ssss"])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_all_nestings_in_all_leaves(spark: SparkSession, tmp_path: Path, file_format: str, seed: int) -> None:
    compare(spark, tmp_path, file_format, seed=seed, nested=[n for depth in (1, 2, 3, 4) for n in nestings(depth)])


def compare(spark: SparkSession, directory: Path, file_format: str, *, seed: int, nested: list[str]) -> None:
    """Write files of five rows, each of other patterns, and compare what Spark finds in them, row by row."""
    random = Random(seed)
    catalog = engine.load_catalog(f"sqlite:///{directory}/catalog.db", warehouse=str(directory))
    catalog.create_namespace("db")
    for start in range(0, len(nested), _COLUMNS):
        part = nested[start : start + _COLUMNS]
        files = [rows_of(part, first, random) for first in range(0, 40, 5)]
        properties = {"write.format.default": file_format}
        table = catalog.create_table(f"db.t{start}", files[0].schema, properties=properties)
        for rows in files:
            table.append(rows)
        found = spark.read.format("iceberg").load(table.metadata_location).orderBy("id").toArrow()
        given = pa.concat_tables(files)
        for name, nesting in zip(given.schema.names[1:], part, strict=True):
            assert found.column(name).to_pylist() == given.column(name).to_pylist(), (file_format, nesting)


def rows_of(nested: list[str], first: int, random: Random) -> pa.Table:
    columns = {"id": pa.array(range(first, first + 5))}
    for place, nesting in enumerate(nested):
        # In half of the files no value is null itself: writers then have other ways for the nulls in it.
        known = shapes(nesting)[first // 5 % 2 :]
        columns[f"c{place}"] = column(nesting, random.choices(known, k=5), (place + len(nesting)) % 10)
    return pa.table(columns)
