"""Iceberg Java reads nested values of our files as they were given, whatever is null."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import engine
from bench.setup_jars import is_cached
from engine.spec.data_file import DataFile, FileFormat
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


@pytest.mark.parametrize("own_ids", [True, False])
@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_files_of_java_are_read_as_they_were_given(
    spark: SparkSession, tmp_path: Path, file_format: FileFormat, own_ids: bool
) -> None:
    """With Iceberg's writers, and with Spark's own, which give no field ids and name parts of lists in other ways."""
    nested = nestings(1) + nestings(2) + Random(2).sample(nestings(3), 10)
    given = pa.concat_tables([rows_of(nested, first, Random(first), leaves=7) for first in range(0, 40, 5)])
    frame = spark.createDataFrame(given).coalesce(1)
    if own_ids:
        spark.sql("create namespace if not exists iceberg_java.nested")
        name = f"iceberg_java.nested.{file_format}"
        frame.writeTo(name).using("iceberg").tableProperty("write.format.default", file_format).create()
        warehouse = spark.conf.get("spark.sql.catalog.iceberg_java.warehouse")
        assert warehouse is not None
        table = engine.load_catalog(warehouse).load_table(name.partition(".")[2])
    else:
        frame.write.format(file_format).save(str(tmp_path / "files"))
        (path,) = (tmp_path / "files").glob(f"part-*.{file_format}")
        table = engine.load_catalog(f"{tmp_path}/wh").create_table("db.t", given.schema)
        size = path.stat().st_size
        file = DataFile(
            file_path=str(path), file_format=file_format, record_count=given.num_rows, file_size_in_bytes=size
        )
        table.add_files([file])
    found = table.scan().to_arrow().sort_by("id")
    for place, nesting in enumerate(nested):
        assert found[f"c{place}"].to_pylist() == given[f"c{place}"].to_pylist(), nesting
    # Some columns only, and rows that a filter chooses.
    for place in range(0, len(nested), 5):
        some = table.scan("id >= 7", columns=["id", f"c{place}"]).to_arrow().sort_by("id")
        assert some[f"c{place}"].to_pylist() == given[f"c{place}"].to_pylist()[7:], nested[place]


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


def rows_of(nested: list[str], first: int, random: Random, *, leaves: int = 10) -> pa.Table:
    columns = {"id": pa.array(range(first, first + 5))}
    for place, nesting in enumerate(nested):
        # In half of the files no value is null itself: writers then have other ways for the nulls in it.
        known = shapes(nesting)[first // 5 % 2 :]
        columns[f"c{place}"] = column(nesting, random.choices(known, k=5), (place + len(nesting)) % leaves)
    return pa.table(columns)
