"""Figures of a portrait against Iceberg Java's metadata tables."""

from pathlib import Path

from pyspark.sql import SparkSession

from bench.measure.cache import DatasetCache
from bench.measure.metadata_tables import find_or_build
from tests.spark.portraits import compare, java_figures, own_figures
from bench.workloads.metadata_files import MetadataFiles


def test_both_sides_say_the_same(spark: SparkSession, tmp_path: Path) -> None:
    files = MetadataFiles(files=300, clustered=False, seed=5)
    location = find_or_build(files, DatasetCache(tmp_path), told=lambda _: None)
    own = own_figures(location)
    assert own == java_figures(spark, location, 402_653_184)
    assert (own.files, own.partitions, len(own.columns)) == (300, 60, 23)
    assert own.columns["ss_item_sk"][1] > 1
    assert set(compare(location, spark, 1)["seconds"]) == {"icebench", "iceberg-java"}
